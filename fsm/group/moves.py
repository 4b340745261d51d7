"""The sessions that one node of a group has, and how sessions move from node to node.

A node takes over a session by writing the session's row with its own name and a higher epoch than
before. The engine, the shared store, makes only one such write, since each expects the same
revision: if two nodes take over a session at once, one write fails, and that node ends its copy. So
does the node that had the session before, as soon as it gets the new row, whatever it has written
itself meanwhile. The link that requested the session is answered only when the row is written, so
no runtime is told that it has a session that another node has won.

The row in the engine is always right, and without a row no session exists. If a row names this
node, though it has no such session, a write that the node had abandoned was made after all: the row
is removed.
"""

from typing import Final, Protocol

import attrs

from fsm.group.kinds import GroupRow, Holder, SessionRow
from specs.reply_code import TAKEN_OVER


@attrs.frozen(slots=True)
class GiveUp:
    """Instruction to end this node's copy of a session: close its link, hand over its queue.

    Attributes:
        to: The process that has the session; None: no process has it.
        why: The reason, as half a sentence.
    """

    runtime: str
    to: Holder | None
    why: str


class MovesPort(Protocol):
    """Callbacks of `MovesCore` to its host; none of them may call the core."""

    def put_row(self, key: str, row: SessionRow | None) -> None:
        """Write the row of a session to the shared store; None: remove the row."""

    def give_up(self, session: GiveUp) -> None:
        """End this node's copy of a session: another process has it, or its row was removed."""


class MovesCore:
    """Rows of the sessions that this node has, including sessions whose row is still being written.

    Args:
        port: The host.
    """

    def __init__(self, port: MovesPort) -> None:
        self._port: Final = port
        self.own: Final = dict[str, SessionRow]()

    # ---- decisions of this node

    def keep(self, row: SessionRow, before: GroupRow | None) -> SessionRow:
        """Return the row to write for a session that this node opens, takes over or changes.

        Args:
            row: A row that names this process as the holder; its epoch is ignored.
            before: The row that the mirror knows; None: there is none.

        Returns:
            The row to be written, with its epoch.
        """
        current = self.own.get(row.runtime)
        known = [each.epoch for each in (before, current) if isinstance(each, SessionRow)]
        epoch = max(known, default=0)
        is_same = isinstance(before, SessionRow) and before.holder == row.holder
        written = attrs.evolve(row, epoch=epoch if is_same else epoch + 1)
        self.own[row.runtime] = written
        return written

    def end(self, runtime: str) -> bool:
        """End a session for good; return whether this node had it and must remove its row."""
        return self.own.pop(runtime, None) is not None

    def fence(self) -> None:
        """Forget all sessions but leave their rows, since other nodes may have taken them over."""
        self.own.clear()

    # ---- rows from the engine

    def take_row(self, row: SessionRow, here: Holder) -> None:
        """React to a row of a session from the shared store: another node's, or a late own write.

        Args:
            row: The row.
            here: This process.
        """
        mine = self.own.get(row.runtime)
        if row.holder != here:
            why = f"node {row.holder.node} has the session"
            if mine is not None and row.kept is not None and row.kept.has_displaced(mine.kept):
                why = TAKEN_OVER
            self._yield(row.runtime, row.holder, why)
        elif mine is None:
            self._port.put_row(row.key, None)
        elif mine != row:
            # An earlier write of this node was made late, so that its later write failed.
            self._port.put_row(row.key, self.keep(mine, row))

    def take_removal(self, runtime: str) -> None:
        """End this node's copy of a session whose row was removed by another node."""
        self._yield(runtime, None, "its row was removed")

    def _yield(self, runtime: str, to: Holder | None, why: str) -> None:
        if self.own.pop(runtime, None) is not None:
            self._port.give_up(GiveUp(runtime, to, why))
