"""How records of a domain registry are found, other than by their address (M-26..M-28).

| search | finds |
|---|---|
| `user://...`, `/<scheme>/user/<user>` | what is registered for a user |
| `user-guid://...`, `/<scheme>/guid/<guid>` | what is registered under a global address |
| `/<scheme>/idp-identifier/<name>` | the same by the name at the provider, `@` its domain or not |
| `/<scheme>/name/<name>` | data objects of a name |
| `/<scheme>/reporter/<hyperty>` | data objects that a hyperty reports |

Criteria narrow each: `scheme`, `resources` and `dataSchemes`; of these a record has all.
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
    """What a search goes by."""

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
    """What is looked for; every part must hold.

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
        """Say whether a record found by `value` is one of those meant."""
        return (
            self.scheme in {None, scheme_of(url)}
            and self.resources <= _texts(record.get("resources"))
            and self.data_schemes <= _texts(record.get("dataSchemes"))
        )


def search_of(resource: str, criteria: JsonObject | None) -> Search | None:
    """Read what a read asks for; None: the one record of the address `resource`.

    A search is `/<scheme>/<by>/<value>`, or the address of a user or GUID alone.
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
    """Return the address that a read of one record names: itself, or `/<scheme>/url/` and it."""
    match resource.split("/", 3):
        case ["", _, kind, rest] if kind == _URL:
            return rest
        case _:
            return resource


@final
class RecordIndex:
    """Which records there are, by what they can be searched for."""

    def __init__(self) -> None:
        self._urls: dict[tuple[By, str], dict[str, None]] = {}

    def add(self, url: str, record: Mapping[str, Json]) -> None:
        """Find `url` from now on by what its record says."""
        for key in _keys(record):
            self._urls.setdefault(key, {})[url] = None

    def remove(self, url: str, record: Mapping[str, Json]) -> None:
        """No longer find `url` by what its record said."""
        for key in _keys(record):
            del self._urls[key][url]
            if not self._urls[key]:
                del self._urls[key]

    def replace(self, url: str, old: Mapping[str, Json] | None, new: Mapping[str, Json]) -> None:
        """Find `url` by another record from now on; most changes concern no search."""
        if old is None:
            self.add(url, new)
        elif any(old.get(field) != new.get(field) for field in _FIELDS):
            self.remove(url, old)
            self.add(url, new)

    def count(self, by: By, value: str) -> int:
        """Return how many addresses would be found."""
        return len(self._urls.get((by, value), ()))

    def find(self, by: By, value: str) -> tuple[str, ...]:
        """Return the addresses found, in the order they came."""
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
