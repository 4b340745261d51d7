"""The bounded mailbox of an actor, which outlives its crashes, and the answer to an ask."""

import math
from contextlib import suppress
from enum import Enum, auto
from typing import Final, Generic, Never, Protocol, TypeVar, final

import attrs
import trio

from actors.kit.errors import ActorStoppedError, ReplyTwiceError
from actors.kit.supervision.waits import Party, Wait, begin_wait, end_wait

R = TypeVar("R")


class _State(Enum):
    OPEN = auto()
    ANSWERED = auto()
    ABANDONED = auto()


@final
class Reply(Generic[R]):
    """The one-shot answer channel of an ask; it is part of the message.

    The actor that gets the message answers by `send` or `fail`, at once or later, itself or
    through others. An answer is dropped if its requester no longer waits.
    """

    __slots__ = ("_asker", "_error", "_state", "_value", "_wait")

    def __init__(self, wait: Wait | None = None) -> None:
        self._asker: trio.lowlevel.Task | None = None
        self._state = _State.OPEN
        self._value: list[R] = []
        self._error: Exception | None = None
        self._wait = wait

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
        """Answer with an exception, which the asker gets raised.

        Raises:
            ReplyTwiceError: The ask was answered before.
        """
        if self._close():
            self._error = error

    def lose(self, error: Exception) -> None:
        """End the wait because no actor is left to answer; called by the kit."""
        if self._state is _State.OPEN:
            self.fail(error)
            self._state = _State.ABANDONED

    def abandon(self) -> None:
        """Drop the answer from now on; called by the kit when the asker has given up."""
        if self._state is _State.OPEN:
            self._state = _State.ABANDONED

    def defer(self) -> None:
        """Note that the actor handles other messages before it answers; called by the kit."""
        if self._wait is not None:
            self._wait.is_over = True

    async def get(self) -> R:
        """Wait for the answer and return it.

        If cancelled, an answer that still comes is dropped. One that has come is returned all
        the same, and the next checkpoint raises the cancellation: an actor whose answer found
        the reply open has given it to the asker.

        Raises:
            ActorStoppedError: The actor stopped or crashed before it answered.
            Exception: What the actor answered by `fail`.
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
        if self._wait is not None:
            self._wait.is_over = True
        if self._asker is not None:
            trio.lowlevel.reschedule(self._asker)
            self._asker = None
        return True


M = TypeVar("M")
M_co = TypeVar("M_co", covariant=True)


_FEW: Final = 16
"""Deferred asks that are kept before answered ones are sorted out."""


class Losable(Protocol):
    """The part of a `Reply` that the mailbox uses, for any type of answer."""

    @property
    def is_open(self) -> bool:
        """True if the asker still waits for the answer."""

    def lose(self, error: Exception) -> None:
        """End the wait because no actor is left to answer."""

    def defer(self) -> None:
        """Note that the asked actor handles other messages before it answers."""


@final
class OpenReplies:
    """Callers that wait for answers of a called object; `lose` ends all their waits."""

    def __init__(self) -> None:
        self._open: Final = set[Losable]()

    async def wait_for(self, reply: Reply[R]) -> R:
        """Wait for an answer, and return it.

        If cancelled, an answer that still comes is dropped.

        Raises:
            Exception: What `lose` was called with; or what the reply failed with.
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
    """No message."""

    YET = auto()
    EVER = auto()
    """The mailbox was closed, and is empty."""


@final
@attrs.define(eq=False)
class Asked(Generic[M_co]):
    """A message whose sender waits for an answer, with the reply."""

    message: M_co | Nothing
    reply: Losable


def _nobody() -> Reply[None]:
    reply = Reply[None]()
    reply.abandon()
    return reply


_BELL: Final[Asked[Never]] = Asked(Nothing.YET, _nobody())
"""A request without a requester: it only makes a waiting `take` return."""


