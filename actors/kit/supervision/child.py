"""A child of a supervisor: how it is made, how it is stopped, and what remains of it."""

from collections.abc import Callable
from enum import Enum, auto
from typing import Generic, TypeVar, final

import attrs
import structlog
import trio

from actors.kit.supervision.actor import Actor, ActorRef
from actors.kit.supervision.dead_letters import DeadLetters
from actors.kit.supervision.incarnation import Incarnation
from actors.kit.supervision.mailbox import Mailbox
from specs.limits import protocol as limits

__all__ = ["Child", "ChildSpec", "Restart"]

M = TypeVar("M")

_log = structlog.get_logger("actors.kit")


class Restart(Enum):
    """When a child that has ended is started again (the terms of OTP)."""

    PERMANENT = auto()
    """Always."""
    TRANSIENT = auto()
    """After a crash only."""
    TEMPORARY = auto()
    """Never."""


@final
@attrs.frozen
class ChildSpec(Generic[M]):
    """How to make a child, and when to start it again.

    Attributes:
        name: Name, unique under its supervisor.
        make: Builds a new actor object for each life.
        restart: When the child is started again.
        mailbox: Messages that its mailbox holds at most.
    """

    name: str
    make: Callable[[], Actor[M]]
    restart: Restart = Restart.PERMANENT
    mailbox: int = limits.MAILBOX


@final
class Child(Generic[M]):
    """One actor under a supervisor, through all its lives.

    Attributes:
        was_started: Whether a start has succeeded.
        is_leaving: Whether the child is to stop for good: it is not restarted any more.
    """

    def __init__(self, spec: ChildSpec[M]) -> None:
        self._make = spec.make
        self._mailbox = Mailbox[M](spec.name, spec.mailbox)
        self._cause: Exception | None = None
        self.name = spec.name
        self.party = self._mailbox.party
        self.restart = spec.restart
        self.ref: ActorRef[M] = ActorRef(self._mailbox)
        self.life = Incarnation(self._mailbox)
        self.was_started = False
        self.is_leaving = False

    def reborn(self) -> Incarnation[M]:
        """Make a new life the current one, and return it."""
        self.life = Incarnation(self._mailbox)
        return self.life

    async def live(self, started: Callable[[], None]) -> Exception | None:
        """Run the current life.

        Args:
            started: Called when `start` of the actor has returned.

        If cancelled before `started` was called, the life ends; afterwards only `end_life` ends it.

        Returns:
            The exception that it crashed with; None if it ended without one.
        """
        life = self.life

        def settle() -> None:
            self.was_started = True
            started()

        try:
            self._cause = await life.run(self._make, self.ref, settle)
        finally:
            life.ended.set()
        return self._cause

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
        """End the child for good, and hand over the messages that nobody will handle."""
        self.is_leaving = True
        for message in self._mailbox.bury(self._cause):
            dead_letters.lost(self.name, message)
