"""Searches of a domain registry, their results, and watches of a search (M-26..M-31).

`Query` is a search, and `FoundEntry` a result. A search goes by one attribute, the narrowest one
given; all other attributes are criteria that restrict the result.

`DiscoveryWatch` follows a search. A registry reports the status of single records only (M-30), so
new entries are found by repeating the search. A known entry that is no longer found is read by its
address (M-25): it is disconnected, removed, or no longer meets the criteria. A search returns
disconnected records only if none is live. Memory is bounded: a watch knows the newest
`WATCHED_ENTRIES` entries.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Protocol, TypedDict, final

import attrs

from fsm.registry.records import By
from specs.addresses.address import canonical, scheme_of
from specs.bodies.registry import FoundRecord, ReadRecord
from specs.bodies.word import RecordStatus
from specs.jsonvalue import JsonObject
from specs.limits.discovery import VERIFIED_AT_ONCE, WATCHED_ENTRIES

# ---- searches


class Criteria(TypedDict, total=False):
    """The criteria of a search; a result must meet all, and at least one must be given.

    Attributes:
        user: The user: an address `user://...` or `user-guid://...`, or the user's name at the
            identity provider, such as `bob@idp.example`.
        name: Name of the hyperty or data object.
        schema: Scheme or data schema of the data objects that it uses, such as `comm`.
        resources: Resources that it must all offer, such as `chat`.
        reporter: Address of the hyperty that reports the data object.
        scheme: Scheme of the addresses to find: `hyperty`, or a scheme of data objects.
    """

    user: str | None
    name: str | None
    schema: str | None
    resources: Iterable[str]
    reporter: str | None
    scheme: str


def _check(field: str, value: object) -> None:
    """Check that a criterion is a text that is not empty.

    Raises:
        TypeError: It is no text; only the scheme must be one.
        ValueError: It is empty.
    """
    if value is None and field != "scheme":
        return
    if not isinstance(value, str):
        raise TypeError(f"{field} is a text, not {value!r}")
    if not value:
        raise ValueError(f"{field} is empty")


def texts_of(value: Iterable[str]) -> tuple[str, ...]:
    """Return a collection of texts as a tuple, such as the resources of a hyperty.

    Raises:
        TypeError: The value is a single text, or an element is not a text.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f"several texts are wanted, such as ['chat'], not {value!r}")
    texts = tuple(value)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(f"texts are wanted, such as ['chat'], not {value!r}")
    return texts


def query_of(criteria: Criteria) -> "Query":
    """Return the search for some criteria.

    Raises:
        TypeError: A criterion is unknown, or as of `Query`; so are the others.
    """
    unknown = sorted(criteria.keys() - Criteria.__annotations__.keys())
    if unknown:
        known = ", ".join(Criteria.__annotations__)
        raise TypeError(f"a search has no criterion {unknown[0]!r}, only {known} and domain")
    return Query(**criteria)


@attrs.frozen(slots=True, kw_only=True)
class Query:
    """A search; see `Criteria`.

    Raises:
        TypeError: A criterion is of a wrong kind, or none is given.
        ValueError: A criterion is empty.
        BadUrlError: The user or the reporter is written like an address, and is none.
    """

    user: str | None = None
    name: str | None = None
    schema: str | None = None
    resources: tuple[str, ...] = attrs.field(default=(), converter=texts_of)
    reporter: str | None = None
    scheme: str = "hyperty"

    def __attrs_post_init__(self) -> None:
        for field in ("user", "name", "schema", "reporter", "scheme"):
            _check(field, getattr(self, field))
        if "/" in self.scheme:
            raise ValueError(f"{self.scheme!r} is no scheme of addresses")
        if not self._given:
            known = "user, name, schema, resources and reporter"
            raise TypeError(f"a search names at least one of {known}")

    @property
    def _given(self) -> dict[By, str | tuple[str, ...]]:
        """The given criteria by attribute, the narrowest attribute first."""
        by_user = None if self.user is None else _user_of(self.user)
        reporter = None if self.reporter is None else canonical(self.reporter)
        given: tuple[tuple[By, str | tuple[str, ...]] | None, ...] = (
            by_user,
            None if reporter is None else (By.REPORTER, reporter),
            None if self.name is None else (By.NAME, self.name),
            None if self.schema is None else (By.DATA_SCHEME, (self.schema,)),
            (By.RESOURCE, self.resources) if self.resources else None,
        )
        return dict(each for each in given if each is not None)

    def read(self, limit: int | None = None) -> ReadRecord:
        """Return the body of the search.

        Args:
            limit: Largest number of records on a page; None: the registry chooses.

        Raises:
            TypeError: The limit is no number.
            BadMessageError: It is not in 1..256.
        """
        if limit is not None and type(limit) is not int:
            raise TypeError(f"limit is a number, not {limit!r}")
        given = self._given
        by = next(iter(given))
        value = given.pop(by)
        if not isinstance(value, str):
            value, *others = value
            if others:
                given[by] = tuple(others)
        resource = f"/{self.scheme}/{by.value}/{value}"
        return ReadRecord(resource, _criteria(given) or None, limit)


def _criteria(given: Mapping[By, str | tuple[str, ...]]) -> JsonObject:
    return {key.value: text if isinstance(text, str) else [*text] for key, text in given.items()}


