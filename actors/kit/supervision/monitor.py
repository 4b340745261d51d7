"""The online monitor: steps that no table declares are seen when they are tried (OBS-06).

An actor steps its entities by their tables. A step without a row raises, and the state does
not change. The error is a crash like any other, and the supervisor of the actor decides. Every
supervisor tells its monitor the exceptions of its children, and the monitor records each
refused step, wherever in the actor it was tried: in `start` or `stop`, in a message, or in
spawned work.
"""

from collections.abc import Iterator
from typing import final
from weakref import WeakSet

import structlog

from actors.kit.counting.counters import Counters
from actors.kit.trace import NULL_TRACER, Tracer, refused_fact
from fsm.errors import UndeclaredTransitionError
from specs.trace import ABSENT

__all__ = ["Monitor"]

_log = structlog.get_logger("actors.kit")


@final
class Monitor:
    """Traces, counts and logs the refused steps of one process, each once.

    Args:
        tracer: Takes their trace records.
        counters: Counts them, by machine; other parts of the process count there, too.
    """

    def __init__(self, tracer: Tracer = NULL_TRACER, counters: Counters | None = None) -> None:
        self._tracer = tracer
        self.counters = Counters() if counters is None else counters
        self._told: WeakSet[UndeclaredTransitionError] = WeakSet()

    def crashed(self, actor: str, error: Exception) -> None:
        """Record the refused steps in a crash; never waits or raises.

        They are also found in groups, causes and contexts of the exception: an actor that has
        failed may fail again while it stops. An exception that passes through several actors is
        recorded for the first.

        Args:
            actor: Name of the actor.
            error: The exception that it crashed with.
        """
        for one in _all_of(error):
            if isinstance(one, UndeclaredTransitionError) and one not in self._told:
                self._told.add(one)
                self._tell(actor, one)

    def restarted(self, actor: str) -> None:
        """Count a restart of an actor; its crash was recorded before."""
        self.counters.restart(actor)

    def _tell(self, actor: str, refused: UndeclaredTransitionError) -> None:
        self.counters.violation(refused.machine)
        self._tracer.record(actor, refused_fact(refused))
        _log.error(
            "monitor violation",
            actor=actor,
            machine=refused.machine,
            key=refused.key,
            state=str(refused.state or ABSENT),
            trigger=refused.trigger,
        )


def _all_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception with all its members, causes and contexts, the oldest first, each once."""
    found: dict[int, BaseException] = {}
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if id(one) not in found:
            found[id(one)] = one
            inside = one.exceptions if isinstance(one, BaseExceptionGroup) else ()
            before = (one.__cause__, one.__context__)
            waiting += [*inside, *(each for each in before if each is not None)]
    yield from reversed(found.values())
