"""The index of a domain registry: how records are found other than by address (M-26..M-28).

| search | finds |
|---|---|
| `user://...`, `/<scheme>/user/<user>` | the records of a user |
| `user-guid://...`, `/<scheme>/guid/<guid>` | the records of a global address |
| `/<scheme>/idp-identifier/<name>` | the same by the name at the provider, `@` its domain or not |
| `/<scheme>/name/<name>` | data objects of a name |
| `/<scheme>/reporter/<hyperty>` | data objects that a hyperty reports |

Criteria narrow each: `scheme`, `resources` and `dataSchemes`; a record must have all that
are named.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum, unique
from typing import Final, final

import attrs

from specs.addresses.address import canonical, host_of, last_segment, scheme_of
from specs.errors import BadUrlError
from specs.jsonvalue import Json, JsonObject

__all__ = ["By", "RecordIndex", "Search", "address_of", "search_of"]


@final
@unique
class By(StrEnum):
    """The attribute that a search goes by."""

    RUNTIME = "runtime"
    USER = "user"
    GUID = "guid"
    IDENTIFIER = "idp-identifier"
    NAME = "name"
    REPORTER = "reporter"


_SEARCHABLE: Final = frozenset(By) - {By.RUNTIME}
"""What a message may search by: what a runtime has is its own affair."""

_FIELDS: Final = tuple(by.value for by in (By.RUNTIME, By.USER, By.GUID, By.NAME, By.REPORTER))
"""Fields of a record that it is found by as they stand."""

_URL: Final = "url"
"""What names one record instead of a search."""


@final
@attrs.frozen(slots=True)
class Search:
    """A search; every part must hold.

    Attributes:
        by: What `value` is.
        scheme: Scheme of the records' addresses; None: any.
        resources: All of these a record must offer.
        data_schemes: All of these it must handle.
    """

    by: By
    value: str
    scheme: str | None = None
    resources: frozenset[str] = frozenset()
    data_schemes: frozenset[str] = frozenset()

    def accepts(self, url: str, record: Mapping[str, Json]) -> bool:
        """Return whether a record found by `value` meets the criteria.

        Args:
            url: Address of the record.
            record: The record.
        """
        return (
            self.scheme in {None, scheme_of(url)}
            and self.resources <= _texts(record.get("resources"))
            and self.data_schemes <= _texts(record.get("dataSchemes"))
        )


def search_of(resource: str, criteria: JsonObject | None) -> Search | None:
    """Return the search that a read asks for; None: it asks for the one record of `resource`.

    A search is `/<scheme>/<by>/<value>`, or the address of a user or GUID alone.

    Args:
        resource: The `resource` of the read.
        criteria: The `criteria` of the read; None: none.
    """
    narrowed = criteria or {}
    scheme = narrowed.get("scheme")
    by, value = By.USER, resource
    match resource.split("/", 3):
        case ["", wanted, kind, rest] if kind in _SEARCHABLE:
            by, value, scheme = By(kind), rest, scheme or wanted
        case _ if scheme_of(resource) == "user-guid":
            by = By.GUID
        case _ if scheme_of(resource) != "user":
            return None
    return Search(
        by,
        _normal(value),
        scheme if isinstance(scheme, str) else None,
        _texts(narrowed.get("resources")),
        _texts(narrowed.get("dataSchemes")),
    )


def address_of(resource: str) -> str:
    """Return the address that a read of one record names, with or without `/<scheme>/url/`."""
    match resource.split("/", 3):
        case ["", _, kind, rest] if kind == _URL:
            return rest
        case _:
            return resource


@final
class RecordIndex:
    """The addresses of records by the attributes that they can be searched for."""

    def __init__(self) -> None:
        self._urls: dict[tuple[By, str], dict[str, None]] = {}

    def add(self, url: str, record: Mapping[str, Json]) -> None:
        """Add an address under the attributes of its record.

        Args:
            url: Address of the record, which is not in the index.
            record: The record.
        """
        for key in _keys(record):
            self._urls.setdefault(key, {})[url] = None

    def remove(self, url: str, record: Mapping[str, Json]) -> None:
        """Remove an address from under the attributes of its record.

        Args:
            url: Address of the record.
            record: The record, as it was added.
        """
        for key in _keys(record):
            del self._urls[key][url]
            if not self._urls[key]:
                del self._urls[key]

    def replace(self, url: str, old: Mapping[str, Json] | None, new: Mapping[str, Json]) -> None:
        """Replace a record; most changes concern no search and cost nothing.

        Args:
            url: Address of the record.
            old: The record, as it was added; None: it was not.
            new: The record from now on.
        """
        if old is None:
            self.add(url, new)
        elif any(old.get(field) != new.get(field) for field in _FIELDS):
            self.remove(url, old)
            self.add(url, new)

    def count(self, by: By, value: str) -> int:
        """Return how many addresses `find` would return.

        Args:
            by: The attribute to search by.
            value: Its value.
        """
        return len(self._urls.get((by, value), ()))

    def find(self, by: By, value: str) -> tuple[str, ...]:
        """Return the addresses found, in the order in which they were added.

        Args:
            by: The attribute to search by.
            value: Its value.
        """
        return tuple(self._urls.get((by, value), ()))


def _keys(record: Mapping[str, Json]) -> Iterator[tuple[By, str]]:
    for field in _FIELDS:
        value = record.get(field)
        if isinstance(value, str):
            yield By(field), _normal(value)
    user = record.get("user")
    if isinstance(user, str):
        name = last_segment(user)
        yield By.IDENTIFIER, name
        if "@" not in name:
            yield By.IDENTIFIER, f"{name}@{host_of(user)}"


def _texts(value: Json) -> frozenset[str]:
    listed = value if isinstance(value, list) else [value]
    return frozenset(one for one in listed if isinstance(one, str))


def _normal(value: str) -> str:
    """Return an address in canonical form, and anything else as it is."""
    try:
        return canonical(value)
    except BadUrlError:
        return value
