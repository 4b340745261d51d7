"""Durable messages: kept in the log of their receiver's runtime until the receiver has answered.

`AcceptCore` is the end of the sender's node. It gives messages to the engine in order, and the
sender is answered when the log has its message, or why it has not.

`DeliverCore` is the end of the node that has a link to the receiver's runtime. It reads the log,
and delivers one message of each pair of sender and receiver at a time, so the order of a pair is
that of the log also if a message is delivered again. An answer of the receiver ends a message, and
the log is trimmed up to the first one that has not ended. Answers that say "not now" do not end it:
the hyperty is not there (404), or has no room (503). The log outlives links, sessions and nodes, so
this core forgets what it has delivered to a runtime with the link: the next link begins with the
log. What is delivered twice thereby is known to the receiver by its position.

Few logs have entries when a link comes, and only those are read. The engine lists them, and reports
each further entry to each node, so no node that dies has to. A report may be late, but it comes:
then the log is read. The list is made anew at times, as nobody reports what other nodes remove.
"""

import itertools
import math
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Final, TypeAlias, assert_never, final

import attrs

from fsm.effects import Refused
from fsm.limits.shares import Share, UserQueue, user_of
from fsm.limits.timers import Alarms
from specs.limits.group import (
    DURABLE_ANSWER,
    DURABLE_BATCH,
    DURABLE_FETCHES,
    DURABLE_LIFE,
    DURABLE_LOGS,
    DURABLE_PATIENCE,
    DURABLE_PAUSE,
    DURABLE_PAUSE_MOST,
    DURABLE_WAITING,
    DURABLE_WAITING_BYTES,
    DURABLE_WINDOW,
    GROUP_RETRY,
)
from specs.message import Message
from specs.reply_code import FIRST_FINAL, NOT_NOW

# ---- the end of the sender


@final
@attrs.frozen(slots=True)
class Offered:
    """A message that is to be kept.

    Attributes:
        message: The message.
        by: Runtime whose session brought it.
        log: The receiver's runtime, whose log is to have it.
        payload: Entry of the log.
    """

    message: Message
    by: str
    log: str
    payload: bytes = attrs.field(repr=False)


@final
@attrs.frozen(slots=True)
class Batch:
    """Messages that the engine is to keep.

    Attributes:
        number: Names the batch; the answer of the engine repeats it.
        offered: The messages, in order; none: there is no batch.
    """

    number: int
    offered: Sequence[Offered] = ()


@final
class AcceptCore:
    """What waits to be kept by the engine, in order; one batch is under way at a time.

    Args:
        domain: Domain of the node.
    """

    def __init__(self, domain: str) -> None:
        self._domain = domain
        limits = Share(DURABLE_WAITING, DURABLE_WAITING_BYTES)
        self._waiting = UserQueue[Offered]("durable messages that wait", limits)
        self._asked = Batch(0)

    @property
    def is_settled(self) -> bool:
        """True if nothing waits, and nothing is under way."""
        return not self._waiting and not self._asked.offered

    def offer(self, one: Offered) -> Refused | None:
        """Take a message; return why there is no room, None if there was."""
        return self._waiting.put(one, user_of(one.message, self._domain), len(one.payload))

    def batch(self) -> Batch | None:
        """Return what is to be given to the engine now; None: nothing, or a batch is under way."""
        if self._asked.offered or not self._waiting:
            return None
        offered = self._waiting.take(DURABLE_BATCH)
        self._asked = Batch(self._asked.number + 1, offered)
        return self._asked

    def answered(self, number: int) -> Sequence[Offered]:
        """Return the messages of a batch, whose outcomes are known; none: it was given up.

        Args:
            number: Number of the batch.
        """
        return self.given_up() if number == self._asked.number else ()

    def given_up(self) -> Sequence[Offered]:
        """Return what was under way: its outcome will never be known."""
        offered, self._asked = self._asked.offered, Batch(self._asked.number)
        return offered


# ---- the end of the receiver


@final
@attrs.frozen(slots=True)
class Attached:
    """A session of a runtime has a link at this node.

    Attributes:
        whose: What the session belongs to: a user, or a key.
    """

    runtime: str
    whose: str


