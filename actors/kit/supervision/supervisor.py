"""Supervision: which children are restarted after a crash, and when the supervisor gives up.

A supervisor keeps its nursery to start tasks in later. `open_supervisor` opens that nursery,
and it is left when every child has stopped.

An incarnation is one life of the actor of a child, from `start` to `stop`; a restart begins
another.
"""

import math
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import asynccontextmanager
from contextvars import Context
from enum import Enum, auto
from types import TracebackType
from typing import Final, Generic, Never, Self, TypeAlias, TypeVar, cast, final
from weakref import WeakSet

import attrs
import trio

from actors.kit.counters import Counters
from actors.kit.errors import ActorStoppedError, NameTakenError, PartEndedError, RestartLimitError
from actors.kit.log import get_logger, quiet_libraries
from actors.kit.supervision.actor import (
    Actor,
    ActorRef,
    Asked,
    DeadLetters,
    Mailbox,
    Nothing,
    log_dead_letter,
)
from actors.kit.trace import NULL_TRACER, Tracer, refused_fact
from fsm.table import UndeclaredTransitionError
from specs.limits import protocol as limits
from specs.limits.protocol import GOODBYE_TIMEOUT, IDLE_WORKERS
from specs.trace import ABSENT

# Pieces of work of one actor that run side by side, in tasks that are used again.

T = TypeVar("T")
M = TypeVar("M")


class _Piece:
    """Coroutine with its own context that reports when it waits for the first time.

    It is awaited: all that the coroutine yields goes to Trio, and comes from there, in one task.

    Attributes:
        has_waited: Whether it has waited.
    """

    __slots__ = ("_context", "_coroutine", "_waits", "has_waited")

    def __init__(
        self,
        coroutine: Coroutine[object, object, None],
        context: Context,
        waits: Callable[[], None],
    ) -> None:
        self._coroutine = coroutine
        self._context = context
        self._waits = waits
        self.has_waited = False

    def __await__(self) -> Generator[object, object, None]:
        # Of a generator it has what an `await` uses.
        return cast("Generator[object, object, None]", self)

    def __next__(self) -> object:
        trap = self._context.run(self._coroutine.send, None)
        if not self.has_waited:
            self.has_waited = True
            self._waits()
        return trap

    def send(self, value: object) -> object:
        """Go on with what Trio gives: it has waited."""
        return self._context.run(self._coroutine.send, value)

    def throw(self, error: BaseException) -> object:
        """Go on likewise, with an exception."""
        return self._context.run(self._coroutine.throw, error)

    def close(self) -> None:
        """End the coroutine."""
        self._coroutine.close()


class Workers(Generic[T]):
    """Pool of tasks that run jobs of an actor; jobs begin in the order in which they were given.

    Args:
        actor: The actor; it runs the tasks, and an exception of a piece is a crash of it.
        work: Runs one piece. It is also called for what was given when the actor is stopped,
            and is cancelled at its first checkpoint then.
    """

    def __init__(
        self, actor: Actor[M], work: Callable[[T], Coroutine[object, object, None]]
    ) -> None:
        self._spawn = actor.spawn
        self._work = work
        self._given: deque[tuple[T, Context]] = deque()
        self._idle: list[trio.lowlevel.Task] = []
        self._running: dict[trio.CancelScope, T] = {}
        self._is_served = False

    def give(self, piece: T, context: Context) -> None:
        """Queue a job; it runs when all earlier jobs have ended or wait.

        Args:
            piece: The job.
            context: The context that it runs in, and nothing else.
        """
        self._given.append((piece, context))
        if not self._is_served:
            self._call()

    def list_jobs(self) -> list[T]:
        """Return the jobs that wait, in the middle or to begin."""
        return [*self._running.values(), *(piece for piece, _ in self._given)]

    def cancel(self, piece: T) -> None:
        """Cancel a job that has begun, at its next checkpoint; not to be called by a job."""
        for scope, running in self._running.items():
            if running is piece:
                scope.cancel()

    def _call(self) -> None:
        self._is_served = True
        if self._idle:
            trio.lowlevel.reschedule(self._idle.pop())
        else:
            self._spawn(self._serve)

    def _pass_on(self) -> None:
        self._is_served = False
        if self._given:
            self._call()

    async def _serve(self) -> None:
        while True:
            # A piece that leaves a cancel scope open is found here: it is a crash.
            with trio.CancelScope() as scope:
                await self._turn(scope)
            if len(self._idle) >= IDLE_WORKERS:
                return
            await self._be_called()

    async def _turn(self, scope: trio.CancelScope) -> None:
        """Run queued jobs in a scope until none is left or a job has waited.

        Only the last job of a turn waits, so the scope of the turn is that of the waiting job.
        """
        left, running = BATCH, None
        try:
            while self._given:
                piece, context = self._given.popleft()
                self._running[scope] = piece
                running = _Piece(self._work(piece), context, self._pass_on)
                await running
                if running.has_waited:
                    return
                left -= 1
                if not left:
                    left = BATCH
                    del self._running[scope]
                    # Each piece runs in any case, as a requester waits for its answer.
                    await trio.lowlevel.cancel_shielded_checkpoint()
        finally:
            self._running.pop(scope, None)
            if running is None or not running.has_waited:
                self._pass_on()

    async def _be_called(self) -> None:
        task = trio.lowlevel.current_task()
        self._idle.append(task)

        def abort(_: object) -> trio.lowlevel.Abort:
            self._idle.remove(task)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)


