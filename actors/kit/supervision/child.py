"""A child of a supervisor: how it is started, stopped and restarted, and what remains of it.

An incarnation is one life of its actor, from `start` to `stop`; a restart begins another.
"""

import math
from collections.abc import Awaitable, Callable
from enum import Enum, auto
from typing import Final, Generic, TypeVar, final

import attrs
import structlog
import trio

from actors.kit.supervision.actor import Actor, ActorRef
from actors.kit.supervision.dead_letters import DeadLetters
from actors.kit.supervision.mailbox import Asked, Mailbox, Nothing
from actors.kit.supervision.monitor import Crash
from actors.kit.supervision.waits import SERVING
from specs.limits import protocol as limits
from specs.limits.protocol import GOODBYE_TIMEOUT

__all__ = ["BATCH", "Child", "ChildSpec", "Restart"]

M = TypeVar("M")

BATCH: Final = 64
"""Messages handled between two checkpoints (MEASURED C: the fairness of a batch)."""

_BUDGET: Final = range(BATCH - 1, -1, -1)


@final
class Incarnation(Generic[M]):
    """Runs one actor object on a mailbox that outlives it.

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
        self._is_to_stop = False
        self.stop_by = math.inf

    async def run(
        self, make: Callable[[], Actor[M]], ref: ActorRef[M], started: Callable[[], None]
    ) -> Exception | None:
        """Live until the mailbox is closed, the actor finishes, crashes or is cancelled.

        Args:
            make: Builds the actor.
            ref: Its reference.
            started: Called when its `start` has returned.

        If cancelled before `started` was called, this life ends; afterwards only its `scope`
        ends it, so that a supervisor keeps its order of stopping.

        Returns:
            The exception that it crashed with; None if it ended in order or by `scope`.
        """
        SERVING.set(self._mailbox.party)
        try:
            with Crash() as crash:
                actor = make()
                try:
                    # Each wake-up of an actor passes all frames up to here: one for a whole life.
                    with self.scope:
                        async with trio.open_nursery() as nursery:
                            actor.enter(ref, nursery, self._mailbox.wake)
                            await actor.start()
                            self._is_to_stop = True
                            # A starter that was cancelled meanwhile would wait for the shielded
                            # task for ever.
                            await trio.lowlevel.checkpoint_if_cancelled()
                            self.has_started = True
                            self.scope.shield = True
                            started()
                            await self._serve(actor)
                            await actor.closing()
                            nursery.cancel_scope.cancel()
                finally:
                    actor.leave()
                    until = min(trio.current_time() + GOODBYE_TIMEOUT, self.stop_by)
                    with trio.CancelScope(deadline=until, shield=True):
                        await self._let_go(actor)
            self._mailbox.lose_taken(crash.error)
            self.error = crash.error
        finally:
            self.ended.set()
        return self.error

    async def _serve(self, actor: Actor[M]) -> None:
        while not actor.is_finished:
            item = await self._mailbox.take(actor.deadline())
            if item is Nothing.YET:
                await actor.timed_out()
                await actor.drained()
                # A timer that is always due must not keep messages out.
                item = self._mailbox.poll()
            if item is Nothing.EVER:
                return
            if item is not Nothing.YET:
                await self._batch(actor, item)
                await actor.drained()

    async def _batch(self, actor: Actor[M], item: M | Asked[M]) -> None:
        handle = actor.handle
        take_nowait = self._mailbox.take_nowait
        # Once per message of the whole process: no call here that can be spared.
        for left in _BUDGET:
            if type(item) is Asked:
                await self._answer(actor, item)
            else:
                await handle(item)
            if actor.is_finished or not left:
                return
            try:
                item = take_nowait()
            except (trio.WouldBlock, trio.EndOfChannel):
                return

    async def _answer(self, actor: Actor[M], asked: Asked[M]) -> None:
        message = self._mailbox.open(asked)
        if not isinstance(message, Nothing):
            await actor.handle(message)
            self._mailbox.handled()

    async def _let_go(self, actor: Actor[M]) -> None:
        if self._is_to_stop:
            await actor.stop()


_log = structlog.get_logger("actors.kit")


class Restart(Enum):
    """Cases in which a child that has ended is started again (the terms of OTP)."""

    PERMANENT = auto()
    """Always."""
    TRANSIENT = auto()
    """After a crash only."""
    TEMPORARY = auto()
    """Never."""


@final
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
    """One actor under a supervisor, through all its lives.

    Attributes:
        is_leaving: Whether the child is to stop for good: it is not restarted any more.
    """

    def __init__(self, spec: ChildSpec[M]) -> None:
        self._make = spec.make
        self._mailbox = Mailbox[M](spec.name, spec.mailbox)
        self.name = spec.name
        self.party = self._mailbox.party
        self.restart = spec.restart
        self.ref: ActorRef[M] = ActorRef(self._mailbox)
        self.life = Incarnation(self._mailbox)
        self.was_started = False
        self.is_leaving = False

    def reborn(self) -> Incarnation[M]:
        """Make a new life the current one, and return it."""
        self.life = Incarnation(self._mailbox, self.life.error)
        return self.life

    def live(self, started: Callable[[], None]) -> Awaitable[Exception | None]:
        """Return what runs the current life, as `Incarnation.run` does.

        Args:
            started: Called when `start` of the actor has returned.
        """

        def settle() -> None:
            self.was_started = True
            started()

        return self.life.run(self._make, self.ref, settle)

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
        self._mailbox.close()
        with trio.move_on_at(until) as waiting:
            await self.life.ended.wait()
        if waiting.cancelled_caught:
            _log.warning("stopped by force", actor=self.name)

    def bury(self, dead_letters: DeadLetters) -> None:
        """End the child for good, and hand over the unhandled messages."""
        self.is_leaving = True
        for message in self._mailbox.bury(self.life.error):
            dead_letters.lost(self.name, message)
