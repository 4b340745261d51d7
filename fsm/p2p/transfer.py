"""Transfer of messages over a live P2P link: numbering, acknowledgement, liveness (P2P-15, P2P-20).

The messages of each direction are numbered; the numbers are not sent, because a link can lose only
the last messages. The receiver acknowledges the number of messages that its bus has accepted, if
possible together with its own messages. When the link is lost, unacknowledged messages are returned
to the sending bus in order. They may arrive twice, and the receiving bus recognises duplicates by
(from, to, id). A silent peer is pinged; if it does not answer, the link is lost.

Besides messages, control lines are sent: `Behind`, `Ack`, `Ping`, `Pong` and `Bye`.
"""

import math
from collections import deque
from enum import Enum
from typing import Final, TypeAlias

import attrs

from fsm.limits.rates import TokenBucket
from fsm.machines.p2p_connection import P2P_CONNECTION, State
from specs.limits.p2p import CONTROL_BURST, CONTROL_RATE
from specs.limits.protocol import LINK_WINDOW, PING_PERIOD, STUB_QUEUE
from specs.message import Message

_BEHIND: Final = 512
_ANSWER: Final = 96
"""Estimated memory of an announcement without its texts and answers, and of each answer."""

Key: TypeAlias = int | str
"""Key of a message among those of a sender to a receiver: the id, or of an answer the full name."""


@attrs.frozen(slots=True)
class Behind:
    """Announcement on a link that earlier messages of a pair may still be on their way by the node.

    The receiver delivers them before later messages by the link. A pair is a sender and a receiver.

    Attributes:
        last: Key of the last answer that may still be on its way by the node; without an answer,
            of the last request or event; None: no message is on its way.
        top: The id of the last request or event that may still be on its way; 0: there is none.
        age: Seconds since the later of both was sent.
        answers: Ids of all answers that may still be on their way by the node.
    """

    from_: str
    to: str
    last: Key | None = None
    top: int = 0
    age: float = 0.0
    answers: frozenset[int] = frozenset()

    @property
    def size(self) -> int:
        """The approximate number of bytes of memory that the announcement takes."""
        texts = (self.from_, self.to, str(self.last))
        return _BEHIND + sum(map(len, texts)) + _ANSWER * len(self.answers)


@attrs.frozen(slots=True)
class Ack:
    """Control line that acknowledges all messages up to number `seq`."""

    seq: int


@attrs.frozen(slots=True)
class Ping:
    """Control line that asks whether the peer is alive."""


@attrs.frozen(slots=True)
class Pong:
    """Control line that answers `Ping`."""


@attrs.frozen(slots=True)
class Bye:
    """Control line that ends the link: no more messages follow."""


Control: TypeAlias = Ack | Ping | Pong | Bye


@attrs.frozen(slots=True)
class Numbered:
    """A message with its number among the messages of one direction of a link."""

    seq: int
    message: Message


Outgoing: TypeAlias = Numbered | Behind | Control

_PRESSING: Final = LINK_WINDOW // 8
"""Number of unacknowledged received messages at which an acknowledgement is sent at once."""


@attrs.frozen(slots=True)
class _Turned:
    """A message to be returned to the bus when all messages before it are acknowledged."""

    message: Message


class TransferEnd(Enum):
    """The reason why a link must no longer be used."""

    BYE = "bye"
    """The peer has ended the link."""

    SILENT = "silent"
    """The peer did not answer a ping, or did not acknowledge messages."""

    PROTOCOL = "protocol"
    """The peer broke the protocol."""

    FLOOD = "flood"
    """The peer sent too many control lines."""


class _CloseReason(Enum):
    """State of sending `Bye`: not wanted, due after all acknowledgements, due at once, or sent."""

    NONE = "none"
    POLITE = "polite"
    AT_ONCE = "at-once"
    SAID = "said"


