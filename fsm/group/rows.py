"""Rows of a group as one node knows them: a mirror of the engine, and the node's own writes.

The engine is the key-value store that the nodes share; each version of a row has a revision, which
only rises. Subscriptions to the engine, called watches, bring the rows that other nodes write;
versions that come late or twice are recognised by their revision and ignored. A node's own change
is written by compare-and-set: the engine makes it only if the row still has the revision that the
node knew when it decided. One write of a row is under way at a time; later changes of the same row
are merged into the next write.

A write ends in one of three ways. First, the engine has made it. Second, the row has another
version: then the changes of this node are lost, with those decided after them, since all were
decided without knowledge of that version, which is valid instead. Third, the outcome is unknown:
then the write is repeated, with the same expected revision. If the first attempt was made, or is
made later, the engine refuses the second and returns the present row, which has the value of the
write. So no change is made twice.

If another node wrote a row while the node's own change waited to be sent, the change was decided
without that row: it is lost without being sent.

When a watch begins again, all rows come again. When the list is complete, rows that have not come
are deleted, unless the node itself has written them meanwhile; in doubtful cases the row is read.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final, Protocol, final

import attrs

from fsm.group.kinds import GroupRow, RowRefusal, RowRefusedError
from fsm.group.policies import POLICY_KEY
from fsm.group.row_form import read_row, write_row
from specs.limits.group import GROUP_BATCH, GROUP_RETRY, GROUP_ROWS, GROUP_WRITES

THE_NODE: Final = 0
"""Ticket number by which the node itself waits for a row; links have other numbers."""


@attrs.frozen(slots=True)
class Put:
    """Write or removal of a row, which the shared store makes if the row has the expected revision.

    Attributes:
        number: Number of the request, which its answer repeats.
        value: The value; None: delete the row.
        expected: The revision that the row must have; 0: the row must not exist.
    """

    number: int
    key: str
    value: bytes | None
    expected: int


class RowsPort(Protocol):
    """Callbacks of `RowsCore` to its host; none of them may call the core."""

    def apply(self, row: GroupRow, revision: int) -> None:
        """Act on a row that another node has written."""

    def withdraw(self, row: GroupRow, revision: int, *, is_lost: bool = False) -> None:
        """Act on the absence of a row that this node has not removed itself.

        Args:
            row: The former row; with `is_lost`, the row that this node wanted.
            revision: Revision of the removal.
            is_lost: Whether this node's write was lost because another node removed the row.
        """

    def confirm(
        self, key: str, row: GroupRow | None, revision: int, tickets: tuple[int, ...]
    ) -> None:
        """Answer the links that wait for a row: it is written, or removed (None)."""

    def lose(self, key: str, tickets: tuple[int, ...]) -> None:
        """Tell the links that wait for a row that its write was lost.

        Before this call, `apply` was called with the present row, or `withdraw` with the wanted
        row.
        """

    def read(self, key: str, revision: int) -> None:
        """Read a row from the shared store, since it may have been removed, and call `take_row`.

        Args:
            key: Key of the row.
            revision: Revision to pass on if the row does not exist.
        """

    def refuse(self, key: str, reason: RowRefusal) -> None:
        """Report a row that is ignored: unreadable, too large, or one too many."""


@attrs.frozen(slots=True)
class _Version:
    """Version of a row in the shared store: value, revision and decoded row.

    Attributes:
        value: The value; None: the row is absent.
        row: The row; None: it is refused, or was not read yet.
    """

    value: bytes | None
    revision: int
    row: GroupRow | None = None


_ABSENT: Final = _Version(None, 0)


@final
@attrs.define(slots=True)
class _Wanted:
    """Changes of one row that this node writes together, and the links that wait for them."""

    value: bytes | None
    row: GroupRow | None
    tickets: tuple[int, ...] = ()


@final
@attrs.define(slots=True)
class _Flight:
    """Write of a row that is under way, or whose outcome is unknown.

    Attributes:
        news: The newest version of the row that a watch has brought in the meantime.
        is_in_doubt: Whether a watch began meanwhile and did not bring the row, so the answer may be
            outdated.
    """

    key: str
    number: int
    wanted: _Wanted
    expected: int
    news: _Version | None = None
    is_in_doubt: bool = False


@attrs.define(slots=True)
class _Watch:
    """Keys of the rows that a watch has brought, while its initial list is incomplete.

    Attributes:
        newest: The highest revision among these rows.
    """

    keys: set[str] = attrs.field(factory=set)
    newest: int = 0


class RowsCore:
    """Mirror of the shared store's rows at one node, and queue of the node's own writes.

    Args:
        port: The host.
        most: How many rows it has; further ones are refused.
    """

    def __init__(self, port: RowsPort, most: int = GROUP_ROWS) -> None:
        self._port: Final = port
        self._most: Final = most
        self._numbers = 0
        self._clear()

    def _clear(self) -> None:
        self._known: dict[str, _Version] = {}
        self._gone: dict[str, int] = {}
        self._flights: dict[str, _Flight] = {}
        self._keys: dict[int, str] = {}
        self._late: dict[str, float] = {}
        self._ready: dict[str, _Wanted] = {}
        self._queued: dict[str, _Wanted] = {}
        self._watches: dict[str, _Watch] = {}

    # ---- queries

    @property
    def rows(self) -> Mapping[str, GroupRow]:
        """The rows of the shared store by key, as far as known, apart from waiting writes."""
        return {key: known.row for key, known in self._known.items() if known.row is not None}

    def __len__(self) -> int:
        return len(self._known)

    @property
    def waiting(self) -> int:
        """The number of changes that wait to be sent, or for their answer."""
        return len(self._ready) + len(self._queued) + len(self._flights)

    @property
    def is_current(self) -> bool:
        """True if each watch that has begun has brought all rows that existed at its beginning."""
        return not self._watches

    @property
    def is_full(self) -> bool:
        """True if so many changes wait that further changes must be refused."""
        return self.waiting >= GROUP_WRITES

    @property
    def is_settled(self) -> bool:
        """True if no change waits to be written."""
        return not self._ready and not self._flights

    def row(self, key: str) -> GroupRow | None:
        """Return the row of a key as it will be after this node's waiting writes."""
        wanted = self._ready.get(key) or self._queued.get(key)
        if wanted is None and key in self._flights:
            wanted = self._flights[key].wanted
        return self._known.get(key, _ABSENT).row if wanted is None else wanted.row

    def revision(self, key: str) -> int:
        """Return the known revision of the row of a key; 0: the row does not exist."""
        return self._known.get(key, _ABSENT).revision

    # ---- writes

    def writes(self, now: float) -> tuple[Put, ...]:
        """Return the writes to send now, in the order in which their rows were first changed.

        Each must be answered by `take_written`, `take_conflict` or `take_silence`.
        """
        return tuple(islice(self._due(now), GROUP_BATCH))

    def _due(self, now: float) -> Iterator[Put]:
        for key in [key for key, again in self._late.items() if again <= now]:
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
        """Return the time at which a further write is due; infinity: not before another input."""
        # The dictionary is sorted by time, so its first value is the earliest.
        return now if self._ready else next(iter(self._late.values()), math.inf)

    # ---- changes by this node

    def change(self, key: str, row: GroupRow | None, ticket: int | None = None) -> None:
        """Queue a write or removal of a row by this node.

        Args:
            key: Key of the row.
            row: The row; None: remove it.
            ticket: Number of the link that is answered when the row is written; `THE_NODE`: the
                node itself waits; None: nobody waits.
        """
        value = None if row is None else write_row(row)
        self._want(key, _Wanted(value, row, () if ticket is None else (ticket,)))

    def _want(self, key: str, wanted: _Wanted) -> None:
        table = self._queued if key in self._flights else self._ready
        former = table.get(key)
        if former is not None:
            wanted.tickets = (*former.tickets, *wanted.tickets)
        known = self._known.get(key, _ABSENT)
        if table is self._ready and wanted.value == known.value:
            # The row has this value already, so the change that was not sent yet is dropped.
            table.pop(key, None)
            self._confirm(key, wanted, known.revision)
        else:
            table[key] = wanted

    def _confirm(self, key: str, made: _Wanted, revision: int) -> None:
        if made.tickets:
            self._port.confirm(key, made.row, revision, made.tickets)

    def forget(self) -> None:
        """Forget all rows and changes, since the node is no longer a member of the group."""
        known = self._known
        self._clear()
        for version in known.values():
            if version.row is not None:
                self._port.withdraw(version.row, version.revision)

    # ---- answers

    def take_written(self, number: int, revision: int) -> None:
        """Take the answer to a `Put`: the shared store has made the write, with this revision."""
        if (flight := self._end_flight(number)) is not None:
            self._apply_made(flight, revision)

    def take_conflict(self, number: int, value: bytes | None, revision: int) -> None:
        """Take the answer to a `Put`: it was refused, since the row has another revision.

        Args:
            number: Number of the `Put`.
            value: The present value; None: there is none.
            revision: As in `take_row`.
        """
        if (flight := self._end_flight(number)) is None:
            return
        news = _newest(_Version(value, revision), flight.news)
        if news.value == flight.wanted.value:
            # An earlier attempt was made after all, or another node wrote the same.
            self._apply_made(flight, news.revision)
        else:
            self._lose(flight.key, news)

    def take_silence(self, number: int, now: float) -> None:
        """Schedule a `Put` again that was not made, or whose outcome is unknown."""
        if (flight := self._end_flight(number)) is not None:
            self._late[flight.key] = now + GROUP_RETRY
            self._judge(flight)

    def lose_answers(self, now: float) -> None:
        """Schedule all `Put`s under way again, since they will not be answered any more."""
        for number in tuple(self._keys):
            self.take_silence(number, now)

    def _end_flight(self, number: int) -> _Flight | None:
        key = self._keys.pop(number, None)
        return None if key is None else self._flights[key]

    def _judge(self, flight: _Flight) -> None:
        """Infer the outcome of an unanswered write from the version that a watch has brought.

        The shared store refuses a write that expects an older row than the present one. A write
        that expects no row may still be made once that row is removed: then it is handled like
        another node's.
        """
        news = flight.news
        if flight.key not in self._late or news is None:
            return
        if news.value == flight.wanted.value:
            self._apply_made(flight, news.revision)
        else:
            self._lose(flight.key, news)

    def _apply_made(self, flight: _Flight, revision: int) -> None:
        key, made = flight.key, flight.wanted
        self._end(key)
        later = self._queued.pop(key, None)
        self._note(key, _Version(made.value, revision, made.row))
        self._confirm(key, made, revision)
        if later is not None:
            self._want(key, later)
        if flight.news is not None and self._is_news(key, flight.news):
            self._take(key, flight.news)
        self._doubt(flight)

    def _doubt(self, flight: _Flight) -> None:
        """Read the row again if the version in an answer may have been removed since."""
        if flight.is_in_doubt and flight.key in self._known:
            self._port.read(flight.key, self.revision(flight.key))

    def _lose(self, key: str, news: _Version) -> None:
        flight = self._end(key)
        unsent = [self._ready.pop(key, None), self._queued.pop(key, None)]
        lost = [flight and flight.wanted, *unsent]
        changes = [change for change in lost if change is not None]
        last, row = changes[-1].row, self._learn(key, news)
        if row is not None:
            self._port.apply(row, news.revision)
        elif last is not None:
            self._port.withdraw(last, news.revision, is_lost=True)
        self._port.lose(key, tuple(ticket for change in changes for ticket in change.tickets))
        if flight is not None:
            self._doubt(flight)

    def _end(self, key: str) -> _Flight | None:
        flight = self._flights.pop(key, None)
        self._late.pop(key, None)
        if flight is not None:
            self._keys.pop(flight.number, None)
        return flight

    # ---- news

    def take_row(
        self, key: str, value: bytes | None, revision: int, *, is_read: bool = False
    ) -> None:
        """Take a version of a row that a watch or a read has brought.

        Args:
            key: Key of the row.
            value: The value; None: the row is absent.
            revision: Its revision. For an absent row: the revision of its removal or, if that is
                unknown, any revision not below its last one.
            is_read: Whether a read has brought it.
        """
        news = _Version(value, revision)
        is_news = self._is_news(key, news)
        if not is_read:
            self._mark(key, revision)
        if not is_news:
            return
        flight = self._flights.get(key)
        if flight is None:
            self._take(key, news)
            return
        # The answer will show whether it is this node's write or another's.
        flight.news = _newest(news, flight.news)
        self._judge(flight)

    def _is_news(self, key: str, news: _Version) -> bool:
        known = self._known.get(key)
        if known is None:
            # A write under way may have made the row that was removed.
            is_any = news.value is not None or key in self._flights
            return is_any and news.revision > self._gone.get(key, 0)
        # Revisions are unique: a removal with the revision of a version comes after that version.
        is_removed = news.value is None and news.revision == known.revision
        return news.revision > known.revision or is_removed

    def _take(self, key: str, news: _Version) -> None:
        """Apply a version of a row that another node seems to have written."""
        wanted, former = self._ready.get(key), self._known.get(key, _ABSENT).row
        if wanted is None:
            row = self._learn(key, news)
            if row is None and former is not None:
                self._port.withdraw(former, news.revision)
            elif row is not None and row is not former:
                self._port.apply(row, news.revision)
        elif wanted.value != news.value:
            self._lose(key, news)
        else:
            del self._ready[key]
            self._note(key, _Version(news.value, news.revision, wanted.row))
            self._confirm(key, wanted, news.revision)

    def _learn(self, key: str, news: _Version) -> GroupRow | None:
        """Store a version from another node; return its row, or None if the row cannot be used."""
        known, row = self._known.get(key), None
        if known is not None and known.value == news.value:
            row = known.row
        elif news.value is not None:
            # Ignoring the only row of policies would permit too much.
            if known is None and key != POLICY_KEY and len(self._known) >= self._most:
                self._port.refuse(key, RowRefusal.TOO_MANY)
                return None
            try:
                row = read_row(key, news.value)
            except RowRefusedError as exc:
                self._port.refuse(key, exc.reason)
        self._note(key, _Version(news.value, news.revision, row))
        return row

    def _note(self, key: str, version: _Version) -> None:
        if version.value is not None:
            self._known[key] = version
            return
        self._known.pop(key, None)
        if len(self._gone) >= GROUP_WRITES:
            # The table is emptied; an outdated version is then believed until its removal comes.
            self._gone.clear()
        self._gone[key] = version.revision

    # ---- watches

    def _mark(self, key: str, revision: int) -> None:
        """Record for all watches that a row has come: no earlier version of the row follows."""
        if revision >= self._gone.get(key, math.inf):
            del self._gone[key]
        for prefix, watch in self._watches.items():
            if key.startswith(prefix):
                watch.keys.add(key)
                watch.newest = max(watch.newest, revision)

    def begin_watch(self, prefix: str) -> None:
        """Prepare for all rows with a key prefix, since a watch begins; known rows come again."""
        self._watches[prefix] = _Watch()

    def end_list(self, prefix: str) -> None:
        """Remove the rows with a key prefix that a watch has not brought by the end of its list."""
        watch = self._watches.pop(prefix, None)
        if watch is None:
            return
        for key, flight in self._flights.items():
            if key.startswith(prefix) and key not in watch.keys:
                flight.is_in_doubt = True
        for key, known in tuple(self._known.items()):
            if not key.startswith(prefix) or key in watch.keys:
                continue
            if known.revision <= watch.newest:
                # The watch is past that version and has not brought it, so it was removed before.
                self.take_row(key, None, watch.newest, is_read=True)
            elif key not in self._flights:
                self._port.read(key, known.revision)


def _newest(version: _Version, second: _Version | None) -> _Version:
    return version if second is None or version.revision >= second.revision else second
