"""A domain registry in the form of upstream's REST interface, and back (CON-02).

| asked | call |
|---|---|
| register a hyperty | `PUT /hyperty/user/<user>/<url>` |
| register a data object | `PUT /hyperty/dataobject/<url>` |
| change, unregister, keep alive | `PUT /hyperty/url/<url>` or `PUT /dataobject/url/<url>` |
| one record | `GET /hyperty/url/<url>` or `GET /hyperty/dataobject/url/<url>` |
| of a user | `GET /hyperty/user/<user>`, with criteria `/hyperty?resources=...&dataSchemes=...` |
| of a GUID | `GET /hyperty/guid/<guid>` |
| by identifier | `GET /hyperty/email/<identifier>`, with criteria the same behind it |
| data objects | `GET /hyperty/dataobject/name/<name>` or `reporter/<url>`, criteria by `/do?` |

Records come as an object by URL, as a list or alone, in upstream's names or in ours. What
the server is not able to select by is selected here.

The real changes of status among the reports of a registry behind the node (I-G5).
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, final

import attrs

from fsm.machines.registration import State
from fsm.registry.pages import Cursor, Found, Lane, page_of
from fsm.registry.records import AWAY, UNKNOWN, Answered, By, Create, Find, Read, Search, Touch
from specs.addresses.address import scheme_of
from specs.jsonvalue import Json, JsonObject
from specs.reply_code import Code

_VISIBLE: Final = frozenset({State.LIVE.value, State.DISCONNECTED.value})


@final
class StatusWatch:
    """The last known status of each record, of the latest records only (I-G5).

    It separates real changes of status from repeated reports of a registry behind the node.

    Args:
        size: How many records it remembers.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._known: OrderedDict[str, str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def changed(self, url: str, status: str) -> bool:
        """Note a status; return whether it is a change that others see.

        Args:
            url: Address of the record.
            status: The status as the registry reports it.
        """
        if status not in _VISIBLE:
            return False
        old = self._known.pop(url, None)
        self._known[url] = status
        if len(self._known) > self._size:
            self._known.popitem(last=False)
        return old != status

    def seen(self, url: str, status: str) -> None:
        """Note the status of a record that was read, unless one is known.

        A known status was reported to subscribers. A status that was read may be a change that is
        still to be reported.

        Args:
            url: Address of the record.
            status: The status in the record.
        """
        if url not in self._known:
            self.changed(url, status)


_HYPERTIES: Final = frozenset({"hyperty", "hyperty-runtime", "user", "user-guid"})
"""Schemes of what upstream keeps with its hyperties; all others are data objects."""

_HYPERTY_FIELDS: Final = (
    "descriptor", "expires", "resources", "dataSchemes", "status", "runtime",
    "p2pRequester", "p2pHandler", "guid",
)  # fmt: skip
_OBJECT_FIELDS: Final = (
    "name", "schema", "url", "reporter", "expires", "dataSchemes", "resources", "status",
    "runtime", "p2pRequester",
)  # fmt: skip
_OURS: Final = {"hypertyID": "url", "userID": "user"}
"""Our names of what upstream's server calls otherwise."""

_SEEN: Final = frozenset({State.LIVE.value, State.DISCONNECTED.value})
_NO_PAGES: Final = Answered(Code.MALFORMED, "the registry behind this node has no further pages")
_NO_USER: Final = Answered(Code.MALFORMED, "the registry behind this node needs value.user")


@final
@attrs.frozen
class RestCall:
    """A call of the REST interface.

    Attributes:
        path: Segments of the path, not yet quoted.
        body: The JSON object to send; None: no body.
    """

    method: str
    path: tuple[str, ...]
    query: Mapping[str, str] = attrs.field(factory=dict)
    body: JsonObject | None = None


def create_call(asked: Create) -> RestCall | Answered:
    """Register a record (M-21)."""
    value: JsonObject = {
        "status": State.LIVE.value, "resources": [], "dataSchemes": [], **asked.value
    }  # fmt: skip
    if not _is_hyperty(asked.url):
        body = _some(value, _OBJECT_FIELDS)
        return RestCall("PUT", ("hyperty", "dataobject", asked.url), body=body)
    user = value.get("user")
    if not isinstance(user, str) or not user:
        return _NO_USER
    body = _some(value, _HYPERTY_FIELDS)
    return RestCall("PUT", ("hyperty", "user", user, asked.url), body=body)


def touch_call(asked: Touch) -> RestCall:
    """Change a record, unregister it, or keep it alive by an empty body (M-22..M-24)."""
    path = ("hyperty", "url") if _is_hyperty(asked.url) else ("dataobject", "url")
    return RestCall("PUT", (*path, asked.url), body=asked.fields)


def read_call(asked: Read | Find) -> RestCall | Answered:
    """Read a record, or the records that a search may mean (M-25..M-28)."""
    if isinstance(asked, Read):
        kind = ("url",) if _is_hyperty(asked.url) else ("dataobject", "url")
        return RestCall("GET", ("hyperty", *kind, asked.url))
    if asked.after is not None:
        return _NO_PAGES
    search = asked.search
    lookup = _LOOKUPS.get(search.by)
    if lookup is None:
        why = f"the registry behind this node does not search by {search.by}"
        return Answered(Code.MALFORMED, why)
    path, narrowed = lookup
    query = _query(search)
    if query and narrowed:
        return RestCall("GET", ("hyperty", *path, search.value, narrowed), query)
    return RestCall("GET", ("hyperty", *path, search.value))


_LOOKUPS: Final[Mapping[By, tuple[tuple[str, ...], str]]] = {
    By.USER: (("user",), "hyperty"),
    By.GUID: (("guid",), ""),
    By.IDENTIFIER: (("email",), "hyperty"),
    By.NAME: (("dataobject", "name"), "do"),
    By.REPORTER: (("dataobject", "reporter"), "do"),
}
"""Path of each search, and what stands behind it if the server is to narrow it; "": cannot."""


def found(asked: Read | Find, records: list[JsonObject]) -> Answered:
    """Answer from the server's records: 200, or 408 if none is live, or 404 if there is none.

    The server has no pages. Of a search the first page is shown, with a word on what is left.

    Args:
        asked: The read or the search.
        records: The records that the server returned, in our names.
    """
    meant = [one for one in records if one.get("status") in _SEEN and _is_meant(asked, one)]
    live = [one for one in meant if one["status"] == State.LIVE.value]
    if not meant:
        return UNKNOWN
    if isinstance(asked, Read):
        return asked.answer((live or meant)[0], is_live=bool(live))
    page = _first_page(asked, live or meant)
    more = len(live or meant) - len(page)
    left = f"; {more} more are not shown" if more else ""
    if live:
        return Answered(Code.OK, f"OK{left}" if left else "", [*page])
    return Answered(Code.TIMEOUT, f"{AWAY}{left}", [*page])


def _first_page(asked: Find, records: list[JsonObject]) -> Sequence[JsonObject]:
    """Return the first page of records, in the order of the server."""
    lanes: dict[str, list[Found]] = {}
    for nth, one in enumerate(records):
        runtime = str(one.get("runtime", ""))
        lanes.setdefault(runtime, []).append(Found(len(records) - nth, runtime, one))
    first = Cursor.first(asked.search, is_live=True)
    each = (Lane(runtime, partial(_from, found)) for runtime, found in lanes.items())
    return page_of(each, first, asked.limit).values


def _from(found: Sequence[Found], _: int) -> Iterator[Found]:
    return iter(found)


def records_in(said: Json) -> list[JsonObject]:
    """Return the records in an answer of the server, in our names."""
    return [record for record in map(_ours, _listed(said)) if "url" in record]


def _listed(said: Json) -> Iterator[JsonObject]:
    if isinstance(said, list):
        yield from (one for one in said if isinstance(one, dict))
    elif isinstance(said, dict) and said and all("://" in name for name in said):
        for url, one in said.items():
            if isinstance(one, dict):
                yield {**one, "url": url}
            elif isinstance(one, str):
                yield {"url": url, "status": one}
    elif isinstance(said, dict):
        yield said


def _ours(record: JsonObject) -> JsonObject:
    ours = {_OURS.get(name, name): one for name, one in record.items() if one is not None}
    return {"status": State.LIVE.value, **ours}


def _is_meant(asked: Read | Find, record: JsonObject) -> bool:
    url = record["url"]
    if not isinstance(url, str):
        return False
    return url == asked.url if isinstance(asked, Read) else asked.search.accepts(url, record)


def _is_hyperty(url: str) -> bool:
    return scheme_of(url) in _HYPERTIES


def _some(value: JsonObject, names: tuple[str, ...]) -> JsonObject:
    return {name: value[name] for name in names if value.get(name) is not None}


def _query(search: Search) -> dict[str, str]:
    listed = {"resources": search.resources, "dataSchemes": search.data_schemes}
    return {name: ",".join(sorted(values)) for name, values in listed.items() if values}
