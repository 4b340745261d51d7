"""Base class of actors (a task with a mailbox), references to actors, and replies to requests."""

import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import Enum, auto
from typing import Final, Generic, Never, Protocol, TypeAlias, TypeVar, TypeVarTuple, cast, final
from weakref import WeakKeyDictionary

import attrs
import trio
from typing_extensions import override

from actors.kit.errors import ActorStoppedError, ReplyTwiceError
from actors.kit.log import get_logger
from fsm.p2p.transfer import Behind
from specs.message import Message

# The reply to a call of an actor, and its bounded mailbox, which outlives its crashes.

R = TypeVar("R")


class _State(Enum):
    OPEN = auto()
    ANSWERED = auto()
    ABANDONED = auto()


class Reply(Generic[R]):
    """Channel for the answer to one request; the request message contains the reply."""

    __slots__ = ("__weakref__", "_asker", "_error", "_state", "_value")

    def __init__(self) -> None:
        self._asker: trio.lowlevel.Task | None = None
        self._state = _State.OPEN
        self._value: list[R] = []
        self._error: Exception | None = None

    @property
    def is_open(self) -> bool:
        """True if the asker still waits for the answer."""
        return self._state is _State.OPEN

    def send(self, value: R) -> None:
        """Answer with a value.

        Raises:
            ReplyTwiceError: The ask was answered before.
        """
        if self._close():
            self._value.append(value)

    def fail(self, error: Exception) -> None:
        """Answer with an exception, which is raised to the asker.

        Raises:
            ReplyTwiceError: The ask was answered before.
        """
        if self._close():
            self._error = error

    def lose(self, error: Exception) -> None:
        """End the wait with an exception, because no actor is left to answer; called by the kit."""
        if self._state is _State.OPEN:
            self.fail(error)
            self._state = _State.ABANDONED

    def abandon(self) -> None:
        """Ignore a later answer; called by the kit when the asker no longer waits."""
        if self._state is _State.OPEN:
            self._state = _State.ABANDONED

    async def get(self) -> R:
        """Wait for the answer and return it.

        If cancelled, a later answer is dropped. An answer that has come is returned all the same,
        and the next checkpoint raises the cancellation: an actor that answered an open reply can
        rely on its delivery.

        Raises:
            ActorStoppedError: The actor stopped or crashed before it answered.
            Exception: The exception that the actor passed to `fail`.
        """
        if self.is_open:
            self._asker = trio.lowlevel.current_task()
            try:
                await trio.lowlevel.wait_task_rescheduled(self._stop_waiting)
            except trio.Cancelled:
                if self._state is not _State.ANSWERED:
                    raise
        else:
            await trio.lowlevel.cancel_shielded_checkpoint()
        if self._error is not None:
            raise self._error
        return self._value[0]

    def _stop_waiting(self, _: object) -> trio.lowlevel.Abort:
        self._asker = None
        return trio.lowlevel.Abort.SUCCEEDED

    def _close(self) -> bool:
        if self._state is _State.ANSWERED:
            raise ReplyTwiceError
        if self._state is _State.ABANDONED:
            return False
        self._state = _State.ANSWERED
        if self._asker is not None:
            trio.lowlevel.reschedule(self._asker)
            self._asker = None
        return True


M = TypeVar("M")
M_co = TypeVar("M_co", covariant=True)


class Losable(Protocol):
    """Interface of a `Reply` for the mailbox, independent of the type of the answer."""

    @property
    def is_open(self) -> bool:
        """True if the asker still waits for the answer."""

    def lose(self, error: Exception) -> None:
        """End the wait because no actor is left to answer."""


class OpenReplies:
    """The replies that callers of an object still wait for; `lose` ends all waits."""

    def __init__(self) -> None:
        self._open: Final = set[Losable]()

    async def wait_for(self, reply: Reply[R]) -> R:
        """Wait for an answer, and return it.

        If cancelled, an answer that still comes is dropped.

        Raises:
            Exception: The exception passed to `lose`, or to `fail` of the reply.
        """
        self._open.add(reply)
        try:
            return await reply.get()
        except BaseException:
            reply.abandon()
            raise
        finally:
            self._open.discard(reply)

    def lose(self, error: Exception) -> None:
        """End all waits because no answer will come."""
        for reply in self._open:
            reply.lose(error)


class Nothing(Enum):
    """Results of `Mailbox.poll` when there is no message."""

    YET = auto()
    """The mailbox is empty."""
    EVER = auto()
    """The mailbox is empty and closed."""