@final
@attrs.frozen(slots=True)
class Detached:
    """It has none any more."""

    runtime: str


@final
@attrs.frozen(slots=True)
class Listing:
    """Each log that has an entry is reported from now on, and then each further entry."""


@final
@attrs.frozen(slots=True)
class Reached:
    """The log of a runtime has an entry at a position, or has had one."""

    runtime: str
    position: int


@final
@attrs.frozen(slots=True)
class Kept:
    """One entry of a log.

    Attributes:
        message: The message; None: the entry is none of ours.
        whose: What the session of the receiver belonged to when the message was accepted.
        until: When it is given up, in seconds on the host's clock.
    """

    position: int
    message: Message | None
    whose: str = ""
    until: float = math.inf


@final
@attrs.frozen(slots=True)
class Fetched:
    """A log was read; fewer entries than asked for are all there are."""

    runtime: str
    number: int
    entries: Sequence[Kept]


@final
@attrs.frozen(slots=True)
class Unfetched:
    """A log could not be read."""

    runtime: str
    number: int


@final
@attrs.frozen(slots=True)
class Trimmed:
    """A log was trimmed, or could not be."""

    runtime: str
    position: int
    is_done: bool


@final
@attrs.frozen(slots=True)
class Answered:
    """A runtime answers a message."""

    runtime: str
    answer: Message


@final
@attrs.frozen(slots=True)
class Began:
    """The engine can be asked from now on; what it was asked before is not answered any more."""


@final
@attrs.frozen(slots=True)
class Tick:
    """Something is due."""


News: TypeAlias = Listing | Reached | Fetched | Unfetched | Trimmed
Input: TypeAlias = Attached | Detached | Answered | Began | Tick | News


@final
@attrs.frozen(slots=True)
class Fetch:
    """Read a log.

    Attributes:
        number: Names the request; `Fetched` or `Unfetched` repeats it.
        after: Position behind which entries are wanted.
        most: How many of them.
    """

    runtime: str
    number: int
    after: int
    most: int


@final
@attrs.frozen(slots=True)
class Deliver:
    """Give a message to the session of a runtime."""

    runtime: str
    position: int
    message: Message


@final
@attrs.frozen(slots=True)
class Trim:
    """Remove the entries of a log up to a position."""

    runtime: str
    position: int


@final
@attrs.frozen(slots=True)
class GaveUp:
    """A message ends without an answer of its receiver; None: an entry that is none of ours."""

    runtime: str
    message: Message | None
    why: str


Effect: TypeAlias = Fetch | Deliver | Trim | GaveUp

_ANOTHERS: Final = "its runtime belongs to another user, or has another key, than when it was sent"
_UNREADABLE: Final = "the entry of the log cannot be read"
_OLD: Final = f"it was not answered within {DURABLE_LIFE / 3600:g} hours"
_NOT_TAKEN: Final = "the receiver does not take it"


@attrs.define(slots=True, eq=False)
class _Item:
    """A message that was read and has not ended.

    Attributes:
        until: When it is given up, however far it is.
        due: When it is delivered next.
        since: When it was delivered first; infinity: it was not.
        pause: Seconds before it is delivered again if its receiver does not take it now.
    """

    position: int
    message: Message
    until: float
    due: float = -math.inf
    since: float = math.inf
    pause: float = DURABLE_PAUSE

    def is_answered_by(self, answer: Message) -> bool:
        asked = self.message
        return (answer.to, answer.from_, answer.id) == (asked.from_, asked.to, asked.id)


