"""Durable messages: kept in a log for the receiver's runtime until the receiver has answered.

The engine, a store that all nodes of a group share, holds one log for each runtime. `AcceptCore` is
used at the sender's node. It passes messages to the engine in order, and the sender is answered
when the log contains its message, or with the reason why it could not be stored.

`DeliverCore` is used at the node that has a link to the receiver's runtime. It reads the log, and
delivers one message of each pair of sender and receiver at a time, so the messages of a pair keep
the order of the log even if a message is delivered again. A final answer of the receiver ends a
message, and the log is trimmed up to the first message that has not ended. Temporary refusals do
not end a message: the hyperty is absent (404), or has no room (503). The log outlives links,
sessions and nodes, so this core forgets what it has delivered to a runtime when the link ends: for
the next link, delivery starts at the beginning of the log. The receiver recognises a message that
is delivered twice by its position.

Few logs have entries when a runtime connects, and only those are read. The engine lists the logs
with entries, and reports each further entry to all nodes. A report may be late, but it is never
lost: then the log is read. The list is requested again from time to time, since removals by other
nodes are not reported.
"""

import itertools
import math
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Final, Protocol

import attrs

from fsm.effects import Refused
from fsm.limits.shares import Share, UserQueue, user_of
from fsm.limits.timers import Alarms
from specs.limits import group
from specs.message import Message
from specs.reply_code import FIRST_FINAL, NOT_NOW

# ---- the sender's end


@attrs.frozen(slots=True)
class Offered:
    """Message that the sender's node wants to store in the log of its receiver.

    Attributes:
        message: The message.
        by: Runtime from whose session the message came.
        log: The receiver's runtime, in whose log the message is stored.
        payload: The message in the encoded form of the log.
    """

    message: Message
    by: str
    log: str
    payload: bytes = attrs.field(repr=False)


class AcceptCore:
    """Queue of durable messages at the sender's node, which are stored in batches in order.

    Only one batch is under way at a time.

    Args:
        domain: Domain of the node.
    """

    def __init__(self, domain: str) -> None:
        self._domain = domain
        limits = Share(group.DURABLE_WAITING, group.DURABLE_WAITING_BYTES)
        self._waiting = UserQueue[Offered]("durable messages that wait", limits)
        self._number = 0
        self._batch: Sequence[Offered] = ()

    @property
    def is_settled(self) -> bool:
        """True if the queue is empty and no batch is under way."""
        return not self._waiting and not self._batch

    def offer(self, one: Offered) -> Refused | None:
        """Queue a message to be stored; return the refusal if the queue is full, or None."""
        return self._waiting.put(one, user_of(one.message, self._domain), len(one.payload))

    def begin_batch(self) -> tuple[int, Sequence[Offered]] | None:
        """Return the number and the messages of the next batch to write to the store, in order.

        Return None if no message waits, or if a batch is under way.
        """
        if self._batch or not self._waiting:
            return None
        self._number += 1
        self._batch = self._waiting.take(group.DURABLE_BATCH)
        return self._number, self._batch

    def end_batch(self, number: int) -> Sequence[Offered]:
        """Return the messages of a batch that was answered; empty: the batch was abandoned earlier.

        Args:
            number: Number of the batch.
        """
        return self.give_up_batch() if number == self._number else ()

    def give_up_batch(self) -> Sequence[Offered]:
        """Abandon the batch under way; return its messages, whose outcome stays unknown."""
        batch, self._batch = self._batch, ()
        return batch


# ---- the receiver's end


@attrs.frozen(slots=True)
class Kept:
    """Entry of a log, as it was read from the shared store.

    Attributes:
        message: The message; None: the entry has an unknown form.
        whose: The user or key that the receiver's session had when the message was accepted.
        until: Time at which delivery is abandoned, in seconds on the host's clock.
    """

    position: int
    message: Message | None
    whose: str = ""
    until: float = math.inf