def _user_of(text: str) -> tuple[By, str]:
    """Return the attribute and the value by which a user is found.

    Raises:
        BadUrlError: It is written like an address, and is none.
    """
    if "://" not in text:
        return By.IDENTIFIER, text
    user = canonical(text)
    return (By.GUID if scheme_of(user) == "user-guid" else By.USER), user


# ---- results


@final
@attrs.frozen(slots=True, kw_only=True)
class FoundEntry:
    """A hyperty or data object that a domain registry has found.

    Attributes:
        url: Its address.
        status: `live`, or `disconnected` if it is registered but cannot be reached now.
        runtime: Address of its runtime; None: unknown to the registry, as in the fields below.
        user: Address of the user who owns it.
        name: Its name.
        resources: The resources it offers, such as `chat`.
        schemas: Schemes or data schemas of the data objects it uses; of a data object, its own.
        descriptor: Catalogue address of its descriptor.
        reporter: Address of the hyperty that reports it, if it is a data object.
        message_schema: JSON Schema of the requests that a hyperty takes; None: not declared.
    """

    url: str
    status: str
    runtime: str | None = None
    user: str | None = None
    name: str | None = None
    resources: tuple[str, ...] = ()
    schemas: tuple[str, ...] = ()
    descriptor: str | None = None
    reporter: str | None = None
    message_schema: JsonObject | None = attrs.field(default=None, repr=False, hash=False)

    @property
    def is_live(self) -> bool:
        """True if it can be reached."""
        return self.status == RecordStatus.LIVE


def entry_of(record: FoundRecord) -> FoundEntry:
    """Return the entry that a registry's record describes."""
    schemas = (*(record.data_schemes or ()), *((record.schema,) if record.schema else ()))
    return FoundEntry(
        url=record.url,
        status=record.status or RecordStatus.LIVE.value,
        runtime=record.runtime,
        user=record.user,
        name=record.name,
        resources=record.resources or (),
        schemas=tuple(dict.fromkeys(schemas)),
        descriptor=record.descriptor,
        reporter=record.reporter,
        message_schema=record.message_schema,
    )


# ---- watches of a search


@final
class Change(StrEnum):
    """The kind of a change of a watched entry."""

    APPEARED = "appeared"
    """The entry was found for the first time."""

    CHANGED = "changed"
    """Its status, or another part of its record, has changed."""

    VANISHED = "vanished"
    """It is no longer registered, or no longer meets the criteria of the search."""


@final
@attrs.frozen(slots=True)
class EntryChange:
    """A change of an entry.

    Attributes:
        change: The kind of the change.
        entry: The entry as it is now; if it vanished, as it was.
    """

    change: Change
    entry: FoundEntry


class WatchPort(Protocol):
    """The calls of a watch to its host; none of them calls the watch."""

    def report(self, change: EntryChange) -> None:
        """Report a change of an entry."""

    def follow(self, url: str) -> None:
        """Follow the status of a record (M-29)."""

    def leave(self, url: str) -> None:
        """Stop following the status of a record."""

    def read(self, url: str) -> None:
        """Read a record by its address (M-25); `take_record` follows unless the read fails."""


class DiscoveryWatch:
    """The entries that one watcher knows.

    Args:
        port: The host.

    Attributes:
        is_partial: Whether the search finds more entries than are known.
    """

    def __init__(self, port: WatchPort) -> None:
        self.is_partial = False
        self._port = port
        self._known: dict[str, FoundEntry] = {}

    @property
    def urls(self) -> tuple[str, ...]:
        """Addresses of the known entries."""
        return tuple(self._known)

    def take_search(self, results: tuple[FoundEntry, ...], *, is_partial: bool = False) -> None:
        """Take the result of a search.

        Args:
            results: The entries.
            is_partial: Whether the search found more than these.
        """
        entries = {entry.url: entry for entry in results}
        self.is_partial = is_partial
        for url, entry in entries.items():
            if url in self._known:
                self._change(entry)
            elif len(self._known) < WATCHED_ENTRIES:
                self._known[url] = entry
                self._port.follow(url)
                self._port.report(EntryChange(Change.APPEARED, entry))
            else:
                self.is_partial = True
        absent = [url for url in self._known if url not in entries]
        # Entries that seemed live come first, since they must have changed.
        absent.sort(key=lambda url: not self._known[url].is_live)
        for url in absent[:VERIFIED_AT_ONCE]:
            # The next time, other entries have their turn.
            self._known[url] = self._known.pop(url)
            self._port.read(url)

    def take_status(self, url: str, status: str) -> None:
        """Take the status of a record, as its registry reports it (M-30)."""
        known = self._known.get(url)
        if known is None:
            return
        if status == RecordStatus.DEAD:
            self._remove(url)
        else:
            self._change(attrs.evolve(known, status=status))

    def take_record(self, url: str, entry: FoundEntry | None) -> None:
        """Take a record that was read by its address, or None if it no longer exists."""
        known = self._known.get(url)
        if known is None:
            return
        is_unfit = entry is not None and entry.is_live and known.is_live and not self.is_partial
        if entry is None or is_unfit:
            self._remove(url)
        else:
            self._change(entry)

    def _change(self, entry: FoundEntry) -> None:
        if self._known[entry.url] != entry:
            self._known[entry.url] = entry
            self._port.report(EntryChange(Change.CHANGED, entry))

    def _remove(self, url: str) -> None:
        self._port.leave(url)
        self._port.report(EntryChange(Change.VANISHED, self._known.pop(url)))
