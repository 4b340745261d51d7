"""Crashes of actors, and the online monitor of steps that no table declares (OBS-06).

`Crash` is the one place where any exception is caught. A step without a row raises, and the state
does not change: a crash like any other, and the supervisor of the actor decides. Every supervisor
passes the exceptions of its children to its monitor, which records each refused step, wherever in
the actor it was tried: in `start` or `stop`, in a message, or in spawned work.
"""

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Final, final
from weakref import WeakSet

from actors.kit.counters import Counters
from actors.kit.log import get_logger
from actors.kit.trace import NULL_TRACER, Tracer, refused_fact
from fsm.errors import UndeclaredTransitionError
from specs.trace import ABSENT


@final
class Crash:
    """Hold an exception of the block, so that a supervisor can decide.

    Cancellation and interrupts of the interpreter pass through. A group of a single exception
    counts as that exception.

    Args:
        heard: Called with the exception at once. Of a group that also holds cancellation or an
            interrupt, it is called with the exceptions, and the rest passes through; without it
            such a group passes through as a whole.

    Attributes:
        error: The exception; None if there was none.
    """

    __slots__ = ("_heard", "error")

    def __init__(self, heard: Callable[[Exception], None] | None = None) -> None:
        self._heard: Final = heard
        self.error: Exception | None = None

    def __enter__(self) -> "Crash":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if isinstance(error, Exception):
            self._hold(error)
            return True
        if self._heard is not None and isinstance(error, BaseExceptionGroup):
            errors, rest = error.split(Exception)
            if isinstance(errors, Exception) and rest is not None:
                self._hold(errors)
                raise rest from None
        return False

    def _hold(self, error: Exception) -> None:
        while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        self.error = error
        if self._heard is not None:
            self._heard(error)


_log = get_logger("actors.kit")


@final
class Monitor:
    """Traces, counts and logs the refused steps of one process, each once.

    Args:
        counters: Counts them, by machine; other parts of the process count there, too.
    """

    def __init__(self, tracer: Tracer = NULL_TRACER, counters: Counters | None = None) -> None:
        self._tracer = tracer
        self.counters = Counters() if counters is None else counters
        self._reported: WeakSet[UndeclaredTransitionError] = WeakSet()

    def crashed(self, actor: str, error: Exception) -> None:
        """Record the refused steps in a crash; never waits or raises.

        They are also found in groups, causes and contexts of the exception: an actor that has
        failed may fail again while it stops. An exception that passes through several actors is
        recorded for the first.

        Args:
            actor: Name of the crashed actor.
            error: The error.
        """
        for one in _all_of(error):
            if isinstance(one, UndeclaredTransitionError) and one not in self._reported:
                self._reported.add(one)
                self._report(actor, one)

    def _report(self, actor: str, refused: UndeclaredTransitionError) -> None:
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