class LogPort(Protocol):
    """Callbacks of `DeliverCore` to its host; none of them may call the core."""

    def fetch(self, runtime: str, number: int, after: int, most: int) -> None:
        """Read entries of a log from the shared store, and pass them to `DeliverCore.take_entries`.

        Args:
            runtime: Address of the runtime.
            number: Number of the request, which is passed on with the entries.
            after: Position after which entries are wanted.
            most: Largest number of entries.
        """

    def deliver(self, runtime: str, position: int, message: Message) -> None:
        """Send a message to a runtime over its session."""

    def trim(self, runtime: str, position: int) -> None:
        """Remove the entries of a log up to a position, and pass the outcome to `take_trim`."""

    def give_up(self, runtime: str, message: Message | None, why: str) -> None:
        """Abandon a message without its receiver's answer; None: an entry of an unknown form."""


_ANOTHERS: Final = "its runtime belongs to another user, or has another key, than when it was sent"
_UNREADABLE: Final = "the entry of the log cannot be read"
_OLD: Final = f"it was not answered within {group.DURABLE_LIFE / 3600:g} hours"
_NOT_TAKEN: Final = "the receiver does not take it"


@attrs.define(slots=True, eq=False)
class _Item:
    """Message from a log that was read and has not ended, with the times of its deliveries.

    Attributes:
        until: Time at which delivery is abandoned in any case.
        due: Time of its next delivery.
        since: Time of its first delivery; infinity: not delivered yet.
        pause: Seconds until the next delivery if its receiver refuses the message for now.
    """

    position: int
    message: Message
    until: float
    due: float = -math.inf
    since: float = math.inf
    pause: float = group.DURABLE_PAUSE

    def is_answered_by(self, answer: Message) -> bool:
        message = self.message
        return (answer.to, answer.from_, answer.id) == (message.from_, message.to, message.id)


@attrs.define(slots=True)
class _Log:
    """Log of a runtime with a link: the messages to deliver, and the progress of reads and trims.

    Attributes:
        known: Highest known position of an entry, even of a removed entry.
        is_behind: Whether the log may contain entries that were not read.
        items: The messages that were read and have not ended, in order.
        over: Heap of the positions of messages that ended although an earlier message has not
            ended.
        reached: Position up to which entries were read.
        fetch: Number of the request that reads the log; None: no request is under way.
        expects: The value of `known` when that request was made.
        wanted: Number of entries that were requested.
        ended: Position up to which all messages have ended.
        trimmed: Position up to which the shared store has removed entries.
        trims_at: Earliest time of the next trim.
        fetches_at: Earliest time of the next read.
    """

    runtime: str
    whose: str
    known: int
    is_behind: bool
    items: list[_Item] = attrs.field(factory=list)
    over: list[int] = attrs.field(factory=list)
    reached: int = 0
    fetch: int | None = None
    expects: int = 0
    wanted: int = 0
    ended: int = 0
    trimmed: int = 0
    is_trimming: bool = False
    trims_at: float = -math.inf
    fetches_at: float = -math.inf

    @property
    def must_fetch(self) -> bool:
        return (
            self.is_behind and self.fetch is None and len(self.items) <= group.DURABLE_WINDOW // 2
        )

    @property
    def must_trim(self) -> bool:
        return self.ended > self.trimmed and not self.is_trimming

    def deadline(self, now: float) -> float:
        """Return the time of the next read, trim or delivery that must wait; infinity: none."""
        pauses = [
            *([self.fetches_at] if self.must_fetch and self.fetches_at > now else []),
            *([self.trims_at] if self.must_trim else []),
            *(each.due for each in self.first()),
        ]
        return min(pauses, default=math.inf)

    def first(self) -> list[_Item]:
        """Return the first message that has not ended, for each pair of sender and receiver."""
        first: dict[tuple[str, str], _Item] = {}
        for item in self.items:
            first.setdefault((item.message.from_, item.message.to), item)
        return list(first.values())

    def end(self, item: _Item) -> None:
        """Remove a message that has ended, and advance the position up to which all have ended."""
        self.items.remove(item)
        heappush(self.over, item.position)
        first = self.items[0].position if self.items else math.inf
        while self.over and self.over[0] < first:
            self.ended = heappop(self.over)


