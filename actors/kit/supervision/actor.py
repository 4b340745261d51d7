"""An actor, and the reference by which others reach it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar, TypeVarTuple, final

import trio

from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.mailbox import Asked, Mailbox, Reply
from actors.kit.supervision.waits import SERVING, begin_wait, end_wait

M_contra = TypeVar("M_contra", contravariant=True)
R = TypeVar("R")
Ts = TypeVarTuple("Ts")


@final
class ActorRef(Generic[M_contra]):
    """The only handle to an actor; it stays the same through all restarts.

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

        It is no checkpoint while there is room: the size of the mailbox bounds how long a sender
        runs.

        If cancelled, nothing was sent.

        Raises:
            ActorStoppedError: The actor is gone.
            DeadlockError: The mailbox is full, and the actor waits for the caller.
        """
        try:
            self._put_nowait(message)
        except trio.WouldBlock:
            await self._mailbox.put(message)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise ActorStoppedError(self.name) from None

    def try_tell(self, message: M_contra) -> bool:
        """Put a message into the mailbox if it has room; return whether it had."""
        try:
            self._put_nowait(message)
        except (trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError):
            return False
        return True

    async def ask(self, make: Callable[[Reply[R]], M_contra]) -> R:
        """Send the message that `make` builds around a reply, and return the answer.

        The caller sets the deadline: `with trio.fail_after(...)`.

        Args:
            make: Builds the message around the reply that the actor answers by.

        If cancelled, a message that was not taken yet is never handled, and an answer that
        still comes is dropped.

        Raises:
            ActorStoppedError: The actor is gone, or stopped or crashed before it answered.
            DeadlockError: The actor waits for the caller.
            Exception: What the actor answered by `Reply.fail`.
        """
        wait = await begin_wait(self._mailbox.party)
        # Not `Reply[R]`: to make it by its alias takes four times as long.
        reply: Reply[R] = Reply(wait)
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
    def waiting(self) -> int:
        """Number of messages in the mailbox."""
        return self._mailbox.waiting

    @property
    def is_gone(self) -> bool:
        """True if the actor has ended for good; a restart is no end."""
        return self._mailbox.stopped.is_set()

    async def wait_stopped(self) -> Exception | None:
        """Wait until the actor has ended for good; a restart is no end.

        If cancelled, only the wait ends.

        Returns:
            The exception of its last crash; None if it ended without one.
        """
        await self._mailbox.stopped.wait()
        return self._mailbox.cause


class Actor(ABC, Generic[M_contra]):
    """State that one task owns, and that only messages in its mailbox change.

    The kit calls, in this order: `start`; for each message `handle`; `drained` after each batch;
    `timed_out` when `deadline` has passed; at an orderly end `closing`; then it cancels spawned
    work; last `stop`. An exception of any of them is a crash, and the supervisor decides what
    follows. A restart makes a new object with the same `me` and the same mailbox.

    Attributes:
        name: The name of `me`.
        me: The reference to this actor, to be given to others.
        is_finished: Whether `finish` was called.
    """

    name: str
    me: ActorRef[M_contra]
    _nursery: trio.Nursery | None = None
    is_finished: bool = False
    _wake: Callable[[], None] | None = None

    async def start(self) -> None:
        """Prepare the actor; runs before the first message.

        If cancelled, the start is given up, and `stop` is not called.
        """

    @abstractmethod
    async def handle(self, message: M_contra) -> None:
        """Handle one message.

        If cancelled, by force at the end of the actor, the message is not handled again; an ask
        fails with ActorStoppedError.
        """

    async def drained(self) -> None:
        """Write what a batch of messages left to write; runs after each batch.

        If cancelled, by force at the end of the actor, only `stop` follows.
        """

    def deadline(self) -> float:
        """Return the Trio time of the next timer; infinity if there is none."""
        return math.inf

    async def timed_out(self) -> None:
        """Do what is due; runs when `deadline` has passed, and must move the deadline.

        If cancelled, by force at the end of the actor, only `stop` follows.
        """

    async def closing(self) -> None:
        """Say goodbye to others while spawned work still runs; only at an orderly end.

        If cancelled, because it takes too long, only `stop` follows.
        """

    async def stop(self) -> None:
        """Release all resources; runs last, after every start that succeeded, and shielded.

        If cancelled, after `GOODBYE_TIMEOUT` seconds at most, the actor ends without the rest.
        """

    @final
    def spawn(self, work: Callable[[*Ts], Awaitable[object]], *args: *Ts) -> None:
        """Run work in a task of this actor, beside its mailbox.

        An exception of the work is a crash of the actor. The work is cancelled when the actor
        stops.

        Raises:
            ActorStoppedError: The actor has not started, or has stopped.
        """
        if self._nursery is None:
            raise ActorStoppedError(self.name)
        self._nursery.start_soon(_beside, work, *args)

    @final
    def finish(self) -> None:
        """End this actor in order after the message in hand. Idempotent."""
        self.is_finished = True
        self.wake()

    @final
    def wake(self) -> None:
        """Have `deadline` read again, after spawned work has changed it."""
        if self._wake is not None:
            self._wake()

    @final
    def enter(
        self, me: ActorRef[M_contra], nursery: trio.Nursery, wake: Callable[[], None]
    ) -> None:
        """Take what an actor works with; called by the kit before `start`.

        Args:
            me: Reference to the actor.
            nursery: Nursery of the actor's tasks.
            wake: Interrupts the wait for a message.
        """
        self.name = me.name
        self.me = me
        self.is_finished = False
        self._nursery = nursery
        self._wake = wake

    @final
    def leave(self) -> None:
        """Release the nursery; called by the kit before `stop`."""
        self._nursery = None


async def _beside(work: Callable[[*Ts], Awaitable[object]], *args: *Ts) -> None:
    # This task does not serve the mailbox: its waits delay no other actor.
    SERVING.set(None)
    await work(*args)
