"""The graph of waits: an actor whose wait would close a cycle gets an error at once.

An edge exists while the task that serves the mailbox of an actor is blocked on another actor:
in an `ask` that the other still has to handle, in a `tell` into its full mailbox, in its start or
stop. Spawned work of an actor has no edges: the mailbox is served meanwhile.
"""

from contextvars import ContextVar
from typing import Final, final

import attrs
import trio

from actors.kit.errors import DeadlockError


@final
@attrs.define(eq=False)
class Party:
    """One actor, as a node of the graph."""

    name: str
    waits: "list[Wait]" = attrs.field(factory=list)


@final
@attrs.define(eq=False)
class Wait:
    """An edge: `who` cannot continue before `target` does.

    Attributes:
        is_over: Set when the target has done its part, even if the waiting task has not run yet.
    """

    who: Party
    target: Party
    is_over: bool = False


SERVING: Final[ContextVar[Party | None]] = ContextVar("SERVING", default=None)
"""The actor whose mailbox the current task serves; None: it serves none."""


async def begin_wait(target: Party) -> Wait | None:
    """Record that the current actor is about to wait for `target`.

    If cancelled, no edge was recorded.

    Returns:
        The edge, to be ended by `end_wait`; None outside of actors.

    Raises:
        DeadlockError: The target waits for the current actor, directly or through others.
    """
    who = SERVING.get()
    if who is None:
        return None
    if _path(target, who):
        # An actor of the circle may be free already and just not have run yet:
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
    """Remove the edge."""
    if wait is not None:
        wait.who.waits.remove(wait)


def _path(source: Party, goal: Party) -> tuple[str, ...]:
    """Return the names on a path of edges from source to goal; () if there is none."""
    paths: list[tuple[Party, tuple[str, ...]]] = [(source, (source.name,))]
    seen = {id(source)}
    while paths:
        party, names = paths.pop()
        if party is goal:
            return names
        for wait in party.waits:
            if not wait.is_over and id(wait.target) not in seen:
                seen.add(id(wait.target))
                paths.append((wait.target, (*names, wait.target.name)))
    return ()