class P2PTransferCore:
    """Transfer state of a live link in one runtime: queues, numbers, acknowledgements, pings.

    Attributes:
        end: The reason why the link must no longer be used; None: the link is alive.
    """

    def __init__(self, now: float) -> None:
        self._unacknowledged: deque[Numbered] = deque()
        self._waiting: deque[Message | Behind | _Turned] = deque()
        self._turned: list[Message] = []
        self._controls: deque[Control] = deque()
        self._sent = 0
        self._received = 0
        self._acknowledged = 0
        self._heard = now
        self._pinged: float | None = None
        self._owed_since: float | None = None
        self._close_reason = _CloseReason.NONE
        self._pace = TokenBucket(CONTROL_RATE, CONTROL_BURST)
        self.end: TransferEnd | None = None

    # --- out --------------------------------------------------------------------------------

    def send(self, message: Message) -> bool:
        """Queue a message to be sent; return False, without queuing, if too many messages wait."""
        if len(self._waiting) >= STUB_QUEUE:
            return False
        self._waiting.append(message)
        return True

    def announce(self, behind: Behind) -> None:
        """Queue an announcement before later messages; announcements are not acknowledged.

        If too many messages wait, the announcement is omitted, as later messages are refused, too.
        """
        if len(self._waiting) < STUB_QUEUE:
            self._waiting.append(behind)

    def turn_back(self, message: Message) -> bool:
        """Queue a message to be returned when all messages before it are acknowledged (C-20).

        Returns:
            Whether the message was queued; False: too many messages wait.
        """
        if len(self._waiting) >= STUB_QUEUE:
            return False
        self._waiting.append(_Turned(message))
        self._turn()
        return True

    def take_turned(self) -> list[Message]:
        """Remove and return the messages to be returned to the bus now, in order."""
        turned, self._turned = self._turned, []
        return turned

    def _turn(self) -> None:
        while not self._unacknowledged and self._waiting:
            following = self._waiting[0]
            if not isinstance(following, _Turned):
                return
            self._waiting.popleft()
            self._turned.append(following.message)

    def say_goodbye(self) -> None:
        """Send `Bye` after all messages are sent and acknowledged."""
        self._close_reason = _CloseReason.POLITE

    def insist_on_goodbye(self) -> None:
        """Send `Bye` at once, even if messages remain."""
        self._close_reason = _CloseReason.AT_ONCE

    @property
    def has_output(self) -> bool:
        """True if there are lines to send, so that `take_output` should be called."""
        return self._has_messages or self._owes_ack or self._says_bye or bool(self._controls)

    @property
    def may_wait(self) -> bool:
        """True if only an acknowledgement is to be sent, which can wait for a while."""
        if self._received - self._acknowledged >= _PRESSING or self._controls:
            return False
        return self._owes_ack and not (self._has_messages or self._says_bye)

    @property
    def _has_messages(self) -> bool:
        if not self._waiting or isinstance(self._waiting[0], _Turned):
            return False
        return len(self._unacknowledged) < LINK_WINDOW

    @property
    def _says_bye(self) -> bool:
        is_drained = not (self._waiting or self._unacknowledged)
        return self._close_reason is _CloseReason.AT_ONCE or (
            self._close_reason is _CloseReason.POLITE and is_drained
        )

    @property
    def _owes_ack(self) -> bool:
        return self._received > self._acknowledged

    def take_output(self, at_most: int, now: float) -> list[Outgoing]:
        """Remove and return the lines to be sent now: messages first, then control lines.

        Messages wait for acknowledgements when the window is full.

        Args:
            at_most: Maximum number of messages.
            now: Seconds on the host's clock.
        """
        written: list[Outgoing] = []
        while self._has_messages and len(written) < at_most:
            following = self._waiting.popleft()
            if isinstance(following, Behind):
                written.append(following)
            elif isinstance(following, Message):
                self._sent += 1
                numbered = Numbered(self._sent, following)
                self._unacknowledged.append(numbered)
                written.append(numbered)
        self._turn()
        if self._unacknowledged and self._owed_since is None:
            self._owed_since = now
        if self._owes_ack:
            self._acknowledged = self._received
            written.append(Ack(self._received))
        written.extend(self._controls)
        self._controls.clear()
        if self._says_bye:
            self._close_reason = _CloseReason.SAID
            written.append(Bye())
        return written

    # --- in ---------------------------------------------------------------------------------

    def received(self, message: Message, now: float) -> Numbered:
        """Return a received message with its number; call `taken` when the bus has accepted it.

        Args:
            message: The message.
            now: Seconds on the host's clock.
        """
        self._heard, self._pinged = now, None
        return Numbered(self._received + 1, message)

    def taken(self, numbered: Numbered) -> None:
        """Note that the bus has accepted a message, so that it will be acknowledged."""
        self._received = numbered.seq

    def skipped(self, now: float) -> None:
        """Count a received message line that could not be decoded."""
        self._heard, self._pinged = now, None
        self._received += 1

    def broken(self) -> None:
        """End the link, since the peer broke the protocol."""
        self.end = self.end or TransferEnd.PROTOCOL

    def spend(self, now: float) -> None:
        """Count a control line that acknowledges no message; too many such lines end the link.

        Args:
            now: Seconds on the host's clock.
        """
        if not self._pace.try_spend(now):
            self.end = self.end or TransferEnd.FLOOD

    def heard(self, control: Control, now: float) -> None:
        """Handle a received control line; the caller must check `end` afterwards.

        Args:
            control: The control line.
            now: Seconds on the host's clock.
        """
        self._heard, self._pinged = now, None
        if not self._acknowledges(control):
            self.spend(now)
        match control:
            case Ack(seq):
                self._acknowledge(seq, now)
            case Ping():
                # One answer is enough for all pings that were not answered yet.
                if Pong() not in self._controls:
                    self._controls.append(Pong())
            case Pong():
                pass
            case Bye():
                self.end = self.end or TransferEnd.BYE

    def _acknowledges(self, control: Control) -> bool:
        """Return whether a control line acknowledges a message for the first time."""
        owed = self._unacknowledged
        return isinstance(control, Ack) and bool(owed) and control.seq >= owed[0].seq

    def _acknowledge(self, seq: int, now: float) -> None:
        if seq > self._sent:
            self.end = TransferEnd.PROTOCOL
            return
        while self._unacknowledged and self._unacknowledged[0].seq <= seq:
            self._unacknowledged.popleft()
            self._owed_since = now if self._unacknowledged else None
        self._turn()

    # --- time and end -----------------------------------------------------------------------

    def deadline(self) -> float:
        """Return the time at which `time_passed` must be called; sending may make it earlier."""
        if self.end is not None:
            return math.inf
        if self._pinged is None:
            return min(self._heard + PING_PERIOD, self._silent_at)
        return min(self._pinged + P2P_CONNECTION.patience(State.LIVE), self._silent_at)

    @property
    def _silent_at(self) -> float:
        """The time at which the link counts as lost since sent messages were not acknowledged.

        This is early enough to send a request again by another route before its requester notices.
        """
        if self._owed_since is None:
            return math.inf
        return self._owed_since + P2P_CONNECTION.patience(State.LIVE)

    def time_passed(self, now: float) -> None:
        """Ping a silent peer, or end the link if the peer has not answered."""
        if now < self.deadline():
            return
        if self._pinged is not None or now >= self._silent_at:
            self.end = TransferEnd.SILENT
        else:
            self._pinged = now
            self._controls.append(Ping())

    def owed(self) -> list[Message]:
        """Remove and return all messages that were not acknowledged or not sent, in order."""
        owed = [numbered.message for numbered in self._unacknowledged]
        owed.extend(self._turned)
        waiting = (each for each in self._waiting if not isinstance(each, Behind))
        owed.extend(each.message if isinstance(each, _Turned) else each for each in waiting)
        self._turned.clear()
        self._unacknowledged.clear()
        self._waiting.clear()
        return owed
