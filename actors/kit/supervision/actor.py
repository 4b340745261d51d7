"""An actor, and the handle by which others reach it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar, TypeVarTuple, final

import trio

from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.mailbox import Asked, Mailbox
from actors.kit.supervision.reply import Reply
from actors.kit.supervision.waits import SERVING, begin_wait, end_wait

__all__ = ["Actor", "ActorRef", "Reply"]

M_contra = TypeVar("M_contra", contravariant=True)
R = TypeVar("R")
Ts = TypeVarTuple("Ts")


@final
class ActorRef(Generic[M_contra]):
    """The only handle to an actor; the same through all its restarts.

    Attributes:
        name: Name of the actor, for people and traces.
    """

    __slots__ = ("_mailbox", "_put_nowait", "name")

    def __init__(self, mailbox: Mailbox[M_contra]) -> None:
        self.name = mailbox.name
        self._mailbox = mailbox
        self._put_nowait = mailbox.put_nowait

    async def tell(self, message: M_contra) -> None:
        """Put a message into the mailbox, and wait while it is full.

        Not a checkpoint while there is room: the size of the mailbox bounds how
        long a sender runs. Cancelled: nothing was sent.

        Raises:
            ActorStoppedError: The actor is gone.
            DeadlockError: The mailbox is full and the actor waits for us.
        """
        try:
            self._put_nowait(message)
        except trio.WouldBlock:
            await self._mailbox.put(message)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise ActorStoppedError(self.name) from None

    def try_tell(self, message: M_contra) -> bool:
        """Put a message into the mailbox if it has room; tell whether it had."""
        try:
            self._put_nowait(message)
        except (trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError):
            return False
        return True

    async def ask(self, make: Callable[[Reply[R]], M_contra]) -> R:
        """Send the message that `make` builds around a reply; return the answer.

        The deadline is the caller's: `with trio.fail_after(...)`. Cancelled: an ask
        that was not taken yet is never handled, an answer that still comes is lost.

        Raises:
            ActorStoppedError: The actor is gone, or went before it answered.
            DeadlockError: The actor waits for us.
        """
        wait = await begin_wait(self._mailbox.party)
        reply = Reply[R](wait)
        asked = Asked(make(reply), reply)
        try:
            try:
                self._put_nowait(asked)
            except trio.WouldBlock:
                await self._mailbox.put_waited(asked)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                raise ActorStoppedError(self.name) from None
            return await reply.get()
        finally:
            reply.abandon()
            end_wait(wait)

    @property
    def is_gone(self) -> bool:
        """Whether the actor is gone for good; a restart is not the end."""
        return self._mailbox.stopped.is_set()

    async def wait_stopped(self) -> Exception | None:
        """Wait until the actor is gone for good; a restart is not the end.

        Returns:
            What it crashed with last; None if it ended orderly.
        """
        await self._mailbox.stopped.wait()
        return self._mailbox.cause


class Actor(ABC, Generic[M_contra]):
    """State that one task owns, changed only by the messages in its mailbox.

    The kit calls, in this order: `start`; for each message `handle`; `drained`
    after each batch; `timed_out` when `deadline` has passed; on an orderly end
    `farewell`; then what was spawned is cancelled; last `stop`. Whatever any of
    them raises is a crash, for the supervisor to decide about. A restart makes a
    new object with the same `me` and the same mailbox.

    Attributes:
        name: The name of `me`.
        me: The handle to this actor, to be given to others.
        is_finished: Whether `finish` was called.
    """

    name: str
    me: ActorRef[M_contra]
    _nursery: trio.Nursery | None = None
    is_finished: bool = False
    _wake: Callable[[], None] | None = None

    async def start(self) -> None:
        """Get ready; runs before the first message."""

    @abstractmethod
    async def handle(self, message: M_contra) -> None:
        """Do what one message asks for."""

    async def drained(self) -> None:
        """Flush what a batch of messages left to write; runs after each batch."""

    def deadline(self) -> float:
        """Return the Trio time of the next timer; infinity if there is none."""
        return math.inf

    async def timed_out(self) -> None:
        """Do what is due; runs when `deadline` has passed, and must move it on."""

    async def farewell(self) -> None:
        """Take leave while spawned work still runs; only on an orderly end, bounded."""

    async def stop(self) -> None:
        """Let go of everything; runs last and always, shielded and bounded."""

    @final
    def spawn(self, work: Callable[[*Ts], Awaitable[None]], *args: *Ts) -> None:
        """Run work in a task of this actor, beside its mailbox.

        Its crash is the actor's crash; it is cancelled when the actor stops.

        Raises:
            ActorStoppedError: The actor has not started, or has stopped.
        """
        if self._nursery is None:
            raise ActorStoppedError(self.name)
        self._nursery.start_soon(_beside, work, *args)

    @final
    def finish(self) -> None:
        """End this actor, orderly, after the message in hand."""
        self.is_finished = True
        self.wake()

    @final
    def wake(self) -> None:
        """Look at `deadline` again: for spawned work that has moved it."""
        if self._wake is not None:
            self._wake()

    @final
    def enter(
        self, me: ActorRef[M_contra], nursery: trio.Nursery, wake: Callable[[], None]
    ) -> None:
        """Take name, handle, nursery and bell; called by the kit before `start`."""
        self.name = me.name
        self.me = me
        self.is_finished = False
        self._nursery = nursery
        self._wake = wake

    @final
    def leave(self) -> None:
        """Let go of the nursery; called by the kit before `stop`."""
        self._nursery = None


async def _beside(work: Callable[[*Ts], Awaitable[None]], *args: *Ts) -> None:
    # This task does not serve the mailbox: its waits hold nobody up.
    SERVING.set(None)
    await work(*args)
