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

from collections.abc import Mapping
from typing import TypeAlias, final

import attrs

from fsm.group.kinds import GroupRow, Holder, SessionRow, session_key
from fsm.group.rows import Applied, Change, Lost, Remove, RowNews, Withdrawn
from specs.reply_code import TAKEN_OVER


@final
@attrs.frozen(slots=True)
class GiveUp:
    """End this node's copy of a session: close its link, and hand over what waits.

    Attributes:
        to: The process that has the session; None: none has it.
        why: Half a sentence.
    """

    runtime: str
    to: Holder | None
    why: str


Effect: TypeAlias = GiveUp | Change | Remove


@final
class MovesCore:
    """The sessions of one node: from when it decides to have them until it gives them up."""

    def __init__(self) -> None:
        self._own: dict[str, SessionRow] = {}

    @property
    def own(self) -> Mapping[str, SessionRow]:
        """The rows of the sessions that this node has, by runtime."""
        return self._own

    # ---- what this node decides

    def keep(self, row: SessionRow, before: GroupRow | None, ticket: int | None = None) -> Change:
        """Have a session: open it, take it up, or change what is stored of it.

        Args:
            row: Names this process as the holder; its epoch is not looked at.
            before: The row as the mirror knows it; None: there is none.
            ticket: Number of the link that waits until it is written; None: none waits.

        Returns:
            The row to be written, with its epoch.
        """
        mine = self._own.get(row.runtime)
        known = [one.epoch for one in (before, mine) if isinstance(one, SessionRow)]
        epoch = max(known, default=0)
        is_same = isinstance(before, SessionRow) and before.holder == row.holder
        kept = attrs.evolve(row, epoch=epoch if is_same else epoch + 1)
        self._own[row.runtime] = kept
        return Change(kept, ticket)

    def end(self, runtime: str) -> list[Effect]:
        """End a session for good, if this node has it."""
        had = self._own.pop(runtime, None)
        return [] if had is None else [Remove(session_key(runtime))]

    def fenced(self) -> list[GiveUp]:
        """Give up all sessions: others may have them, and their rows stay for these."""
        had = tuple(self._own)
        self._own.clear()
        return [GiveUp(runtime, None, "the node has lost its lease") for runtime in had]

    # ---- what comes from the engine

    def feed(self, happened: RowNews, here: Holder) -> list[Effect]:
        """Take what the mirror says of the row of a session; return the effects, in order.

        Args:
            happened: An effect of the mirror; one about another kind of row has no effect here.
            here: This process.
        """
        match happened:
            case Applied(SessionRow() as row):
                return self._there(row, here)
            case Withdrawn(SessionRow(runtime)) | Lost(_, _, SessionRow(runtime), None):
                return self._yield(runtime, None, "its row was removed")
            case Lost(_, _, _, SessionRow() as there):
                return self._there(there, here)
            case _:
                return []

    def _there(self, row: SessionRow, here: Holder) -> list[Effect]:
        mine = self._own.get(row.runtime)
        if row.holder != here:
            why = f"node {row.holder.node} has the session"
            if mine is not None and row.kept is not None and row.kept.has_displaced(mine.kept):
                why = TAKEN_OVER
            return self._yield(row.runtime, row.holder, why)
        if mine is None:
            return [Remove(row.key)]
        # An earlier decision of this node was made late, and a later one was lost by that.
        return [] if mine == row else [self.keep(mine, row)]

    def _yield(self, runtime: str, to: Holder | None, why: str) -> list[Effect]:
        had = self._own.pop(runtime, None)
        return [] if had is None else [GiveUp(runtime, to, why)]
