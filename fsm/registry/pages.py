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
from collections.abc import Iterable, Sequence
from typing import Final, Self, final

import attrs

from fsm.registry.records import Search
from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import MAX_ID, SEARCH_BYTES, SEARCH_CURSOR_CHARS, SEARCH_WAITING

__all__ = ["Cursor", "Found", "Page", "page_of"]

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
class Page:
    """A part of the records that a search found.

    Attributes:
        values: The records, newest first.
        after: The place of the next page; None: this is the last one.
        left: How many records follow.
    """

    values: tuple[JsonObject, ...]
    after: Cursor | None = None
    left: int = 0


def page_of(found: Iterable[Found], start: Cursor, limit: int) -> Page:
    """Return the page that begins at a place.

    Args:
        found: All records that the search finds now, newest first.
        start: The place.
        limit: How many records the page has at most.
    """
    waiting = dict(start.waiting)
    tags = _Tags()
    left = [
        one
        for one in found
        if one.number < (waiting.get(tags.of(one.runtime), start.below) if waiting else start.below)
    ]
    filling = _Filling(left, limit, {tags.of(one.runtime) for one in left} & waiting.keys(), tags)
    for one in left:
        if not filling.passes(one):
            break
    taken = filling.taken
    if len(taken) == len(left):
        return Page(tuple(one.value for one in taken))
    below = min(start.below, filling.passed)
    numbers = {one.number for one in taken}
    last = {one.runtime: one.number for one in taken}
    behind = {one.runtime for one in left if one.number >= below and one.number not in numbers}
    places = {
        tags.of(runtime): last.get(runtime, waiting.get(tags.of(runtime), below))
        for runtime in behind
    }
    after = attrs.evolve(start, below=below, waiting=tuple(sorted(places.items())))
    return Page(tuple(one.value for one in taken), after, len(left) - len(taken))


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
        passed: Number of the last record that was looked at.
    """

    def __init__(self, left: Sequence[Found], limit: int, behind: set[str], tags: _Tags) -> None:
        is_shared = len({one.runtime for one in left}) > 1
        self.taken: list[Found] = []
        self.passed = MAX_ID + 1
        self._limit = limit
        self._entries = max(1, limit // _QUARTER) if is_shared else limit
        self._bytes = SEARCH_BYTES // _QUARTER if is_shared else SEARCH_BYTES
        self._room = SEARCH_BYTES
        self._used: dict[str, tuple[int, int]] = {}
        self._full: set[str] = set()
        self._behind = behind
        self._tags = tags

    def passes(self, one: Found) -> bool:
        """Take a record, or let it wait; return whether the page goes on after it."""
        if one.runtime not in self._full:
            if len(self.taken) == self._limit:
                return False
            size = len(json.dumps(one.value, separators=(",", ":"))) + 1
            entries, used = self._used.get(one.runtime, (0, 0))
            if entries and (entries == self._entries or used + size > self._bytes):
                if not self._waits(one.runtime):
                    return False
            elif self.taken and size > self._room:
                return False
            else:
                self.taken.append(one)
                self._room -= size
                self._used[one.runtime] = entries + 1, used + size
        self.passed = one.number
        return True

    def _waits(self, runtime: str) -> bool:
        """Let a session wait for the next page; return whether the cursor has room for that."""
        self._behind.add(self._tags.of(runtime))
        if len(self._behind) > SEARCH_WAITING:
            return False
        self._full.add(runtime)
        return True


def _tag_of(search: Search) -> str:
    narrowed = sorted(search.resources), sorted(search.data_schemes)
    return _hashed(repr((search.by.value, search.value, search.scheme, narrowed)))


def _hashed(text: str) -> str:
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=_TAG).digest()
    return base64.urlsafe_b64encode(digest).decode()
