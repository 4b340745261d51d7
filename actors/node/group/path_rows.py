"""Which nodes of a domain have subscribers of what: one row for each node and address."""

from collections import Counter
from collections.abc import Callable
from typing import Final, TypeAlias, final

from actors.node.tables import Tables
from fsm.group.homes import Homes
from fsm.group.kinds import PathRow, path_key
from fsm.group.membership import MembershipCore
from fsm.group.rows_io import Change, Remove

_Write: TypeAlias = Callable[[Change | Remove], None]


@final
class PathRows:
    """Writes the rows of this node, and notes those of others; part of the bus's task.

    Args:
        membership: The membership of this node.
        homes: What other nodes have.
        tables: The tables of this node.
        write: Writes a row.
    """

    def __init__(
        self, membership: MembershipCore, homes: Homes, tables: Tables, write: _Write
    ) -> None:
        self._membership: Final = membership
        self._homes: Final = homes
        self._tables: Final = tables
        self._write: Final = write
        self._subscribers: Final = Counter[str]()

    # ---- of this node

    def begun(self, resource: str, link: int | None) -> None:
        """Note one subscriber more.

        Args:
            resource: Address that it subscribes to.
            link: Number of its link, which waits until other nodes can know of it; None: none.
        """
        self._subscribers[resource] += 1
        row = PathRow(resource, self._membership.holder)
        self._homes.path_over(row)
        # The engine may not have it yet, though this is not the first subscriber.
        self._write(Change(row, link))

    def over(self, resource: str) -> None:
        """Note one subscriber less."""
        self._subscribers[resource] -= 1
        if not self._subscribers[resource]:
            del self._subscribers[resource]
            self._write(Remove(path_key(resource, self._membership.node)))

    # ---- of any node, as the engine has them

    def there(self, row: PathRow) -> None:
        """Note a row."""
        if row.holder != self._membership.holder:
            self._homes.path(row)
            self._tables.remembered.forget()
        else:
            # A write of its own that was given up, and made after all.
            is_so = row.resource in self._subscribers
            self._write(Change(row) if is_so else Remove(row.key))

    def gone(self, row: PathRow) -> None:
        """Note that there is none any more."""
        self._homes.path_over(row)
        self._tables.remembered.forget()
        if row.holder == self._membership.holder and row.resource in self._subscribers:
            self._write(Change(row))

    def tidy(self) -> None:
        """Remove the rows of nodes that are gone, as far as they are this node's to remove."""
        for row in list(self._homes.unheld_paths()):
            if self._membership.tidies(row.key):
                self._homes.path_over(row)
                self._write(Remove(row.key))