@attrs.define(slots=True)
class _Log:
    """The log of a runtime with a link.

    Attributes:
        known: Highest position that is known to have, or to have had, an entry.
        is_behind: Whether there may be entries that were not read.
        items: The messages that were read and have not ended, in order.
        over: Positions of those that have ended behind one that has not, as a heap: no more than
            the log has entries.
        reached: Position up to which entries were read.
        fetch: Number of the request that reads the log; None: none does.
        expects: `known` when that request was made.
        wanted: How many entries that request asked for.
        ended: Position up to which all messages have ended.
        trimmed: Position up to which the engine has no entries any more.
        trims_at: When it may be trimmed again.
        fetches_at: When it may be read again.
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
        return self.is_behind and self.fetch is None and len(self.items) <= DURABLE_WINDOW // 2

    @property
    def must_trim(self) -> bool:
        return self.ended > self.trimmed and not self.is_trimming

    def deadline(self, now: float) -> float:
        """Return when more is to be done; what may be done now is under way, or waits its turn."""
        pauses = [
            *([self.fetches_at] if self.must_fetch and self.fetches_at > now else []),
            *([self.trims_at] if self.must_trim else []),
            *(one.due for one in self.first()),
        ]
        return min(pauses, default=math.inf)

    def first(self) -> list[_Item]:
        """Return the first message of each pair that has not ended."""
        first: dict[tuple[str, str], _Item] = {}
        for one in self.items:
            first.setdefault((one.message.from_, one.message.to), one)
        return list(first.values())

    def end(self, one: _Item) -> None:
        """Note that a message has ended."""
        self.items.remove(one)
        heappush(self.over, one.position)
        first = self.items[0].position if self.items else math.inf
        while self.over and self.over[0] < first:
            self.ended = heappop(self.over)


@final
class DeliverCore:
    """The logs of the runtimes that have a link at this node."""

    def __init__(self) -> None:
        self._logs: dict[str, _Log] = {}
        # Of each log that may have entries the highest position of one; None: of any log.
        self._filled: dict[str, int] | None = None
        self._fetching = 0
        self._unread: dict[str, None] = {}
        self._numbers = itertools.count(1)
        self._alarms = Alarms[str]()

    def awaits(self, runtime: str, answer: Message) -> bool:
        """Return whether an answer of a runtime is that of a message which was delivered.

        Args:
            runtime: Address of the runtime.
            answer: Its answer.
        """
        log = self._logs.get(runtime)
        return log is not None and any(one.is_answered_by(answer) for one in log.items)

    def deadline(self) -> float:
        """Return when a `Tick` is due."""
        return self._alarms.deadline()

    def feed(self, happened: Input, now: float) -> list[Effect]:
        """Take an input; return the effects, in order.

        Args:
            happened: The input.
            now: Seconds on the host's clock.
        """
        match happened:
            case Attached(runtime, whose):
                return [*self._detach(runtime), *self._attach(runtime, whose, now)]
            case Detached(runtime):
                return self._detach(runtime)
            case Began():
                return self._begin(now)
            case Tick():
                due = self._alarms.due(now)
                return [effect for one in due for effect in self._go_on(one, now)]
            case Fetched() | Unfetched():
                return self._fetched(happened, now)
            case _:
                self._note(happened)
                return [] if isinstance(happened, Listing) else self._heard(happened, now)

    def _note(self, news: Listing | Reached | Trimmed | Answered) -> None:
        """Note whether logs may have entries."""
        filled = {} if isinstance(news, Listing) else self._filled
        match news:
            case Reached(runtime, position) if filled is not None:
                filled[runtime] = max(position, filled.get(runtime, 0))
                if len(filled) > DURABLE_LOGS:
                    filled = None
            case Trimmed(runtime, position, is_done=True) if filled is not None:
                if filled.get(runtime, 0) <= position:
                    filled.pop(runtime, None)
        self._filled = filled

    def _heard(self, happened: Reached | Trimmed | Answered, now: float) -> list[Effect]:
        log = self._logs.get(happened.runtime)
        if log is None:
            return []
        match happened:
            case Reached(_, position):
                if position > log.known:
                    log.known, log.is_behind = position, True
            case Trimmed(_, position, is_done):
                log.is_trimming = False
                if is_done:
                    log.trimmed = max(log.trimmed, position)
                else:
                    log.trims_at = now + GROUP_RETRY
            case Answered(_, answer):
                _answered(log, answer, now)
            case _:
                assert_never(happened)
        return self._go_on(happened.runtime, now)

    def _begin(self, now: float) -> list[Effect]:
        self._fetching = 0
        effects: list[Effect] = []
        for runtime, log in self._logs.items():
            # What it has had to say meanwhile is not known.
            log.fetch, log.is_trimming, log.is_behind = None, False, True
            effects += self._go_on(runtime, now)
        return effects

    def _attach(self, runtime: str, whose: str, now: float) -> list[Effect]:
        known = 0 if self._filled is None else self._filled.get(runtime, 0)
        is_behind = known > 0 or self._filled is None
        self._logs[runtime] = _Log(runtime, whose, known, is_behind)
        return self._go_on(runtime, now)

    def _detach(self, runtime: str) -> list[Effect]:
        log = self._logs.pop(runtime, None)
        self._unread.pop(runtime, None)
        self._alarms.set(runtime, math.inf)
        if log is None or not log.must_trim:
            return []
        return [Trim(runtime, log.ended)]

    def _fetched(self, happened: Fetched | Unfetched, now: float) -> list[Effect]:
        runtime = happened.runtime
        log = self._logs.get(runtime)
        self._fetching = max(0, self._fetching - 1)
        effects: list[Effect] = []
        if log is not None and log.fetch == happened.number:
            log.fetch = None
            if isinstance(happened, Unfetched):
                log.fetches_at = now + GROUP_RETRY
            else:
                effects += self._read(log, happened.entries, now)
        effects += self._go_on(runtime, now)
        while self._unread and self._fetching < DURABLE_FETCHES:
            effects += self._go_on(next(iter(self._unread)), now)
        return effects

    @staticmethod
    def _read(log: _Log, entries: Sequence[Kept], now: float) -> list[Effect]:
        effects: list[Effect] = []
        for one in entries:
            if one.position <= log.reached:
                continue
            log.reached = one.position
            if one.message is None:
                effects.append(GaveUp(log.runtime, None, _UNREADABLE))
            elif one.whose != log.whose:
                effects.append(GaveUp(log.runtime, one.message, _ANOTHERS))
            elif one.until <= now:
                effects.append(GaveUp(log.runtime, one.message, _OLD))
            else:
                log.items.append(_Item(one.position, one.message, one.until))
        log.is_behind = len(entries) >= log.wanted or log.known > max(log.reached, log.expects)
        return effects

    def _go_on(self, runtime: str, now: float) -> list[Effect]:
        """Deliver, trim and read what is due of a log."""
        log = self._logs.get(runtime)
        if log is None:
            return []
        effects = [effect for one in log.first() if one.due <= now for effect in _go(log, one, now)]
        if not log.items:
            log.ended = max(log.ended, log.reached)
        if log.must_trim and log.trims_at <= now:
            log.is_trimming = True
            effects.append(Trim(runtime, log.ended))
        effects += self._fetch(log, now)
        self._alarms.set(runtime, log.deadline(now))
        return effects

    def _fetch(self, log: _Log, now: float) -> list[Effect]:
        self._unread.pop(log.runtime, None)
        if not log.must_fetch or log.fetches_at > now:
            return []
        if self._fetching >= DURABLE_FETCHES:
            self._unread[log.runtime] = None
            return []
        self._fetching += 1
        log.fetch, log.expects = next(self._numbers), log.known
        log.wanted = DURABLE_WINDOW - len(log.items)
        return [Fetch(log.runtime, log.fetch, log.reached, log.wanted)]


def _go(log: _Log, one: _Item, now: float) -> list[Effect]:
    """Deliver a message, or give it up."""
    if min(one.until, one.since + DURABLE_PATIENCE) <= now:
        log.end(one)
        return [GaveUp(log.runtime, one.message, _OLD if one.until <= now else _NOT_TAKEN)]
    one.since = min(one.since, now)
    one.due = now + DURABLE_ANSWER
    return [Deliver(log.runtime, one.position, one.message)]


def _answered(log: _Log, answer: Message, now: float) -> None:
    """Take an answer to a message that was delivered."""
    for one in log.items:
        if one.is_answered_by(answer):
            if answer.code < FIRST_FINAL:
                one.due = now + DURABLE_ANSWER
            elif answer.code in NOT_NOW:
                one.due = now + one.pause
                one.pause = min(2 * one.pause, DURABLE_PAUSE_MOST)
            else:
                log.end(one)
            return
