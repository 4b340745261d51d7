"""Who waits for whom: an actor that would close a circle is told at once.

An edge stands while the task that serves an actor's mailbox is blocked on another
actor: in an ask that the other still has to handle, in a tell into its full
mailbox, in its start or stop. Work that an actor spawned may wait as it likes: the
mailbox goes on.
"""

from contextvars import ContextVar
from typing import Final, final

import attrs
import trio

from actors.kit.errors import DeadlockError

__all__ = ["SERVING", "Party", "Wait", "begin_wait", "end_wait"]


@final
@attrs.define(eq=False)
class Party:
    """One actor, as somebody who waits and is waited for."""

    name: str
    waits: "list[Wait]" = attrs.field(factory=list)


@final
@attrs.define(eq=False)
class Wait:
    """An edge: `who` cannot go on before `target` does.

    Attributes:
        is_over: Set as soon as the target has done its part, though the waiting
            task may not have run yet.
    """

    who: Party
    target: Party
    is_over: bool = False


SERVING: Final[ContextVar[Party | None]] = ContextVar("SERVING", default=None)
"""The actor whose mailbox the current task serves, if it serves one."""


async def begin_wait(target: Party) -> Wait | None:
    """Note that the current actor is about to wait for `target`.

    Returns:
        The edge, to be ended by `end_wait`; None outside of actors.

    Raises:
        DeadlockError: The target waits, over some others perhaps, for us.
    """
    who = SERVING.get()
    if who is None:
        return None
    if _path(target, who):
        # Somebody of the circle may be free already and just not have run yet:
        # after two passes of the scheduler he has.
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        cycle = _path(target, who)
        if cycle:
            raise DeadlockError((who.name, *cycle))
    wait = Wait(who, target)
    who.waits.append(wait)
    return wait


def end_wait(wait: Wait | None) -> None:
    """Take the edge away again."""
    if wait is not None:
        wait.who.waits.remove(wait)


def _path(source: Party, goal: Party) -> tuple[str, ...]:
    """Return the names on a way of edges from source to goal; () if there is none."""
    ways: list[tuple[Party, tuple[str, ...]]] = [(source, (source.name,))]
    seen = {id(source)}
    while ways:
        party, names = ways.pop()
        if party is goal:
            return names
        for wait in party.waits:
            if not wait.is_over and id(wait.target) not in seen:
                seen.add(id(wait.target))
                ways.append((wait.target, (*names, wait.target.name)))
    return ()
