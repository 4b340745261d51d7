"""The rows of a group as one node knows them: a mirror of the engine, and its own writes.

Watches bring the rows that other nodes write; what comes late, or again, is known by its revision
and changes nothing. A node's own change is written as compare-and-set: the engine makes it only
if the row has still the revision that the node knew when it decided. One write of a row is under
way at a time; later changes of the same row are merged into the next.

A write ends in one of three ways. It is made: the changes are done. Another row is there: they
are lost, with those that came after, as all were decided without knowledge of that row, which is
counts instead. Or nobody knows: it is made again, with the same expected revision. If the first
attempt was made, or is made later, the engine refuses the second and names the row that is there,
which has the value that was to be written. So nothing is written twice, and no answer of a read
has to be trusted that the first attempt overtakes.

A row that another node wrote while the node's own change waited to be sent was not known to it
either: the change is lost without being sent.

When a watch begins anew, all rows come again. What has not come when it is current has gone,
unless the node itself has written it meanwhile; where only a read can tell, it is asked for.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias, assert_never, final

import attrs

from fsm.group.kinds import GroupRow, RowRefusal, RowRefusedError
from fsm.group.policies import POLICY_KEY
from fsm.group.row_form import read_row, write_row
from specs.limits.group import GROUP_BATCH, GROUP_RETRY, GROUP_ROWS, GROUP_WRITES

# Inputs and effects of the mirror of a group's rows (`fsm.group.rows`).

THE_NODE: Final = 0
"""Stands for a link where the node itself waits for a row to be written."""


@final
@attrs.frozen(slots=True)
class Change:
    """The node has decided that a row is so.

    Attributes:
        ticket: Number of a link that is answered when the row is written; `THE_NODE`: it waits
            itself; None: nothing waits.
    """

    row: GroupRow
    ticket: int | None = None


@final
@attrs.frozen(slots=True)
class Remove:
    """The node has decided that a row goes.

    Attributes:
        ticket: As of `Change`.
    """

    key: str
    ticket: int | None = None


@final
@attrs.frozen(slots=True)
class Seen:
    """A version of a row that a watch, or a read, has brought.

    Attributes:
        value: None: the row is not there.
        revision: Its revision. Of a row that is not there: of its removal, or, if that is not
            known, any from that of its last version on.
        is_read: Whether it answers a `Read`.
    """

    key: str
    value: bytes | None
    revision: int
    is_read: bool = False


@final
@attrs.frozen(slots=True)
class Gap:
    """A watch begins: all rows below a prefix come, also those that came before."""

    prefix: str


@final
@attrs.frozen(slots=True)
class Current:
    """All rows below a prefix have come that were there when its watch began."""

    prefix: str


@attrs.frozen(slots=True)
class Answer:
    """What has become of a `Put`.

    Attributes:
        number: Its number.
    """

    number: int


@final
@attrs.frozen(slots=True)
class Written(Answer):
    """The engine has made it."""

    revision: int


@final
@attrs.frozen(slots=True)
class Conflicted(Answer):
    """The engine has not made it, because the row has another revision.

    Attributes:
        value: The row that is there; None: there is none.
        revision: As of `Seen`.
    """

    value: bytes | None
    revision: int


@final
@attrs.frozen(slots=True)
class Unanswered(Answer):
    """It was not made, or nobody knows whether it was.

    Attributes:
        why: For people, as half a sentence.
    """

    why: str = ""


@final
@attrs.frozen(slots=True)
class AllUnanswered:
    """No `Put` that is under way will be answered any more."""


@final
@attrs.frozen(slots=True)
class Forget:
    """The node is fenced: nothing of what it knows or wanted counts any more."""


Answered: TypeAlias = Written | Conflicted | Unanswered

Input: TypeAlias = Change | Remove | Seen | Gap | Current | Answered | AllUnanswered | Forget


@final
@attrs.frozen(slots=True)
class Put:
    """Write a row, or delete it, if it has the expected revision.

    Attributes:
        number: Returned with the answer.
        value: None: delete it.
        expected: The revision that it must have; 0: there must be none.
    """

    number: int
    key: str
    value: bytes | None
    expected: int


@final
@attrs.frozen(slots=True)
class Applied:
    """A row that this node has not written is so now.

    Attributes:
        before: What it was until now; None: it is new, or was none that could be read.
    """

    row: GroupRow
    revision: int
    before: GroupRow | None = None


@final
@attrs.frozen(slots=True)
class Withdrawn:
    """A row is not there any more, and this node has not removed it.

    Attributes:
        row: What it was.
    """

    row: GroupRow
    revision: int


@final
@attrs.frozen(slots=True)
class Done:
    """The changes of a row are in the engine: the links that wait for it may be answered.

    Attributes:
        row: What is there; None: the row was removed.
        revision: Its revision.
    """

    key: str
    tickets: tuple[int, ...]
    row: GroupRow | None = attrs.field(default=None, eq=False)
    revision: int = attrs.field(default=0, eq=False)


@final
@attrs.frozen(slots=True)
class Lost:
    """Changes of a row were not made, as the row was not what this node knew.

    Attributes:
        tickets: The links that wait; what they were to be told is wrong.
        row: What the row was to be, at last; None: it was to go.
        there: What is there, and counts instead; None: nothing that can be read.
        revision: Its revision.
    """

    key: str
    tickets: tuple[int, ...]
    row: GroupRow | None
    there: GroupRow | None
    revision: int = attrs.field(default=0, eq=False)


@final
@attrs.frozen(slots=True)
class Read:
    """Read a row, and feed it as `Seen`: whether it is there cannot be known otherwise.

    Attributes:
        revision: That of the answer, if there is no row.
    """

    key: str
    revision: int


@final
@attrs.frozen(slots=True)
class Rejected:
    """A row that another program, or a later version, has written is not taken."""

    key: str
    reason: RowRefusal


RowNews: TypeAlias = Applied | Withdrawn | Lost
"""What the mirror says of a row that is not as this node knew it, or wanted it."""

Effect: TypeAlias = RowNews | Done | Read | Rejected


@final
@attrs.frozen(slots=True)
class _Known:
    """A row as the engine has it, as far as is known.

    Attributes:
        row: None: it is refused.
    """

    value: bytes
    revision: int
    row: GroupRow | None


@final
@attrs.define(slots=True)
class _Wanted:
    """Changes of one row that are written together."""

    value: bytes | None
    row: GroupRow | None
    tickets: tuple[int, ...] = ()


@final
@attrs.define(slots=True)
class _Flight:
    """A write that is under way, or whose outcome is unknown.

    Attributes:
        news: The newest version that a watch has brought meanwhile.
        is_in_doubt: Whether a watch has begun meanwhile and did not bring the row: what the
            answer tells may be older.
    """

    key: str
    number: int
    wanted: _Wanted
    expected: int
    news: Seen | None = None
    is_in_doubt: bool = False


@final
@attrs.define(slots=True)
class _Watch:
    """What a watch has brought that is not current yet.

    Attributes:
        newest: The highest revision of it.
    """

    keys: set[str] = attrs.field(factory=set)
    newest: int = 0


_NONE: Final[tuple[int, ...]] = ()


@final
class RowsCore:
    """The mirror of one node."""

    def __init__(self) -> None:
        self._rejected: list[Effect] = []
        self._known: dict[str, _Known] = {}
        self._gone: dict[str, int] = {}
        self._flights: dict[str, _Flight] = {}
        self._keys: dict[int, str] = {}
        self._late: dict[str, float] = {}
        self._ready: dict[str, _Wanted] = {}
        self._queued: dict[str, _Wanted] = {}
        self._watches: dict[str, _Watch] = {}
        self._numbers = 0

    # ---- what is known

    @property
    def rows(self) -> Mapping[str, GroupRow]:
        """The rows that the engine has, as far as is known; not what waits to be written."""
        return {key: known.row for key, known in self._known.items() if known.row is not None}

    def __len__(self) -> int:
        return len(self._known)

    @property
    def waiting(self) -> int:
        """Number of changes that are not known to be written."""
        return len(self._ready) + len(self._queued) + len(self._flights)

    @property
    def is_current(self) -> bool:
        """True if each watch that has begun has brought all that was there."""
        return not self._watches

    @property
    def is_full(self) -> bool:
        """True if so many changes wait that more must be refused."""
        return self.waiting >= GROUP_WRITES

    @property
    def is_settled(self) -> bool:
        """True if nothing waits to be written."""
        return not self._ready and not self._flights

    def row(self, key: str) -> GroupRow | None:
        """Return the row of a key, as it will be when the changes of this node are made.

        None: there is none.
        """
        wanted = self._ready.get(key) or self._queued.get(key)
        if wanted is None and key in self._flights:
            wanted = self._flights[key].wanted
        if wanted is not None:
            return wanted.row
        known = self._known.get(key)
        return None if known is None else known.row

    def revision(self, key: str) -> int:
        """Return the revision of the row of a key, as far as is known; 0: there is none."""
        known = self._known.get(key)
        return 0 if known is None else known.revision

    # ---- writes

    def writes(self, now: float) -> tuple[Put, ...]:
        """Return the writes that are due, in the order in which their rows were first changed.

        Each has to be answered with `Written`, `Conflicted` or `Unanswered`.

        Args:
            now: Seconds on the host's clock.
        """
        found: list[Put] = []
        for put in self._due(now):
            found.append(put)
            if len(found) == GROUP_BATCH:
                break
        return tuple(found)

    def _due(self, now: float) -> Iterator[Put]:
        for key in [one for one, again in self._late.items() if again <= now]:
            del self._late[key]
            flight = self._flights[key]
            flight.number = self._number(key)
            yield Put(flight.number, key, flight.wanted.value, flight.expected)
        while self._ready:
            key = next(iter(self._ready))
            wanted = self._ready.pop(key)
            flight = _Flight(key, self._number(key), wanted, self.revision(key))
            self._flights[key] = flight
            yield Put(flight.number, key, wanted.value, flight.expected)

    def _number(self, key: str) -> int:
        self._numbers += 1
        self._keys[self._numbers] = key
        return self._numbers

    def deadline(self, now: float) -> float:
        """Return when `writes` has something to write; infinity: not before another input.

        Args:
            now: Seconds on the host's clock.
        """
        # The first one is the oldest.
        return now if self._ready else next(iter(self._late.values()), math.inf)

    # ---- inputs

    def feed(self, happened: Input, now: float) -> list[Effect]:
        """Take an input; return the effects, in order.

        Args:
            happened: The input.
            now: Seconds on the host's clock.
        """
        effects = self._fed(happened, now)
        effects += self._rejected
        self._rejected.clear()
        return effects

    def _fed(self, happened: Input, now: float) -> list[Effect]:
        match happened:
            case Change(row, ticket):
                return self._change(row.key, _Wanted(write_row(row), row, _only(ticket)))
            case Remove(key, ticket):
                return self._change(key, _Wanted(None, None, _only(ticket)))
            case Seen():
                return self._seen(happened)
            case Gap() | Current():
                return self._watched(happened)
            case Written() | Conflicted() | Unanswered():
                return self._answered(happened, now)
            case AllUnanswered() | Forget():
                return self._given_up(happened, now)
            case _:
                assert_never(happened)

    def _change(self, key: str, wanted: _Wanted) -> list[Effect]:
        table = self._queued if key in self._flights else self._ready
        before = table.get(key)
        if before is not None:
            wanted.tickets = (*before.tickets, *wanted.tickets)
        if table is self._ready and wanted.value == self._value(key):
            # It is so already, or a change that was not sent yet is taken back.
            table.pop(key, None)
            return _done(key, wanted, self.revision(key))
        table[key] = wanted
        return []

    def _value(self, key: str) -> bytes | None:
        known = self._known.get(key)
        return None if known is None else known.value

    # ---- answers

    def _answered(self, answer: Answered, now: float) -> list[Effect]:
        key = self._keys.pop(answer.number, None)
        if key is None:
            return []
        flight = self._flights[key]
        match answer:
            case Written(_, revision):
                return self._made(key, flight, revision)
            case Conflicted(_, value, revision):
                news = _newest(Seen(key, value, revision), flight.news)
                if news.value != flight.wanted.value:
                    return self._lost(key, news)
                # An earlier attempt was made after all, or another node wants the same.
                return self._made(key, flight, news.revision)
            case Unanswered():
                self._late[key] = now + GROUP_RETRY
                return self._tell(key, flight)
            case _:
                assert_never(answer)

    def _tell(self, key: str, flight: _Flight) -> list[Effect]:
        """Decide the outcome of a write that was not answered by what a watch has brought.

        The engine makes no write any more that expects an older row than there is. One that
        expects none may still be made, once that row is removed: then it is seen like another's.
        """
        news = flight.news
        if key not in self._late or news is None:
            return []
        if news.value == flight.wanted.value:
            return self._made(key, flight, news.revision)
        return self._lost(key, news)

    def _made(self, key: str, flight: _Flight, revision: int) -> list[Effect]:
        self._end(key)
        later = self._queued.pop(key, None)
        self._note(key, flight.wanted.value, revision, flight.wanted.row)
        effects = _done(key, flight.wanted, revision)
        if later is not None:
            effects += self._change(key, later)
        if flight.news is not None and self._is_news(flight.news, revision):
            effects += self._foreign(flight.news)
        return [*effects, *self._doubt(flight)]

    def _doubt(self, flight: _Flight) -> list[Effect]:
        """Return what is to be read, if the row that an answer told of may have gone since."""
        known = self._known.get(flight.key)
        is_there = known is not None and flight.is_in_doubt
        return [Read(flight.key, known.revision)] if is_there and known is not None else []

    def _lost(self, key: str, news: Seen) -> list[Effect]:
        flight, ready = self._end(key), self._ready.pop(key, None)
        later = self._queued.pop(key, ready)
        tickets = _NONE if flight is None else flight.wanted.tickets
        last = None if flight is None else flight.wanted.row
        if later is not None:
            tickets, last = (*tickets, *later.tickets), later.row
        effects: list[Effect] = [Lost(key, tickets, last, self._learn(news), news.revision)]
        return effects if flight is None else [*effects, *self._doubt(flight)]

    def _end(self, key: str) -> _Flight | None:
        flight = self._flights.pop(key, None)
        self._late.pop(key, None)
        if flight is not None:
            self._keys.pop(flight.number, None)
        return flight

    # ---- news

    def _seen(self, news: Seen) -> list[Effect]:
        floor = self._gone.get(news.key, 0)
        if not news.is_read:
            self._mark(news)
        if not self._is_news(news, floor):
            return []
        flight = self._flights.get(news.key)
        if flight is None:
            return self._foreign(news)
        # Its own write or another's: the answer tells.
        flight.news = _newest(news, flight.news)
        return self._tell(news.key, flight)

    def _is_news(self, news: Seen, floor: int) -> bool:
        known = self._known.get(news.key)
        if known is None:
            # A write that is under way may have made the row that is removed.
            is_any = news.value is not None or news.key in self._flights
            return is_any and news.revision > floor
        # No two versions have one revision: a removal with that of a version comes after it.
        is_removed = news.value is None and news.revision == known.revision
        return news.revision > known.revision or is_removed

    def _foreign(self, news: Seen) -> list[Effect]:
        wanted = self._ready.get(news.key)
        if wanted is None:
            return self._take(news)
        if wanted.value != news.value:
            return self._lost(news.key, news)
        del self._ready[news.key]
        self._note(news.key, news.value, news.revision, wanted.row)
        return _done(news.key, wanted, news.revision)

    def _take(self, news: Seen) -> list[Effect]:
        """Note a row that another has written, and return what has changed by it."""
        known = self._known.get(news.key)
        before = None if known is None else known.row
        row = self._learn(news)
        if row is not None:
            return [] if row is before else [Applied(row, news.revision, before)]
        return [] if before is None else [Withdrawn(before, news.revision)]

    def _learn(self, news: Seen) -> GroupRow | None:
        """Note a row that another has written; return it, None if there is none to be used."""
        known, value = self._known.get(news.key), news.value
        if known is not None and known.value == value:
            row = known.row
        elif value is None:
            row = None
        elif known is None and not self._has_room(news.key):
            self._rejected.append(Rejected(news.key, RowRefusal.TOO_MANY))
            return None
        else:
            row = self._read(news.key, value)
        self._note(news.key, value, news.revision, row)
        return row

    def _has_room(self, key: str) -> bool:
        # Without the row of the policies, of which there is one, the node would permit too much.
        return key == POLICY_KEY or len(self._known) < GROUP_ROWS

    def _read(self, key: str, value: bytes) -> GroupRow | None:
        try:
            return read_row(key, value)
        except RowRefusedError as exc:
            self._rejected.append(Rejected(key, exc.reason))
            return None

    def _note(self, key: str, value: bytes | None, revision: int, row: GroupRow | None) -> None:
        if value is not None:
            self._known[key] = _Known(value, revision, row)
            return
        self._known.pop(key, None)
        if len(self._gone) >= GROUP_WRITES:
            # Without it a version that comes late is seen again until its removal comes.
            self._gone.clear()
        self._gone[key] = revision

    # ---- watches

    def _mark(self, news: Seen) -> None:
        """Note that a watch has brought a row: no earlier version of it comes any more."""
        if news.revision >= self._gone.get(news.key, math.inf):
            del self._gone[news.key]
        for prefix, watch in self._watches.items():
            if news.key.startswith(prefix):
                watch.keys.add(news.key)
                watch.newest = max(watch.newest, news.revision)

    def _watched(self, happened: Gap | Current) -> list[Effect]:
        if isinstance(happened, Gap):
            self._watches[happened.prefix] = _Watch()
            return []
        watch = self._watches.pop(happened.prefix, None)
        if watch is None:
            return []
        for key, flight in self._flights.items():
            if key.startswith(happened.prefix) and key not in watch.keys:
                flight.is_in_doubt = True
        missed = [
            (key, known.revision)
            for key, known in self._known.items()
            if key.startswith(happened.prefix) and key not in watch.keys
        ]
        return [effect for one in missed for effect in self._missed(*one, watch.newest)]

    def _missed(self, key: str, revision: int, newest: int) -> list[Effect]:
        if revision <= newest:
            # The watch is past that version and has not brought it: it was removed before.
            return self._seen(Seen(key, None, newest, is_read=True))
        return [] if key in self._flights else [Read(key, revision)]

    def _given_up(self, happened: AllUnanswered | Forget, now: float) -> list[Effect]:
        if isinstance(happened, Forget):
            return self._forget()
        each = [Unanswered(number) for number in self._keys]
        return [effect for one in each for effect in self._answered(one, now)]

    def _forget(self) -> list[Effect]:
        known = [(one.row, one.revision) for one in self._known.values()]
        for table in (self._known, self._gone, self._flights, self._keys, self._watches):
            table.clear()
        self._late.clear()
        self._ready.clear()
        self._queued.clear()
        return [Withdrawn(row, revision) for row, revision in known if row is not None]


def _newest(one: Seen, other: Seen | None) -> Seen:
    return one if other is None or one.revision >= other.revision else other


def _only(ticket: int | None) -> tuple[int, ...]:
    return _NONE if ticket is None else (ticket,)


def _done(key: str, made: _Wanted, revision: int) -> list[Effect]:
    return [Done(key, made.tickets, made.row, revision)] if made.tickets else []
