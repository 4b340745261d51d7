"""Pages of a search: newest records first, and no session fills a page (M-26..M-28).

Records have numbers that rise with each registration and never change. A page goes from newer to
older records. While records of several sessions are left, each session has at most a quarter of
a page, in entries and in bytes; one record it always has. The records that it has beyond that
wait for the next page, which begins with them. A session that is alone fills the page.

A cursor says where the next page begins: the number below which nothing was delivered, and for
each session whose records wait, the number of its last delivered record. So it stays right
however records come and go between two pages: a record that is there all the time, and stays
with its session, is delivered exactly once, and one that is newer than the first page is not. It
is text that a requester gives back as it is; a forged one only begins elsewhere.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heapreplace
from typing import Final, Self, final

import attrs

from fsm.registry.records import Search
from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import MAX_ID, SEARCH_BYTES, SEARCH_CURSOR_CHARS, SEARCH_WAITING

_QUARTER: Final = 4
_TAG: Final = 6
_BAD: Final = "after is no cursor that this search has returned"


@final
@attrs.frozen(slots=True)
class Found:
    """A record that a search found.

    Attributes:
        number: Number of its registration.
        runtime: The runtime whose session registered it.
        value: The record as it is shown.
    """

    number: int
    runtime: str
    value: JsonObject


@final
@attrs.frozen(slots=True)
class Cursor:
    """The place in a search at which a page begins.

    Attributes:
        search: Tag of the search.
        is_live: Whether the search shows live records; else those that are away.
        below: Number below which nothing was delivered.
        waiting: By the tag of a session: the number of its last delivered record, above `below`.
    """

    search: str
    is_live: bool
    below: int = MAX_ID + 1
    waiting: tuple[tuple[str, int], ...] = ()

    @classmethod
    def first(cls, search: Search, *, is_live: bool) -> Self:
        """Return the place before the newest record.

        Args:
            search: The search.
            is_live: Whether it shows live records.
        """
        return cls(_tag_of(search), is_live)

    @classmethod
    def read(cls, text: str, search: Search) -> Self:
        """Read the cursor that a requester gives back.

        Args:
            text: The cursor.
            search: The search that goes on.

        Raises:
            BadMessageError: It is none of this search.
        """
        if len(text) > SEARCH_CURSOR_CHARS:
            raise BadMessageError(_BAD)
        try:
            parts: Json = json.loads(base64.b64decode(text, altchars=b"-_", validate=True))
        except (binascii.Error, ValueError, RecursionError) as exc:
            raise BadMessageError(_BAD) from exc
        match parts:
            case [str(tag), bool(is_live), int(below), dict(waiting)] if tag == _tag_of(search):
                places = [(who, at) for who, at in waiting.items() if type(at) is int]
                if len(places) == len(waiting):
                    return cls(tag, is_live, below, tuple(places))
        raise BadMessageError(_BAD)

    @property
    def text(self) -> str:
        """The cursor as a requester gets it."""
        parts: list[Json] = [self.search, self.is_live, self.below, {**dict(self.waiting)}]
        return base64.urlsafe_b64encode(json.dumps(parts, separators=(",", ":")).encode()).decode()


@final
@attrs.frozen(slots=True)
class Lane:
    """The records of one session that a search finds.

    Attributes:
        runtime: The runtime of the session.
        older: Yields those with a number below a given one, newest first.
    """

    runtime: str
    older: Callable[[int], Iterator[Found]]


@final
@attrs.frozen(slots=True)
class Page:
    """A part of the records that a search found.

    Attributes:
        values: The records, newest first.
        after: The place of the next page; None: this is the last one.
    """

    values: tuple[JsonObject, ...]
    after: Cursor | None = None


def page_of(lanes: Iterable[Lane], start: Cursor, limit: int) -> Page:
    """Return the page that begins at a place.

    It looks at few records beside those of the page: the lanes are merged.

    Args:
        lanes: All records that the search finds now, by session.
        start: The place.
        limit: How many records the page has at most.
    """
    waiting, tags = dict(start.waiting), _Tags()
    following: list[tuple[int, int, Found, Iterator[Found]]] = []
    for nth, lane in enumerate(lanes):
        place = waiting.get(tags.of(lane.runtime), start.below) if waiting else start.below
        records = lane.older(place)
        first = next(records, None)
        if first is not None:
            following.append((-first.number, nth, first, records))
    heapify(following)
    behind = {tags.of(one.runtime) for _, _, one, _ in following} & waiting.keys()
    filling = _Filling(limit, behind, tags, is_shared=len(following) > 1)
    held = filling.fill(following)
    if not following and not held:
        return Page(tuple(one.value for one in filling.taken))
    below = min(start.below, filling.passed)
    held |= {one.runtime for _, _, one, _ in following if one.number >= below}
    last = {one.runtime: one.number for one in filling.taken}
    places = {
        tags.of(runtime): last.get(runtime, waiting.get(tags.of(runtime), below))
        for runtime in held
    }
    after = attrs.evolve(start, below=below, waiting=tuple(sorted(places.items())))
    return Page(tuple(one.value for one in filling.taken), after)


@final
class _Tags:
    """Short names of runtimes in a cursor."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, runtime: str) -> str:
        """Return the tag of a runtime."""
        tag = self._known.get(runtime)
        if tag is None:
            tag = self._known[runtime] = _hashed(runtime)
        return tag


@final
class _Filling:
    """A page while it is filled.

    Attributes:
        taken: The records in it so far.
        passed: Number of the last record that was taken, or has to wait.
    """

    def __init__(self, limit: int, behind: set[str], tags: _Tags, *, is_shared: bool) -> None:
        self.taken: list[Found] = []
        self.passed = MAX_ID + 1
        self._limit = limit
        self._entries = max(1, limit // _QUARTER) if is_shared else limit
        self._bytes = SEARCH_BYTES // _QUARTER if is_shared else SEARCH_BYTES
        self._room = SEARCH_BYTES
        self._used: dict[str, tuple[int, int]] = {}
        self._behind = behind
        self._tags = tags

    def fill(self, following: list[tuple[int, int, Found, Iterator[Found]]]) -> set[str]:
        """Take records until the page is full; return the sessions that have to wait.

        Args:
            following: A heap of the newest record of each session, and the ones after it; those
                that are taken, or have to wait, are removed.
        """
        held: set[str] = set()
        while following and len(self.taken) < self._limit:
            _, nth, one, records = following[0]
            size = len(json.dumps(one.value, separators=(",", ":"))) + 1
            entries, used = self._used.get(one.runtime, (0, 0))
            if entries and (entries == self._entries or used + size > self._bytes):
                if not self._has_room_for(one.runtime):
                    break
                held.add(one.runtime)
                heappop(following)
            elif self.taken and size > self._room:
                break
            else:
                self.taken.append(one)
                self._room -= size
                self._used[one.runtime] = entries + 1, used + size
                after = next(records, None)
                if after is None:
                    heappop(following)
                else:
                    heapreplace(following, (-after.number, nth, after, records))
            self.passed = one.number
        return held

    def _has_room_for(self, runtime: str) -> bool:
        """Return whether the cursor has room for one more session that waits."""
        self._behind.add(self._tags.of(runtime))
        return len(self._behind) <= SEARCH_WAITING


def _tag_of(search: Search) -> str:
    narrowed = sorted(search.resources), sorted(search.data_schemes)
    fields = sorted((by.value, text) for by, text in search.fields)
    return _hashed(repr((search.by.value, search.value, search.scheme, narrowed, fields)))


def _hashed(text: str) -> str:
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=_TAG).digest()
    return base64.urlsafe_b64encode(digest).decode()
