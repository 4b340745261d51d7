"""Which runtimes of a domain own which addresses: a row each."""

from collections.abc import Callable, Container
from typing import Final, TypeAlias, final

from actors.node.tables import Tables
from fsm.effects import RowChanged
from fsm.group.kinds import OwnerRow, owner_key
from fsm.group.rows_io import Change, Remove
from specs.trace import Op

_Write: TypeAlias = Callable[[Change | Remove], None]
_Hold: TypeAlias = Callable[[str], int | None]


@final
class OwnerRows:
    """Writes the rows of this node's sessions, and applies those of others.

    Part of the bus's task.

    Args:
        tables: The tables of this node.
        sessions: The runtimes with a session at this node.
        write: Writes a row.
        hold: Has the link of a runtime wait for a row; returns its number, None if it has none.
    """

    def __init__(
        self, tables: Tables, sessions: Container[str], write: _Write, hold: _Hold
    ) -> None:
        self._tables: Final = tables
        self._sessions: Final = sessions
        self._write: Final = write
        self._hold: Final = hold
        self._missing: Final = dict[str, OwnerRow]()
        self._asked_about: Final = dict[str, OwnerRow]()

    # ---- of this node

    def changed(self, changed: RowChanged) -> None:
        """Write that an address has an owner, or none any more."""
        address, runtime = changed.key, str(changed.val)
        self._found(owner_key(address))
        link = self._hold(runtime)
        if changed.op is Op.DEL:
            self._write(Remove(owner_key(address), link))
        else:
            self._write(Change(self._row(address, runtime), link))

    def _row(self, address: str, runtime: str) -> OwnerRow:
        allocation = self._tables.allocation
        block, is_bound = allocation.block_of(address), allocation.is_bound(address)
        return OwnerRow(address, runtime, block, is_bound)

    # ---- of any node, as the engine has them

    def there(self, row: OwnerRow) -> None:
        """Apply a row."""
        self._found(row.key)
        self._tables.mirror(row.runtime, row.address, row.block, is_bound=row.is_bound)

    def gone(self, row: OwnerRow) -> None:
        """Apply that there is none any more."""
        self._tables.own(self._tables.allocation.mirror_gone(row.address))

    # ---- of a session of this node, removed by another

    def missing(self, row: OwnerRow) -> None:
        """Note that a row has gone: it was removed, or the engine has lost all rows.

        In the second case the node is about to be fenced, and until then its sessions keep what
        they own. Which case it is the next renewal of the node's lease tells.
        """
        self._missing[row.key] = row

    def asked(self) -> None:
        """Note that the lease is renewed, which the engine does only if it has its row."""
        self._asked_about.update(self._missing)
        self._missing.clear()

    def renewed(self) -> None:
        """Apply what had gone before: the engine has not lost all rows."""
        for row in self._asked_about.values():
            self.gone(row)
        self._asked_about.clear()

    def _found(self, key: str) -> None:
        self._missing.pop(key, None)
        self._asked_about.pop(key, None)

    def forget(self) -> None:
        """Apply nothing of that: the node is fenced."""
        self._missing.clear()
        self._asked_about.clear()