@final
@attrs.define(eq=False)
class Asked(Generic[M_co]):
    """Request in a mailbox: a message with the reply that its sender waits for."""

    message: M_co
    reply: Losable


def _abandoned_reply() -> Reply[None]:
    reply = Reply[None]()
    reply.abandon()
    return reply


_WAKE_UP: Final = Asked(cast("Never", None), _abandoned_reply())
"""Item that is never handled; it only interrupts the wait for the next message."""


def _stopped_error(name: str, cause: BaseException | None) -> ActorStoppedError:
    error = ActorStoppedError(name)
    error.__cause__ = cause
    return error


M_contra = TypeVar("M_contra", contravariant=True)
Ts = TypeVarTuple("Ts")


class ActorRef(Generic[M_contra]):
    """Reference through which others send messages to an actor; it stays valid through restarts.

    Attributes:
        name: Name of the actor, for people and traces.
    """

    def __init__(
        self, name: str, send: "trio.MemorySendChannel[M_contra | Asked[M_contra]]"
    ) -> None:
        self.name = name
        self._send = send
        self._put_nowait = send.send_nowait
        self._stopped = trio.Event()
        self._cause: Exception | None = None

    async def tell(self, message: M_contra) -> None:
        """Put a message into the mailbox, and wait while it is full.

        No checkpoint while there is room: the size of the mailbox limits how long a sender runs.

        If cancelled, nothing was sent.

        Raises:
            ActorStoppedError: The actor is gone.
        """
        try:
            try:
                self._put_nowait(message)
            except trio.WouldBlock:
                await self._send.send(message)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise ActorStoppedError(self.name) from None

    def try_tell(self, message: M_contra) -> bool:
        """Put a message into the mailbox if there is room; return whether there was."""
        try:
            self._put_nowait(message)
        except (trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError):
            return False
        return True

    async def ask(self, make: Callable[[Reply[R]], M_contra]) -> R:
        """Send a request that `make` builds with a new reply, and return the answer.

        The caller sets the deadline: `with trio.fail_after(...)`.

        Args:
            make: Builds the message around the reply.

        If cancelled, a message that was not taken yet is never handled, and an answer that
        still comes is dropped.

        Raises:
            ActorStoppedError: The actor is gone, or stopped or crashed before it answered.
            Exception: The exception that the actor passed to `Reply.fail`.
        """
        # Not `Reply[R]()`: the call of an alias takes four times as long.
        reply: Reply[R] = Reply()
        try:
            await self.tell(cast("M_contra", Asked(make(reply), reply)))
            return await reply.get()
        finally:
            reply.abandon()

    @property
    def waiting(self) -> int:
        """Number of messages in the mailbox."""
        return self._send.statistics().current_buffer_used

    @property
    def is_gone(self) -> bool:
        """True if the actor has ended for good; a restart is no end."""
        return self._stopped.is_set()

    async def wait_stopped(self) -> Exception | None:
        """Wait until the actor has ended for good; a restart is no end.

        If cancelled, only the wait ends.

        Returns:
            The exception of its last crash; None if it ended without one.
        """
        await self._stopped.wait()
        return self._cause


class Mailbox(ActorRef[M]):
    """Mailbox of an actor: the actor's side of its reference, with the unanswered requests.

    Attributes:
        receive: Waits for an item and returns it; raises the errors of a Trio channel.
        take_nowait: Returns an item without waiting; raises the errors of a Trio channel.
        taken: The replies of the asks that were taken, in order, while they are referenced.
    """

    def __init__(self, name: str, size: int) -> None:
        send, self._receive = trio.open_memory_channel[M | Asked[M]](size)
        super().__init__(name, send)
        self.receive = self._receive.receive
        self.take_nowait = self._receive.receive_nowait
        self.taken: Final = WeakKeyDictionary[Losable, None]()

    def wake(self) -> None:
        """Interrupt a wait in `receive` by an item that is ignored."""
        # If the mailbox is full or closed, `receive` does not wait.
        with suppress(trio.WouldBlock, trio.ClosedResourceError, trio.BrokenResourceError):
            self._put_nowait(_WAKE_UP)

    def poll(self) -> M | Asked[M] | Nothing:
        """Return the next item, or `Nothing` if the mailbox is empty."""
        try:
            return self.take_nowait()
        except trio.WouldBlock:
            return Nothing.YET
        except trio.EndOfChannel:
            return Nothing.EVER

    def lose_taken(self, cause: BaseException | None) -> None:
        """Fail all requests that the actor took and did not answer; called at the end of a life."""
        for reply in [*self.taken]:
            reply.lose(_stopped_error(self.name, cause))
        self.taken.clear()

    def close(self) -> None:
        """Refuse further items; present items can still be taken. Idempotent."""
        self._send.close()

    def close_and_drain(self, cause: Exception | None) -> list[M]:
        """Close the mailbox for good; fail the asks in it, and return all other messages."""
        self._send.close()
        self.lose_taken(cause)
        remaining: list[M] = []
        while not isinstance(item := self.poll(), Nothing):
            if isinstance(item, Asked):
                item.reply.lose(_stopped_error(self.name, cause))
            else:
                remaining.append(item)
        self._receive.close()
        self._cause = cause
        self._stopped.set()
        return remaining


