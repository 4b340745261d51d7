"""A child as its supervisor sees it: what to make, how to stop it, what is left of it."""

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
    """When a child that has ended is started again (OTP's words)."""

    PERMANENT = auto()
    """Always."""
    TRANSIENT = auto()
    """After a crash only."""
    TEMPORARY = auto()
    """Never."""


@final
@attrs.frozen
class ChildSpec(Generic[M]):
    """How to make a child, and when to make it again.

    Attributes:
        name: Unique under its supervisor.
        make: Builds a fresh actor object for each life.
        restart: When it is started again.
        mailbox: How many messages wait at most.
    """

    name: str
    make: Callable[[], Actor[M]]
    restart: Restart = Restart.PERMANENT
    mailbox: int = limits.MAILBOX


@final
class Child(Generic[M]):
    """One actor under a supervisor, through all its lives.

    Attributes:
        was_started: Whether a life of it has ever started.
        is_leaving: Set once it is to be stopped for good: no restart any more.
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
        """Run the current life; return what it crashed with, if it did."""
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
        """End the current life by force; the mailbox stays."""
        life = self.life
        life.scope.cancel()
        await life.ended.wait()

    async def drain(self, until: float) -> None:
        """Close the mailbox, and let the child handle what is in it until a Trio time."""
        self.is_leaving = True
        self._mailbox.close()
        with trio.move_on_at(until) as waiting:
            await self.life.ended.wait()
        if waiting.cancelled_caught:
            _log.warning("stopped by force", actor=self.name)

    def bury(self, dead_letters: DeadLetters) -> None:
        """End the child for good and hand over what nobody will handle."""
        self.is_leaving = True
        for message in self._mailbox.bury(self._cause):
            dead_letters.lost(self.name, message)
