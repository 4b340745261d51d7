"""The sessions that one node of a group has, and how they move from node to node.

A node takes up a session with a row that names the node and a higher epoch than the row before.
The engine makes one such write only, as each expects the same revision: of two nodes that take up
a session at once one loses, and gives its copy up. So does the node that had the session, as soon
as it hears of the row, whatever it has written itself meanwhile. The link that asked is answered
when the row is written, so no runtime is told that it has a session that another node has won.

The row of the engine is always right, and without a row there is no session. A row that names
this node, though it has no such session, is a write that was given up and was made after all: it
is removed.
"""

from typing import Final, Protocol

import attrs

from fsm.group.kinds import GroupRow, Holder, SessionRow
from specs.reply_code import TAKEN_OVER


@attrs.frozen(slots=True)
class GiveUp:
    """A session whose copy at this node ends: its link is closed, what waits is handed over.

    Attributes:
        to: The process that has the session; None: none has it.
        why: Half a sentence.
    """

    runtime: str
    to: Holder | None
    why: str


class MovesPort(Protocol):
    """What the sessions of a node ask of their host; no method calls them back."""

    def put_row(self, key: str, row: SessionRow | None) -> None:
        """Write the row of a session; None: remove it."""

    def give_up(self, session: GiveUp) -> None:
        """End this node's copy of a session."""


class MovesCore:
    """The sessions of one node: from when it decides to have them until it gives them up.

    Args:
        port: The host.
    """

    def __init__(self, port: MovesPort) -> None:
        self._port: Final = port
        self.own: Final = dict[str, SessionRow]()

    # ---- what this node decides

    def keep(self, row: SessionRow, before: GroupRow | None) -> SessionRow:
        """Have a session: open it, take it up, or change what is stored of it.

        Args:
            row: Names this process as the holder; its epoch is not looked at.
            before: The row as the mirror knows it; None: there is none.

        Returns:
            The row to be written, with its epoch.
        """
        mine = self.own.get(row.runtime)
        known = [each.epoch for each in (before, mine) if isinstance(each, SessionRow)]
        epoch = max(known, default=0)
        is_same = isinstance(before, SessionRow) and before.holder == row.holder
        kept = attrs.evolve(row, epoch=epoch if is_same else epoch + 1)
        self.own[row.runtime] = kept
        return kept

    def end(self, runtime: str) -> bool:
        """End a session for good; return whether this node had it, so that its row is to go."""
        return self.own.pop(runtime, None) is not None

    def fence(self) -> None:
        """Give up all sessions: others may have them, and their rows stay for these."""
        self.own.clear()

    # ---- what comes from the engine

    def take_row(self, row: SessionRow, here: Holder) -> None:
        """Take the row of a session that this node has not written, or that was made late.

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
            # An earlier decision of this node was made late, and a later one was lost by that.
            self._port.put_row(row.key, self.keep(mine, row))

    def take_removal(self, runtime: str) -> None:
        """Take that the row of a session has gone, which this node has not removed."""
        self._yield(runtime, None, "its row was removed")

    def _yield(self, runtime: str, to: Holder | None, why: str) -> None:
        if self.own.pop(runtime, None) is not None:
            self._port.give_up(GiveUp(runtime, to, why))