class DeliverCore:
    """Delivery of durable messages to all runtimes that have a link at this node.

    Args:
        port: The host.
    """

    def __init__(self, port: LogPort) -> None:
        self._port: Final = port
        self._logs: dict[str, _Log] = {}
        # The highest position in each log that may have entries; None: any log may have entries.
        self._filled: dict[str, int] | None = None
        self._fetching = 0
        self._unread: dict[str, None] = {}
        self._numbers = itertools.count(1)
        self._alarms = Alarms[str]()

    def awaits(self, runtime: str, answer: Message) -> bool:
        """Return whether an answer of a runtime belongs to a durable message delivered to it.

        Args:
            runtime: Address of the runtime.
            answer: Its answer.
        """
        log = self._logs.get(runtime)
        return log is not None and any(item.is_answered_by(answer) for item in log.items)

    def deadline(self) -> float:
        """Return the time at which `tick` must be called."""
        return self._alarms.deadline()

    def tick(self, now: float) -> None:
        """Make the deliveries, reads and trims that are due."""
        for runtime in self._alarms.due(now):
            self._proceed(runtime, now)

    # ---- links

    def attach(self, runtime: str, whose: str, now: float) -> None:
        """Start delivering the log of a runtime, whose session has a link at this node now.

        Args:
            runtime: Address of the runtime.
            whose: The user or key to which the session belongs.
            now: Seconds on the host's clock.
        """
        self.detach(runtime)
        known = 0 if self._filled is None else self._filled.get(runtime, 0)
        is_behind = known > 0 or self._filled is None
        self._logs[runtime] = _Log(runtime, whose, known, is_behind)
        self._proceed(runtime, now)

    def detach(self, runtime: str) -> None:
        """Stop delivering the log of a runtime whose session has no link here now. Idempotent."""
        log = self._logs.pop(runtime, None)
        self._unread.pop(runtime, None)
        self._alarms.set(runtime, math.inf)
        if log is not None and log.must_trim:
            self._port.trim(runtime, log.ended)

    def take_answer(self, runtime: str, answer: Message, now: float) -> None:
        """Apply the answer of a runtime to a delivered message: end or repeat the message."""
        log = self._logs.get(runtime)
        if log is not None:
            _apply_answer(log, answer, now)
            self._proceed(runtime, now)

    # ---- the engine

    def begin(self, now: float) -> None:
        """Repeat all requests to the shared store: a new connection answers no earlier ones."""
        self._fetching = 0
        for runtime, log in self._logs.items():
            # Reports of new entries may have been lost with the connection.
            log.fetch, log.is_trimming, log.is_behind = None, False, True
            self._proceed(runtime, now)

    def begin_list(self) -> None:
        """Forget which logs have entries, since the shared store is about to list all of them."""
        self._filled = {}

    def add_entry(self, runtime: str, position: int, now: float) -> None:
        """Take a report that the log of a runtime has, or has had, an entry at a position."""
        if self._filled is not None:
            self._filled[runtime] = max(position, self._filled.get(runtime, 0))
            if len(self._filled) > group.DURABLE_LOGS:
                self._filled = None
        log = self._logs.get(runtime)
        if log is not None:
            if position > log.known:
                log.known, log.is_behind = position, True
            self._proceed(runtime, now)

    def take_entries(
        self, runtime: str, number: int, entries: Sequence[Kept] | None, now: float
    ) -> None:
        """Take the result of `LogPort.fetch`: entries of a log.

        Args:
            runtime: Address of the runtime.
            number: Number of the request.
            entries: The entries; if fewer than requested, the log has no more; None: the log could
                not be read.
            now: Seconds on the host's clock.
        """
        log = self._logs.get(runtime)
        self._fetching = max(0, self._fetching - 1)
        if log is not None and log.fetch == number:
            log.fetch = None
            if entries is None:
                log.fetches_at = now + group.GROUP_RETRY
            else:
                self._read(log, entries, now)
        self._proceed(runtime, now)
        while self._unread and self._fetching < group.DURABLE_FETCHES:
            self._proceed(next(iter(self._unread)), now)

    def take_trim(self, runtime: str, position: int, now: float, *, is_done: bool) -> None:
        """Take the result of `LogPort.trim`: whether the entries were removed.

        Args:
            runtime: Address of the runtime.
            position: The position up to which entries should be removed.
            now: Seconds on the host's clock.
            is_done: Whether they were removed.
        """
        filled = self._filled
        if is_done and filled is not None and filled.get(runtime, 0) <= position:
            filled.pop(runtime, None)
        log = self._logs.get(runtime)
        if log is None:
            return
        log.is_trimming = False
        if is_done:
            log.trimmed = max(log.trimmed, position)
        else:
            log.trims_at = now + group.GROUP_RETRY
        self._proceed(runtime, now)

    def _read(self, log: _Log, entries: Sequence[Kept], now: float) -> None:
        for entry in entries:
            if entry.position <= log.reached:
                continue
            log.reached = entry.position
            if entry.message is None:
                self._port.give_up(log.runtime, None, _UNREADABLE)
            elif entry.whose != log.whose:
                self._port.give_up(log.runtime, entry.message, _ANOTHERS)
            elif entry.until <= now:
                self._port.give_up(log.runtime, entry.message, _OLD)
            else:
                log.items.append(_Item(entry.position, entry.message, entry.until))
        log.is_behind = len(entries) >= log.wanted or log.known > max(log.reached, log.expects)

    # ---- the log of a runtime

    def _proceed(self, runtime: str, now: float) -> None:
        """Make all deliveries, trims and reads of one log that are due."""
        log = self._logs.get(runtime)
        if log is None:
            return
        for item in log.first():
            if item.due <= now:
                self._deliver(log, item, now)
        if not log.items:
            log.ended = max(log.ended, log.reached)
        if log.must_trim and log.trims_at <= now:
            log.is_trimming = True
            self._port.trim(runtime, log.ended)
        self._fetch(log, now)
        self._alarms.set(runtime, log.deadline(now))

    def _deliver(self, log: _Log, item: _Item, now: float) -> None:
        """Deliver a message, or abandon the message if its time is over."""
        if min(item.until, item.since + group.DURABLE_PATIENCE) <= now:
            log.end(item)
            why = _OLD if item.until <= now else _NOT_TAKEN
            self._port.give_up(log.runtime, item.message, why)
            return
        item.since = min(item.since, now)
        item.due = now + group.DURABLE_ANSWER
        self._port.deliver(log.runtime, item.position, item.message)

    def _fetch(self, log: _Log, now: float) -> None:
        self._unread.pop(log.runtime, None)
        if not log.must_fetch or log.fetches_at > now:
            return
        if self._fetching >= group.DURABLE_FETCHES:
            self._unread[log.runtime] = None
            return
        self._fetching += 1
        log.fetch, log.expects = next(self._numbers), log.known
        log.wanted = group.DURABLE_WINDOW - len(log.items)
        self._port.fetch(log.runtime, log.fetch, log.reached, log.wanted)


def _apply_answer(log: _Log, answer: Message, now: float) -> None:
    """End, postpone or keep waiting for the message to which an answer belongs."""
    for item in log.items:
        if item.is_answered_by(answer):
            if answer.code < FIRST_FINAL:
                item.due = now + group.DURABLE_ANSWER
            elif answer.code in NOT_NOW:
                item.due = now + item.pause
                item.pause = min(2 * item.pause, group.DURABLE_PAUSE_MOST)
            else:
                log.end(item)
            return