# Crashes of actors, and the online monitor of steps that no table declares (OBS-06).


class Crash:
    """Context manager that catches an exception of its block, so that a supervisor can decide.

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

    def __enter__(self) -> Self:
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


class Monitor:
    """Recorder of undeclared state transitions of one process: traces, counts and logs each once.

    Args:
        counters: Counts them, by machine; other parts of the process count there, too.
    """

    def __init__(self, tracer: Tracer = NULL_TRACER, counters: Counters | None = None) -> None:
        self._tracer = tracer
        self.counters = Counters() if counters is None else counters
        self._reported: WeakSet[UndeclaredTransitionError] = WeakSet()

    def record_crash(self, actor: str, error: Exception) -> None:
        """Record the undeclared state transitions in a crash; never waits or raises.

        They are also found in groups, causes and contexts of the exception: an actor that has
        failed may fail again while it stops. An exception that passes through several actors is
        recorded for the first.

        Args:
            actor: Name of the crashed actor.
            error: The error.
        """
        for each in _all_of(error):
            if isinstance(each, UndeclaredTransitionError) and each not in self._reported:
                self._reported.add(each)
                self._report(actor, each)

    def _report(self, actor: str, refused: UndeclaredTransitionError) -> None:
        self.counters.violations[refused.machine] += 1
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


BATCH: Final = 64
"""Messages handled between two checkpoints (MEASURED C: the fairness of a batch)."""


class Incarnation(Generic[M]):
    """One life of an actor, from `start` to `stop`, on a mailbox that outlives the actor object.

    Attributes:
        scope: Cancelling it ends this life by force; `stop` still runs.
        ended: Set when nothing of this life runs any more.
        has_started: Whether `start` has returned, and was not cancelled.
        error: The exception that this life crashed with; until its end, that of the last one.
        stop_by: Trio time after which `stop` is cancelled, too.
    """

    def __init__(self, mailbox: Mailbox[M], error: Exception | None = None) -> None:
        self._mailbox = mailbox
        self.error = error
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        self.has_started = False
        self.stop_by = math.inf

    async def run(
        self, make: Callable[[], Actor[M]], started: Callable[[], None]
    ) -> Exception | None:
        """Live until the mailbox is closed, the actor finishes, crashes or is cancelled.

        Args:
            make: Builds the actor.
            started: Called when its `start` has returned.

        If cancelled before `started` was called, this life ends; afterwards only its `scope`
        ends it, so that a supervisor keeps its order of stopping.

        Returns:
            The exception that it crashed with; None if it ended in order or by `scope`.
        """
        try:
            with Crash() as crash:
                actor, is_to_stop = make(), False
                try:
                    # Each wake-up of an actor passes all frames up to here: one for a whole life.
                    with self.scope:
                        async with trio.open_nursery() as nursery:
                            actor.enter(self._mailbox, nursery, self._mailbox.wake)
                            await actor.start()
                            is_to_stop = True
                            # A starter that was cancelled meanwhile would wait for the shielded
                            # task for ever.
                            await trio.lowlevel.checkpoint_if_cancelled()
                            self.has_started = True
                            self.scope.shield = True
                            started()
                            del started  # or all of the start would be kept for a whole life
                            await self._serve(actor)
                            await actor.closing()
                            nursery.cancel_scope.cancel()
                finally:
                    actor.leave()
                    until = min(trio.current_time() + GOODBYE_TIMEOUT, self.stop_by)
                    if is_to_stop:
                        with trio.CancelScope(deadline=until, shield=True):
                            await actor.stop()
            self._mailbox.lose_taken(crash.error)
            self.error = crash.error
        finally:
            self.ended.set()
        return self.error

    async def _serve(self, actor: Actor[M]) -> None:  # noqa: C901, PLR0912 - a wait in a function of its own is a frame more for each wake-up
        handle, mailbox = actor.handle, self._mailbox
        while not actor.is_finished:
            until = actor.deadline()
            try:
                if until == math.inf:
                    item: M | Asked[M] | Nothing = await mailbox.receive()
                elif until <= trio.current_time():
                    await trio.lowlevel.checkpoint()
                    item = Nothing.YET
                else:
                    item = Nothing.YET
                    with trio.move_on_at(until):
                        item = await mailbox.receive()
            except trio.EndOfChannel:
                item = Nothing.EVER
            if item is Nothing.YET:
                await actor.timed_out()
                # A timer that is always due must not keep messages out.
                item = mailbox.poll()
                if item is Nothing.EVER:
                    await actor.drained()
            if item is Nothing.EVER:
                return
            left = BATCH
            # Once per message of the whole process: no call here that can be spared.
            while not isinstance(item, Nothing):
                if type(item) is not Asked:
                    await handle(item)
                elif item.reply.is_open:
                    mailbox.taken[item.reply] = None
                    await handle(item.message)
                left -= 1
                if actor.is_finished or not left:  # type: ignore[redundant-expr]  # it may be now
                    break
                try:
                    item = mailbox.take_nowait()
                except (trio.WouldBlock, trio.EndOfChannel):
                    break
            await actor.drained()


class Restart(Enum):
    """Rules for when a child that has ended is started again (the terms of OTP)."""

    PERMANENT = auto()
    """Always."""
    TRANSIENT = auto()
    """After a crash only."""
    TEMPORARY = auto()
    """Never."""


@attrs.frozen
class ChildSpec(Generic[M]):
    """The name, factory and restart rule of a child.

    Attributes:
        make: Builds a new actor object for each life.
    """

    name: str
    make: Callable[[], Actor[M]]
    restart: Restart = Restart.PERMANENT
    mailbox: int = limits.MAILBOX


@final
class Child(Generic[M]):
    """Actor under a supervisor, through all its restarts.

    Attributes:
        restarting: Held while it, or what it shares this with, is restarted.
        is_leaving: Whether the child is to stop for good: it is not restarted any more.
    """

    def __init__(self, spec: ChildSpec[M], restarting: trio.Lock) -> None:
        self._make = spec.make
        self.name = spec.name
        self.restart = spec.restart
        self.restarting = restarting
        self.ref = Mailbox[M](spec.name, spec.mailbox)
        self.life = Incarnation(self.ref)
        self.was_started = False
        self.is_leaving = False

    def live(self, started: Callable[[], None]) -> Awaitable[Exception | None]:
        """Return what runs the current life, as `Incarnation.run` does.

        Args:
            started: Called when `start` of the actor has returned.
        """

        def settle() -> None:
            self.was_started = True
            started()

        return self.life.run(self._make, settle)

    async def end_life(self) -> None:
        """End the current life by force, and wait for its end; the mailbox stays.

        If cancelled, the life ends all the same.
        """
        life = self.life
        life.scope.cancel()
        await life.ended.wait()

    async def drain(self, until: float) -> None:
        """Close the mailbox, and let the child handle its messages until a Trio time.

        If cancelled, the mailbox is closed, and the child goes on handling its messages.
        """
        self.is_leaving = True
        self.ref.close()
        with trio.move_on_at(until) as waiting:
            await self.life.ended.wait()
        if waiting.cancelled_caught:
            _log.warning("stopped by force", actor=self.name)

    def close_and_drain(self, dead_letters: DeadLetters) -> None:
        """End the child for good, and hand over the unhandled messages."""
        self.is_leaving = True
        for message in self.ref.close_and_drain(self.life.error):
            dead_letters(self.name, message)


class Strategy(Enum):
    """Rules for which children are restarted when one crashes (the terms of OTP, and `PEERS`)."""

    ONE_FOR_ONE = auto()
    """The one that crashed."""
    PEERS = auto()
    """The one that crashed; at the end all children stop at the same time."""
    REST_FOR_ONE = auto()
    """The one that crashed, and all that were started after it."""
    ONE_FOR_ALL = auto()
    """All children."""


@attrs.frozen
class Intensity:
    """Limit of restarts in a time window, after which a supervisor stops with an error.

    Attributes:
        seconds: Length of the time window in which they are counted.
    """

    restarts: int = 3
    seconds: float = 60.0


_DEFAULT: Final = Intensity()

_STOP_BUDGET: Final = limits.DRAIN_TIMEOUT - 2 * limits.GOODBYE_TIMEOUT
"""Seconds in which all children together must stop, before the remaining ones are cancelled."""


_AnyChild: TypeAlias = Child[Never]
"""A child, whatever its messages are: a supervisor sends none."""


class Supervisor:
    """Supervisor that starts, restarts and stops its child actors; made by `open_supervisor`."""

    def __init__(
        self,
        name: str,
        strategy: Strategy,
        intensity: Intensity,
        dead_letters: DeadLetters,
        monitor: Monitor,
        nursery: trio.Nursery,
    ) -> None:
        self.name = name
        self.dead_letters = dead_letters
        self.monitor = monitor
        self._strategy = strategy
        self._intensity = intensity
        self._nursery = nursery
        self._children: dict[str, _AnyChild] = {}
        self._restarts: deque[float] = deque()
        self._restarting = trio.Lock()
        self._is_stopping = False

    @property
    def children(self) -> tuple[str, ...]:
        """Names of the children, in the order in which they were started."""
        return tuple(self._children)

    def is_up(self, name: str) -> bool:
        """Return whether a child has started and not ended, so that it handles messages."""
        child = self._children.get(name)
        return child is not None and child.life.has_started and not child.life.ended.is_set()

    async def start_child(self, spec: ChildSpec[M]) -> ActorRef[M]:
        """Start a child, and return its reference when its `start` has returned.

        If cancelled, the child is stopped, and there is no such child.

        Raises:
            NameTakenError: There is a child of this name.
            ActorStoppedError: The supervisor is stopping, or another task stopped the child
                before it had started.
            Exception: What making or starting the child raised; there is no such child then.
        """
        if self._is_stopping:
            raise ActorStoppedError(self.name)
        if spec.name in self._children:
            raise NameTakenError(spec.name)
        child = Child(spec, self._restarting if self._restarts_others else trio.Lock())
        known = cast("_AnyChild", child)
        self._children[spec.name] = known
        try:
            await self._begin(known)
        finally:
            if not child.was_started:
                self._forget(known)
        return child.ref

    async def stop_child(self, name: str) -> None:
        """Stop a child in order, and return when it is gone. Idempotent.

        If cancelled, the child is stopped by force, within `DRAIN_TIMEOUT` seconds.
        """
        child = self._children.get(name)
        if child is None:
            return
        try:
            await child.drain(trio.current_time() + limits.GOODBYE_TIMEOUT)
        finally:
            with trio.move_on_after(limits.DRAIN_TIMEOUT, shield=True):
                await child.end_life()
            self._forget(child)

    async def stop_children(self) -> None:
        """Stop all children in order, the last started first; called when the context ends.

        If cancelled, some children still run, and no child can be started any more.
        """
        await self._end_all(self._stop)

    async def kill_children(self) -> None:
        """Stop the remaining children by force, in the same order; each `stop` still runs.

        If cancelled, some children still run, and no child can be started any more.
        """
        await self._end_all(self._kill)

    async def _end_all(self, end: Callable[[_AnyChild, float], Awaitable[None]]) -> None:
        self._is_stopping = True
        until = trio.current_time() + _STOP_BUDGET
        async with trio.open_nursery() as together:
            for child in reversed(list(self._children.values())):
                if self._strategy is Strategy.PEERS:
                    together.start_soon(end, child, until)
                else:
                    await end(child, until)

    async def _stop(self, child: _AnyChild, until: float) -> None:
        child.life.stop_by = until + limits.GOODBYE_TIMEOUT
        await child.drain(min(trio.current_time() + limits.GOODBYE_TIMEOUT, until))
        await self._end(child)

    async def _kill(self, child: _AnyChild, until: float) -> None:
        child.life.stop_by = until
        await self._end(child)

    async def _end(self, child: _AnyChild) -> None:
        await child.end_life()
        self._forget(child)

    async def _begin(self, child: _AnyChild) -> None:
        life = child.life = Incarnation(child.ref, child.life.error)
        await self._nursery.start(self._run, child, life)

    async def _run(
        self,
        child: _AnyChild,
        life: Incarnation[Never],
        task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED,
    ) -> None:
        living = child.live(task_status.started)
        del task_status  # it would keep the nursery of the start for a whole life
        error = await living
        if error is not None:
            self.monitor.record_crash(child.name, error)
        if not life.has_started:
            raise ActorStoppedError(child.name) if error is None else error
        if error is not None:
            _log_crash(child, error)
        async with child.restarting:
            if child.life is not life or not self._may_live(child):
                return
            is_over = child.restart is Restart.TRANSIENT and error is None
            if is_over or child.restart is Restart.TEMPORARY:
                self._forget(child)
            else:
                await self._restart(child, error)

    async def _restart(self, failed: _AnyChild | None, error: Exception | None) -> None:
        while failed is not None:
            self._count_restart(failed, error)
            affected, failed = self._affected_children(failed), None
            for child in reversed(affected):
                await child.end_life()
            for child in affected:
                if child.restart is Restart.TEMPORARY:
                    self._forget(child)
                elif self._may_live(child):
                    with Crash() as crash:
                        await self._begin(child)
                    if (error := crash.error) is not None and self._may_live(child):
                        _log_crash(child, error)
                        failed = child
                        break

    @property
    def _restarts_others(self) -> bool:
        return self._strategy in {Strategy.REST_FOR_ONE, Strategy.ONE_FOR_ALL}

    def _may_live(self, child: _AnyChild) -> bool:
        return not (child.is_leaving or self._is_stopping)

    def _affected_children(self, child: _AnyChild) -> list[_AnyChild]:
        # A child in its very first start is its starter's affair.
        everybody = [other for other in self._children.values() if other.was_started]
        match self._strategy:
            case Strategy.ONE_FOR_ONE | Strategy.PEERS:
                return [child]
            case Strategy.REST_FOR_ONE:
                return everybody[everybody.index(child) :]
            case Strategy.ONE_FOR_ALL:
                return everybody

    def _count_restart(self, child: _AnyChild, error: Exception | None) -> None:
        now = trio.current_time()
        self.monitor.counters.restarts[child.name] += 1
        self._restarts.append(now)
        while self._restarts[0] <= now - self._intensity.seconds:
            self._restarts.popleft()
        if len(self._restarts) > self._intensity.restarts:
            raise RestartLimitError(self.name, child.name) from error
        why = {"why": str(error)} if isinstance(error, PartEndedError) else {}
        _log.warning("part started again", part=child.name, **why)

    def _forget(self, child: _AnyChild) -> None:
        if self._children.get(child.name) is child:
            del self._children[child.name]
            child.close_and_drain(self.dead_letters)


def _log_crash(child: _AnyChild, error: Exception) -> None:
    if not isinstance(error, PartEndedError):
        _log.error("actor crashed", actor=child.name, exc_info=error)


@asynccontextmanager
async def open_supervisor(
    name: str,
    strategy: Strategy = Strategy.ONE_FOR_ONE,
    intensity: Intensity = _DEFAULT,
    dead_letters: DeadLetters = log_dead_letter,
    monitor: Monitor | None = None,
) -> AsyncIterator[Supervisor]:
    """Run a supervisor while the context is open.

    When the context is left, children stop one by one, the last started first; with `PEERS` all at
    the same time. Each handles what is in its mailbox, says goodbye and stops, within bounds.

    Args:
        name: Name for people and logs.
        strategy: Which children are restarted when one crashes.
        intensity: How many restarts there may be.
        dead_letters: Takes the unhandled messages.
        monitor: Takes the exceptions of children; None: a new one, without trace.

    Yields:
        The supervisor.

    If cancelled, or if the block raises, messages in mailboxes are not handled any more, but every
    `stop` still runs, in the same order.

    Raises:
        ExceptionGroup: With a RestartLimitError when a child crashed too often, or with what the
            block raised.
    """
    quiet_libraries()
    async with trio.open_nursery() as nursery:
        watched = Monitor() if monitor is None else monitor
        supervisor = Supervisor(name, strategy, intensity, dead_letters, watched, nursery)
        try:
            yield supervisor
            await supervisor.stop_children()
        finally:
            with trio.CancelScope(shield=True):
                await supervisor.kill_children()