@final
class Mailbox(Generic[M]):
    """Messages for one actor, and the asks that it has not answered.

    Attributes:
        put_nowait: Puts without waiting; raises what a Trio channel raises.
        take_nowait: Takes without waiting; raises what a Trio channel raises.
        stopped: Set when the actor has ended for good.
        cause: The exception of its last crash then; None: it ended in order.
    """

    def __init__(self, name: str, size: int) -> None:
        channel = trio.open_memory_channel[M | Asked[M]](size)
        self._send, self._receive = channel
        self._deferred: list[Losable] = []
        self._sweep_at = _FEW
        self._in_hand: Losable | None = None
        self.name = name
        self.party = Party(name)
        self.put_nowait = self._send.send_nowait
        self.take_nowait = self._receive.receive_nowait
        self.stopped = trio.Event()
        self.cause: Exception | None = None

    @property
    def waiting(self) -> int:
        """Number of items that were put and not taken yet."""
        return self._receive.statistics().current_buffer_used

    async def put(self, item: M | Asked[M]) -> None:
        """Put an item, and wait while the mailbox is full.

        If cancelled, nothing was put.

        Raises:
            ActorStoppedError: The actor is gone, or ended during the wait.
            DeadlockError: The actor waits for the caller.
        """
        wait = await begin_wait(self.party)
        try:
            await self._send.send(item)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise ActorStoppedError(self.name) from None
        finally:
            end_wait(wait)

    async def put_waited(self, item: Asked[M]) -> None:
        """Put an item whose wait the caller has recorded, and wait while the mailbox is full.

        If cancelled, nothing was put.

        Raises:
            ActorStoppedError: The actor is gone, or ended during the wait.
        """
        try:
            await self._send.send(item)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise ActorStoppedError(self.name) from None

    def wake(self) -> None:
        """Make a waiting `take` return without an item."""
        # Full or closed: then `take` does not wait.
        with suppress(trio.WouldBlock, trio.ClosedResourceError, trio.BrokenResourceError):
            self._send.send_nowait(_BELL)

    async def take(self, until: float) -> M | Asked[M] | Nothing:
        """Wait for the next item, or until a Trio time.

        If cancelled, no item is lost.

        Returns:
            The item; `Nothing.YET` at that time or after `wake`, `Nothing.EVER` if the mailbox is
            closed and empty.
        """
        try:
            if until == math.inf:
                return await self._receive.receive()
            if until <= trio.current_time():
                await trio.lowlevel.checkpoint()
                return Nothing.YET
            with trio.move_on_at(until):
                return await self._receive.receive()
        except trio.EndOfChannel:
            return Nothing.EVER
        return Nothing.YET

    def poll(self) -> M | Asked[M] | Nothing:
        """Return the next item if there is one; otherwise as `take`."""
        try:
            return self.take_nowait()
        except trio.WouldBlock:
            return Nothing.YET
        except trio.EndOfChannel:
            return Nothing.EVER

    def open(self, asked: Asked[M]) -> M | Nothing:
        """Return the message of an ask, now in hand; nothing if its sender has given up."""
        if not asked.reply.is_open:
            return Nothing.YET
        self._in_hand = asked.reply
        return asked.message

    def handled(self) -> None:
        """Note that the ask in hand was handled, whether it was answered or not."""
        reply, self._in_hand = self._in_hand, None
        if reply is not None and reply.is_open:
            reply.defer()
            self._deferred.append(reply)
            if len(self._deferred) > self._sweep_at:
                self._deferred = [held for held in self._deferred if held.is_open]
                self._sweep_at = 2 * len(self._deferred) + _FEW

    def lose_taken(self, cause: BaseException | None) -> None:
        """Fail every ask that was taken and not answered, at the end of a life."""
        taken = [*self._deferred, *([] if self._in_hand is None else [self._in_hand])]
        self._deferred = []
        self._in_hand = None
        for reply in taken:
            reply.lose(_stopped(self.name, cause))

    def close(self) -> None:
        """Refuse further items; those inside can still be taken. Idempotent."""
        self._send.close()

    def bury(self, cause: Exception | None) -> list[M]:
        """End the mailbox for good: asks in it fail, other messages are returned."""
        self._send.close()
        self.lose_taken(cause)
        lost: list[M] = []
        while not isinstance(item := self.poll(), Nothing):
            if isinstance(item, Asked):
                item.reply.lose(_stopped(self.name, cause))
            else:
                lost.append(item)
        self._receive.close()
        self.cause = cause
        self.stopped.set()
        return lost


def _stopped(name: str, cause: BaseException | None) -> ActorStoppedError:
    error = ActorStoppedError(name)
    error.__cause__ = cause
    return error
