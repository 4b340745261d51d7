"""Searches in a domain registry for hyperties and data objects, and their results (M-26..M-31).

`Query` is a search; `FoundEntry` is a hyperty or data object in the result. The registry searches
by a single attribute, the most selective that is given; the other attributes restrict the result.

`DiscoveryWatch` reports how the results of a search change. A registry reports only the status of
single records (M-30), so the watch finds new entries by repeating the search. An entry that is
missing in the new result is read by its address (M-25): it is disconnected, removed, or no longer
meets the criteria. A search returns disconnected records only if no live record matches. Memory is
limited: a watch keeps `WATCHED_ENTRIES` entries.
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
        schema: Scheme or data schema of the data objects that the hyperty uses, such as `comm`.
        resources: Resources that the result must offer, all of them, such as `chat`.
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
    """Check that a criterion is missing or a text that is not empty.

    Raises:
        TypeError: The value is no text, or the scheme is missing.
        ValueError: The text is empty.
    """
    if value is None and field != "scheme":
        return
    if not isinstance(value, str):
        raise TypeError(f"{field} is a text, not {value!r}")
    if not value:
        raise ValueError(f"{field} is empty")


def texts_of(value: Iterable[str]) -> tuple[str, ...]:
    """Return a collection of texts, such as the resources of a hyperty, as a tuple.

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
        TypeError: A criterion is unknown. The errors of `Query` are raised, too.
    """
    unknown = sorted(criteria.keys() - Criteria.__annotations__.keys())
    if unknown:
        known = ", ".join(Criteria.__annotations__)
        raise TypeError(f"a search has no criterion {unknown[0]!r}, only {known} and domain")
    return Query(**criteria)


@attrs.frozen(slots=True, kw_only=True)
class Query:
    """A search in a domain registry by the fields of `Criteria`.

    Raises:
        TypeError: A criterion is of a wrong kind, or none is given.
        ValueError: A criterion is empty.
        BadUrlError: The user or the reporter looks like an address, but is not valid.
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
        """The given criteria by attribute, the most selective attribute first."""
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
        """Return the body of the request that sends the search to a registry.

        Args:
            limit: Largest number of records on a page; None: the registry chooses.

        Raises:
            TypeError: The limit is no number.
            BadMessageError: The limit is not in 1..256.
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
    """Return the attribute and the value by which the registry can search for a user.

    Raises:
        BadUrlError: The text looks like an address, but is not valid.
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
        url: Address of the hyperty or data object.
        status: `live`, or `disconnected` if it is registered but cannot be reached now.
        runtime: Address of the runtime; None: unknown to the registry, as in the fields below.
        user: Address of the user who owns the hyperty or data object.
        name: Name of the hyperty or data object.
        resources: The offered resources, such as `chat`.
        schemas: Schemes or data schemas of the data objects that a hyperty uses; of a data object,
            its own.
        descriptor: Catalogue address of the descriptor.
        reporter: Address of the hyperty that reports a data object.
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
        """True if the hyperty or data object can be reached."""
        return self.status == RecordStatus.LIVE


def entry_of(record: FoundRecord) -> FoundEntry:
    """Return the result of a search for a record in the registry's answer."""
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
    """The kind of a change in the results of a watched search."""

    APPEARED = "appeared"
    """The entry was found for the first time."""

    CHANGED = "changed"
    """The status of the entry, or another field of its registry record, has changed."""

    VANISHED = "vanished"
    """The entry is no longer registered, or no longer meets the criteria of the search."""


@final
@attrs.frozen(slots=True)
class EntryChange:
    """A change in the results of a watched search.

    Attributes:
        change: The kind of the change.
        entry: The entry as it is now; if it vanished, as it was.
    """

    change: Change
    entry: FoundEntry


class WatchPort(Protocol):
    """Calls of `DiscoveryWatch` to its host, which talks to the registry; none calls the watch."""

    def report(self, change: EntryChange) -> None:
        """Report a change of an entry to the user of the watch."""

    def follow(self, url: str) -> None:
        """Subscribe to the status of a record (M-29)."""

    def leave(self, url: str) -> None:
        """Unsubscribe from the status of a record."""

    def read(self, url: str) -> None:
        """Read a record by its address (M-25); the host passes the result to `take_record`."""


class DiscoveryWatch:
    """Compares the results of a repeated search and reports each change of an entry.

    Args:
        port: The host.

    Attributes:
        is_partial: Whether more entries match the search than this watch keeps.
    """

    def __init__(self, port: WatchPort) -> None:
        self.is_partial = False
        self._port = port
        self._known: dict[str, FoundEntry] = {}

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses of the entries that this watch knows."""
        return tuple(self._known)

    def take_search(self, results: tuple[FoundEntry, ...], *, is_partial: bool = False) -> None:
        """Compare a new result of the search with the known entries, and report the changes.

        Args:
            results: The entries.
            is_partial: Whether further entries match the search.
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
            # Moved to the end, so that other entries are read after the next search.
            self._known[url] = self._known.pop(url)
            self._port.read(url)

    def take_status(self, url: str, status: str) -> None:
        """Apply a status that the registry has reported for a record (M-30)."""
        known = self._known.get(url)
        if known is None:
            return
        if status == RecordStatus.DEAD:
            self._remove(url)
        else:
            self._change(attrs.evolve(known, status=status))

    def take_record(self, url: str, entry: FoundEntry | None) -> None:
        """Apply a record that was read by its address; None: the record no longer exists."""
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
