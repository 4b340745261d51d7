"""The sessions and subscribers of other nodes, as one node of a group knows them.

The rows of the engine name a holder each: a process of a node. A row whose holder is no member of
the group belongs to nobody: its session waits for its runtime, for `GROUP_PATIENCE` seconds from
when this node knew, and its subscribers get nothing.
"""

import math
from collections.abc import Callable, Iterator
from typing import Final

import attrs

from fsm.group.kinds import Holder, PathRow, SessionRow
from fsm.group.order import SenderOrder
from fsm.session.node_session_io import Credentials, KeptSession
from specs.limits.group import GROUP_PATIENCE


class Homes:
    """Where runtimes are that are not here; the host says what has changed, and when.

    Args:
        is_live: Returns whether a process of a node is a member of the group.
        elsewhere: Gets the nodes with subscribers, by address.
        order: Of the messages of a runtime, whose home may change.

    Attributes:
        order: As above.
        sessions: The rows of runtimes that have a session elsewhere, or had one at a node that is
            gone.
    """

    def __init__(
        self,
        is_live: Callable[[Holder], bool],
        elsewhere: dict[str, dict[str, None]],
        order: SenderOrder,
    ) -> None:
        self.order: Final = order
        self._is_live: Final = is_live
        self._elsewhere: Final = elsewhere
        self.sessions: Final = dict[str, SessionRow]()
        self._left: dict[str, float] = {}
        self._paths: dict[str, dict[str, PathRow]] = {}

    def __len__(self) -> int:
        return len(self.sessions)

    def row(self, runtime: str) -> SessionRow | None:
        """Return the session of a runtime; None: it has none elsewhere."""
        return self.sessions.get(runtime)

    def node_of(self, runtime: str) -> str | None:
        """Return the node that has the session of a runtime; None: no member has it."""
        row = self.sessions.get(runtime)
        return row.holder.node if row is not None and runtime not in self._left else None

    def is_for_its_node_only(self, runtime: str) -> bool:
        """Return whether the node that has the session of a runtime cannot hand it over."""
        row = self.sessions.get(runtime)
        return row is not None and row.kept is None and self.node_of(runtime) is not None

    def kept(self, runtime: str, offset: float) -> KeptSession | None:
        """Return what this node needs to take up a session; None: no node can.

        Args:
            runtime: Address of the runtime.
            offset: What is added to seconds since the epoch for those of the host's clock.
        """
        row = self.sessions.get(runtime)
        if row is None or row.kept is None:
            return None
        # Whether it is linked to a live node is not known here, so it is no one's to take.
        is_known = row.kept.is_taken_up or self.node_of(runtime) is not None
        kept = attrs.evolve(row.kept, is_taken_up=is_known)
        if row.identity is None:
            return kept
        user, issuer, until = row.identity.user, row.identity.issuer, row.identity.until
        return attrs.evolve(kept, credentials=Credentials(user, issuer, until + offset))

    # ---- what changes

    def session(self, row: SessionRow, now: float) -> None:
        """Note a session of another node.

        Args:
            row: The session.
            now: Seconds on the host's clock.
        """
        self.sessions[row.runtime] = row
        if self._is_live(row.holder):
            self._left.pop(row.runtime, None)
        else:
            self._left.setdefault(row.runtime, now)

    def session_over(self, runtime: str) -> None:
        """Note that a session is over, or is this node's now."""
        self.sessions.pop(runtime, None)
        self._left.pop(runtime, None)

    def path(self, row: PathRow) -> None:
        """Note that another node has subscribers."""
        self._paths.setdefault(row.holder.node, {})[row.resource] = row
        if self._is_live(row.holder):
            self._elsewhere.setdefault(row.resource, {})[row.holder.node] = None
        else:
            self._drop(row)

    def path_over(self, row: PathRow) -> None:
        """Note that another node has none any more."""
        self._paths.get(row.holder.node, {}).pop(row.resource, None)
        self._drop(row)

    def node_moved(self, node: str, now: float) -> None:
        """Look again at what a node holds: it has come or gone, or is another process.

        Args:
            node: Id of the node.
            now: Seconds on the host's clock.
        """
        for row in [one for one in self.sessions.values() if one.holder.node == node]:
            self.session(row, now)
        for path in list(self._paths.get(node, {}).values()):
            self.path(path)

    def _drop(self, row: PathRow) -> None:
        nodes = self._elsewhere.get(row.resource)
        if nodes is not None:
            nodes.pop(row.holder.node, None)
            if not nodes:
                del self._elsewhere[row.resource]

    # ---- what nobody holds

    def unheld_paths(self) -> Iterator[PathRow]:
        """Yield the rows of subscribers at processes that are no members."""
        for rows in self._paths.values():
            for row in rows.values():
                if not self._is_live(row.holder):
                    yield row

    def deadline(self) -> float:
        """Return when `overdue` has a runtime to name."""
        return next(iter(self._left.values()), math.inf) + GROUP_PATIENCE

    def overdue(self, now: float) -> list[str]:
        """Return the runtimes that have not come back in time; each again after as long.

        Args:
            now: Seconds on the host's clock.
        """
        late = [one for one, since in self._left.items() if since + GROUP_PATIENCE <= now]
        for runtime in late:
            # As the last one: the order is that of the times.
            del self._left[runtime]
            self._left[runtime] = now
        return late
