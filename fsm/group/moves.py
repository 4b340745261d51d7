"""The sessions that one node of a group has, and how they move from node to node.

A node takes up a session with a row that names the node and has a higher epoch than the row before.
The engine makes only one such write, as each expects the same revision: if two nodes take up a
session at once, one loses, and gives up its copy. So does the node that had the session, as soon as
it gets the row, whatever it has written itself meanwhile. The link that asked is answered when the
row is written, so no runtime is told that it has a session that another node has won.

The row of the engine is always right, and without a row there is no session. If a row names this
node, though it has no such session, a write that was given up was made after all: the row is
removed.
"""

from typing import Final, Protocol

import attrs

from fsm.group.kinds import GroupRow, Holder, SessionRow
from specs.reply_code import TAKEN_OVER


@attrs.frozen(slots=True)
class GiveUp:
    """A session whose copy at this node ends: its link is closed, its queue is handed over.

    Attributes:
        to: The process that has the session; None: no process has it.
        why: The reason, as half a sentence.
    """

    runtime: str
    to: Holder | None
    why: str


class MovesPort(Protocol):
    """The calls of a node's sessions to their host; none of them calls the core."""

    def put_row(self, key: str, row: SessionRow | None) -> None:
        """Write the row of a session; None: remove it."""

    def give_up(self, session: GiveUp) -> None:
        """End this node's copy of a session."""


class MovesCore:
    """The sessions of one node, from the decision to have them until they are given up.

    Args:
        port: The host.
    """

    def __init__(self, port: MovesPort) -> None:
        self._port: Final = port
        self.own: Final = dict[str, SessionRow]()

    # ---- decisions of this node

    def keep(self, row: SessionRow, before: GroupRow | None) -> SessionRow:
        """Open a session, take it up, or change its stored data.

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
        """End a session for good; return whether this node had it and its row must be removed."""
        return self.own.pop(runtime, None) is not None

    def fence(self) -> None:
        """Give up all sessions: others may have them, and need the rows."""
        self.own.clear()

    # ---- rows from the engine

    def take_row(self, row: SessionRow, here: Holder) -> None:
        """Take a row of a session that this node has not written, or that was written late.

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
            # An earlier write of this node was made late, so that a later one was lost.
            self._port.put_row(row.key, self.keep(mine, row))

    def take_removal(self, runtime: str) -> None:
        """Note that the row of a session was removed, but not by this node."""
        self._yield(runtime, None, "its row was removed")

    def _yield(self, runtime: str, to: Holder | None, why: str) -> None:
        if self.own.pop(runtime, None) is not None:
            self._port.give_up(GiveUp(runtime, to, why))