class Actor(ABC, Generic[M_contra]):
    """Base class of actors: state that one task owns and changes only by messages from its mailbox.

    The kit calls, in this order: `start`; for each message `handle`; `drained` after each batch;
    `timed_out` when `deadline` has passed; at an orderly end `closing`; then it cancels spawned
    tasks; last `stop`. An exception of any of them is a crash, and the supervisor decides what
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
        """Complete a batch of messages, for example by writing results; runs after each batch.

        If cancelled, by force at the end of the actor, only `stop` follows.
        """

    def deadline(self) -> float:
        """Return the Trio time of the next timer; infinity if there is none."""
        return math.inf

    async def timed_out(self) -> None:
        """Handle the timer; runs when `deadline` has passed, and must change the deadline.

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
        try:
            self._nursery.start_soon(work, *args)
        except RuntimeError as closed:
            # The nursery has ended, and `leave` was not called yet.
            raise ActorStoppedError(self.name) from closed

    @final
    def finish(self) -> None:
        """End this actor in order after the current message; idempotent."""
        self.is_finished = True
        self.wake()

    @final
    def wake(self) -> None:
        """Read `deadline` again, after spawned work has changed the value."""
        if self._wake is not None:
            self._wake()

    @final
    def enter(
        self, me: ActorRef[M_contra], nursery: trio.Nursery, wake: Callable[[], None]
    ) -> None:
        """Set reference, nursery and waker of the actor; called by the kit before `start`.

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


# A message from a router to one listener, and dead letters.


class Purpose(Enum):
    """Ways in which the stub of a link uses a message that it gets."""

    SEND = auto()
    """Send the message."""

    TURN_BACK = auto()
    """Give the message back to the bus once all earlier ones are acknowledged (C-20)."""

    ANNOUNCE = auto()
    """Send only the announcement; the message names sender and receiver of the pair."""


@attrs.define
class Delivery:
    """Message on its way to one listener (a receiver at the bus).

    Attributes:
        message: The message, with the `to` of its sender.
        route: Address under which the listener was found: the `to` of the message, or the URL of
            the stub or link that leads there.
        is_foreign: Whether a stub brought it into this runtime, so that no local component has
            sent it.
        behind: Announcement that a link sends before the message; None: there is none.
        purpose: Use of the message by the stub of a link.
    """

    message: Message
    route: str
    is_foreign: bool = False
    behind: Behind | None = None
    purpose: Purpose = Purpose.SEND


_log = get_logger("actors.kit")


DeadLetters: TypeAlias = Callable[[str, object], None]
"""Takes the name of an actor that is gone, and a message that waited in its mailbox."""


def log_dead_letter(actor: str, message: object) -> None:
    """Log a lost message, without its content."""
    # A function is logged by its qualified name.
    kind = getattr(message, "__qualname__", type(message).__qualname__)
    _log.warning("dead letter", actor=actor, message=kind)


class BackgroundTasks(Actor[Never]):
    """Runs tasks for called objects; gets no messages.

    An unexpected exception in a task is a crash of this actor.
    """

    def __init__(self) -> None:
        self._waits: Final = OpenReplies()

    async def ask(self, work: Callable[[Reply[R], *Ts], Awaitable[object]], *args: *Ts) -> R:
        """Run `work(reply, *args)` in a task of its own; return what it gives to the reply.

        If cancelled, the work goes on; `reply.is_open` is then False.

        Raises:
            ActorStoppedError: The runtime has closed, or closes before the reply.
            Exception: The exception that the work passes to `reply.fail`.
        """
        reply: Reply[R] = Reply()
        self.spawn(work, reply, *args)
        return await self._waits.wait_for(reply)

    @override
    async def handle(self, message: Never) -> None:
        """Do nothing: this actor receives no messages."""

    @override
    async def stop(self) -> None:
        self._waits.lose(ActorStoppedError(self.name))
