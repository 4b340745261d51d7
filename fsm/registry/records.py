"""Records of a domain registry: their form, requests, checks, search index, result pages, devices.

A record describes a registered hyperty or data object. The checks decide whether a runtime may
register or change a record; every implementation of a registry uses them. The index finds records
by other attributes than their address (M-26..M-28, and additions of Protofly):

| search | finds |
|---|---|
| `user://...`, `/<scheme>/user/<user>` | the records of a user |
| `user-guid://...`, `/<scheme>/guid/<guid>` | the records of a global address |
| `/<scheme>/idp-identifier/<name>` | the records of a name at the provider, with `@domain` or not |
| `/<scheme>/name/<name>` | data objects or hyperties of a name |
| `/<scheme>/resources/<resource>` | hyperties and objects that offer a resource |
| `/<scheme>/dataSchemes/<scheme>` | hyperties that handle data objects of a scheme |
| `/<scheme>/runtime/<runtime>` | the records of a runtime; only that runtime may search so |
| `/<scheme>/reporter/<hyperty>` | data objects that a hyperty reports |

Criteria narrow each search: `scheme`, `resources` and `dataSchemes`, and the fields `user`, `guid`,
`name` and `reporter`; a record must match all given criteria.
"""

import base64
import binascii
import hashlib
import json
import math
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final, Self, TypeAlias, final

import attrs

from fsm.limits.rates import Rate, TokenBuckets
from fsm.machines.registration import REGISTRATION, State
from specs.addresses.address import (
    canonical,
    host_of,
    is_below,
    is_other_stub,
    last_segment,
    scheme_of,
)
from specs.errors import BadMessageError, BadUrlError
from specs.jsonvalue import Absence, Json, JsonObject, value_at
from specs.limits import node, protocol
from specs.reply_code import Code


class By(StrEnum):
    """The attribute of registry records by which a search finds them."""

    RUNTIME = "runtime"
    USER = "user"
    GUID = "guid"
    IDENTIFIER = "idp-identifier"
    NAME = "name"
    REPORTER = "reporter"
    RESOURCE = "resources"
    DATA_SCHEME = "dataSchemes"


_SEARCHABLE: Final = frozenset(By)

_FIELDS: Final = tuple(by.value for by in (By.RUNTIME, By.USER, By.GUID, By.NAME, By.REPORTER))
"""Text fields of a record that a search can match by their whole value."""

_LISTS: Final = (By.RESOURCE, By.DATA_SCHEME)
"""List fields of a record; a search matches any single text in the list."""

_INDEXED: Final = (*_FIELDS, *(by.value for by in _LISTS))

_NARROWING: Final = (By.USER, By.GUID, By.NAME, By.REPORTER)
"""Fields by which criteria may narrow a search, in addition to its main attribute."""

_URL: Final = "url"
"""The word in `/<scheme>/url/<address>` that requests a single record instead of a search."""


@attrs.frozen(slots=True)
class Search:
    """A search for records that meet all its conditions.

    Attributes:
        by: The main attribute, by which the index is searched.
        value: The value that the main attribute must have.
        scheme: Scheme of the records' addresses; None: any.
        resources: Resources that a record must offer, all of them.
        data_schemes: Data object schemes that a record must handle, all of them.
        fields: Further fields that a record must have, with their values.
    """

    by: By
    value: str
    scheme: str | None = None
    resources: frozenset[str] = frozenset()
    data_schemes: frozenset[str] = frozenset()
    fields: frozenset[tuple[By, str]] = frozenset()

    def accepts(self, url: str, record: Mapping[str, Json]) -> bool:
        """Return whether a record that the index returned also meets the other conditions.

        Args:
            url: Address of the record.
            record: The record.
        """
        return (
            self.scheme in {None, scheme_of(url)}
            and self.resources <= _texts(record.get("resources"))
            and self.data_schemes <= _texts(record.get("dataSchemes"))
            and self.fields <= _fields(record)
        )


def search_of(resource: str, criteria: JsonObject | None) -> Search | None:
    """Return the search that a read request asks for, or None if it asks for a single record.

    A search is `/<scheme>/<by>/<value>`, or the address of a user or GUID alone.

    Args:
        resource: The `resource` of the request.
        criteria: The `criteria` of the request; None: no criteria.
    """
    wanted_fields = criteria or {}
    scheme = wanted_fields.get("scheme")
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
        _texts(wanted_fields.get("resources")),
        _texts(wanted_fields.get("dataSchemes")),
        _fields(wanted_fields),
    )


def address_of(resource: str) -> str:
    """Return the address of the single record that a request reads, without `/<scheme>/url/`."""
    match resource.split("/", 3):
        case ["", _, kind, rest] if kind == _URL:
            return rest
        case _:
            return resource


def _texts(value: Json) -> frozenset[str]:
    listed = value if isinstance(value, list) else [value]
    return frozenset(item for item in listed if isinstance(item, str))


def _fields(value: Mapping[str, Json]) -> frozenset[tuple[By, str]]:
    """Return those fields of a record, or of criteria, by which criteria can narrow a search."""
    named = ((by, value.get(by.value)) for by in _NARROWING)
    return frozenset((by, _normal(text)) for by, text in named if isinstance(text, str))


def _normal(value: str) -> str:
    """Return an address in canonical form, and any other text unchanged."""
    if "://" not in value:
        return value  # mostly names: raising an error for each would slow the start of a node
    try:
        return canonical(value)
    except BadUrlError:
        return value


KEPT: Final = "kept from before the node started"
"""The reason that traces state for records that an earlier process has stored."""


def status_for_others(status: State) -> State:
    """Return the status that other runtimes see: records that outlive their session are live."""
    return State.LIVE if status is State.LASTING else status


def _encode(value: JsonObject | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _cost(row: "Row") -> int:
    keys = sum(node.RECORD_KEY_COST + len(text) for _, text in _keys(row.value))
    return node.RECORD_COST + len(row.url) + len(row.text) + keys


@attrs.frozen(slots=True)
class Row:
    """A registry record of a hyperty or data object, as it is stored.

    Attributes:
        url: Address of the hyperty or object.
        runtime: The runtime that registered the record.
        status: State of the record.
        touched: Time at which the runtime last proved to be alive, or disconnected.
        text: The record as the runtime sent it, as JSON, with unknown keys.
        number: Number of the registration; later registrations have higher numbers.
        cost: Approximate number of bytes of memory that the record takes.
    """

    url: str
    runtime: str
    status: State
    touched: float
    text: bytes = attrs.field(alias="value", converter=_encode)
    number: int = 0
    cost: int = attrs.field(init=False, eq=False, default=attrs.Factory(_cost, takes_self=True))

    @property
    def value(self) -> JsonObject:
        """The parsed content; it is parsed at each access, since only the text is stored."""
        value: JsonObject = json.loads(self.text)
        return value

    @property
    def is_live(self) -> bool:
        """True if the hyperty or object is registered as reachable."""
        return status_for_others(self.status) is State.LIVE

    @property
    def due(self) -> float:
        """The time at which the record expires without a further request or keep-alive."""
        patience = REGISTRATION.patience(self.status)
        if self.is_live:
            patience = min(patience, _wanted_patience(self.value))
        return self.touched + patience


Entry: TypeAlias = tuple[int, str]
"""Registration number and address of a record."""


class RecordIndex:
    """Search index: numbers and addresses of the records, by attribute value and by session.

    The records of each session are sorted by registration number.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[By, str], dict[str, list[Entry]]] = {}

    def add(self, row: Row) -> None:
        """Add a record to the index.

        Args:
            row: The record, which is not in the index yet.
        """
        entry = row.number, row.url
        for key in _keys(row.value):
            insort(self._entries.setdefault(key, {}).setdefault(row.runtime, []), entry)

    def remove(self, row: Row) -> None:
        """Remove a record from the index.

        Args:
            row: The record, equal to the record that was added.
        """
        entry = row.number, row.url
        for key in _keys(row.value):
            sessions = self._entries[key]
            entries = sessions[row.runtime]
            del entries[bisect_left(entries, entry)]
            if not entries:
                del sessions[row.runtime]
            if not sessions:
                del self._entries[key]

    def replace(self, old: Row | None, new: Row) -> None:
        """Update the index when a record has changed; nothing is done if no indexed field changed.

        Args:
            old: The former record; None: there was none.
            new: The new record.
        """
        if old is None:
            self.add(new)
        elif old.text is not new.text:
            old_value, new_value = old.value, new.value
            if any(old_value.get(field) != new_value.get(field) for field in _INDEXED):
                self.remove(old)
                self.add(new)

    def find(self, by: By, value: str) -> Mapping[str, Sequence[Entry]]:
        """Return numbers and addresses of the matching records, grouped by their runtimes.

        Args:
            by: The attribute to search by.
            value: The value of the attribute.
        """
        return self._entries.get((by, value), {})

    def urls(self, by: By, value: str) -> list[str]:
        """Return the addresses of the matching records.

        Args:
            by: The attribute to search by.
            value: The value of the attribute.
        """
        lanes = self.find(by, value)
        return [url for entries in lanes.values() for _, url in entries]

    def count(self, by: By, value: str) -> int:
        """Return the number of matching records.

        Args:
            by: The attribute to search by.
            value: The value of the attribute.
        """
        return sum(map(len, self.find(by, value).values()))


def _keys(record: Mapping[str, Json]) -> Iterator[tuple[By, str]]:
    for field in _FIELDS:
        value = record.get(field)
        if isinstance(value, str):
            yield By(field), _normal(value)
    for by in _LISTS:
        listed = record.get(by.value)
        texts = (
            [item for item in listed if isinstance(item, str)] if isinstance(listed, list) else []
        )
        yield from ((by, text) for text in dict.fromkeys(map(_normal, texts[: node.INDEXED_NAMES])))
    user = record.get("user")
    if isinstance(user, str):
        name = last_segment(user)
        yield By.IDENTIFIER, name
        if "@" not in name:
            yield By.IDENTIFIER, f"{name}@{host_of(user)}"


@attrs.frozen(slots=True)
class Create:
    """Request of a runtime to register a hyperty or data object (M-21).

    Attributes:
        url: Address of the hyperty or object.
        by: The runtime whose session sent the request.
        owner: The runtime that owns the address, according to the node.
        value: The content of the record.
        is_lasting: Whether the record outlives the session, as the original implementation expects.
        users: The users that the record may name; None: any.
    """

    url: str
    by: str
    owner: str | None
    value: JsonObject
    is_lasting: bool = False
    users: frozenset[str] | None = None


@attrs.frozen(slots=True)
class Touch:
    """Request of a runtime to change, unregister or keep alive a record (M-22..M-24).

    Attributes:
        url: Address of the record.
        by: The runtime whose session sent the request.
        fields: The fields to set; empty: the request only keeps the record alive.
        is_lasting: Whether the record outlives the session from now on.
        users: The users that the record may name; None: any.
    """

    url: str
    by: str
    fields: JsonObject
    is_lasting: bool = False
    users: frozenset[str] | None = None


@attrs.frozen(slots=True)
class Read:
    """Request to read a record, or a single attribute of a record (M-25).

    Attributes:
        url: Address of the record.
        attribute: Dotted name of the attribute; None: the whole record.
    """

    url: str
    attribute: str | None = None

    def answer(self, record: JsonObject, *, is_live: bool) -> "Answered":
        """Return the answer: 200; 408 if the record is disconnected; 404 without the attribute.

        Args:
            record: The record.
            is_live: Whether the hyperty or object can be reached.
        """
        value = record if self.attribute is None else value_at(record, self.attribute)
        if isinstance(value, Absence):
            return Answered(Code.NOT_FOUND, f"the record has no {self.attribute}")
        if is_live:
            return Answered(Code.OK, value=value, is_attribute=self.attribute is not None)
        return Answered(Code.TIMEOUT, AWAY, [value])


@attrs.frozen(slots=True)
class Find:
    """Request to search for records; the answer contains a page of them (M-26..M-28).

    Attributes:
        search: The conditions.
        limit: Largest number of records on the page.
        after: The cursor of the page, as the requester sent it; None: the first page.
    """

    search: Search
    limit: int = protocol.SEARCH_PAGE
    after: str | None = None


Request: TypeAlias = Create | Touch | Read | Find

Change: TypeAlias = tuple[str, Row | None]
"""Address of a record, and its new row; None: the record is removed."""


@attrs.frozen(slots=True)
class Answered:
    """The answer of a registry to a request.

    Attributes:
        value: The record, the attribute, or the list of records of a page.
        after: Cursor of the next page of a search; None: no further page.
        is_attribute: Whether `value` is the value of one attribute, which may be null.
    """

    code: Code
    why: str = ""
    value: Json = None
    after: str | None = None
    is_attribute: bool = False


def _wanted_patience(value: JsonObject) -> float:
    """Return the record's own limit (`expires`) for the seconds without a keep-alive."""
    expires = value.get("expires")
    return float(expires) if isinstance(expires, int | float) and expires > 0 else math.inf


OK: Final = Answered(Code.OK)
UNKNOWN: Final = Answered(Code.NOT_FOUND, "Not Found")

NO_SUCH_STATUS: Final = Answered(Code.MALFORMED, "a record is set live or disconnected")

AWAY: Final = "Temporarily Unavailable"
"""The reason in answers about hyperties or objects that are registered but disconnected."""

_FIXED: Final = ("url", "runtime")


def create_refusal(request: Create, held_by: str | None) -> Answered | None:
    """Return the refusal of a registration, or None if it is allowed.

    Args:
        request: The registration.
        held_by: The runtime that has registered this address before; None: no runtime has.
    """
    if request.owner != request.by or held_by not in {None, request.by}:
        return Answered(Code.FORBIDDEN, f"the session does not own {request.url}")
    if request.value.get("runtime") != request.by:
        return Answered(Code.FORBIDDEN, "the record names another runtime")
    refusal = _wrong_user(request.value, request.users) or _wrong_stub(request.value, request.by)
    return refusal or size_refusal(request.value)


def touch_refusal(request: Touch, record: Mapping[str, Json]) -> Answered | None:
    """Return the refusal of a change of a record, or None if it is allowed.

    Args:
        request: The change.
        record: The record before the change.
    """
    if record.get("runtime") != request.by:
        return Answered(Code.FORBIDDEN, "not the owner")
    for name in _FIXED:
        if request.fields.get(name, record.get(name)) != record.get(name):
            return Answered(Code.MALFORMED, f"the {name} of a record does not change")
    return _wrong_user(request.fields, request.users) or _wrong_stub(request.fields, request.by)


def users_of(user: str | None, *, has_login: bool) -> frozenset[str] | None:
    """Return the users that records of a session may name, or None for any user.

    Args:
        user: The user of the session's login; None: no login.
        has_login: Whether runtimes can log in at the node.
    """
    if user is not None:
        return frozenset({user})
    return frozenset() if has_login else None


def _wrong_user(value: JsonObject, users: frozenset[str] | None) -> Answered | None:
    """Return the refusal of a record that names a user who is not allowed, or None.

    A login proves no GUID, so if users log in, no record may contain a GUID.
    """
    user, guid = value.get("user"), value.get("guid")
    if users is None:
        return None
    if user is not None and not (isinstance(user, str) and _normal(user) in users):
        return Answered(Code.FORBIDDEN, "the record names another user than that of the login")
    if guid is not None:
        return Answered(Code.FORBIDDEN, "the record names a GUID, and the login does not")
    return None


def size_refusal(value: JsonObject) -> Answered | None:
    """Return the refusal of a record that is too large, or None."""
    if len(json.dumps(value, separators=(",", ":"))) <= node.MAX_RECORD_BYTES:
        return None
    return Answered(Code.TOO_LARGE, f"a record has at most {node.MAX_RECORD_BYTES} bytes")


def wanted_state(status: State, fields: JsonObject) -> State | None:
    """Return the state of a record after an update, or None if the update is not permitted.

    Args:
        status: The state of the record.
        fields: The fields of the update.
    """
    named = fields.get("status")
    if named is None:
        return State.LIVE if status is State.DISCONNECTED else status
    if named == State.LIVE:
        return State.LIVE
    if named == State.DISCONNECTED and status is not State.CREATED:
        return State.DISCONNECTED
    return None


def _wrong_stub(value: JsonObject, by: str) -> Answered | None:
    """Return the refusal of a record with invalid P2P stub addresses, or None (I-G6, ADR-07)."""
    handler, requester = value.get("p2pHandler"), value.get("p2pRequester")
    if isinstance(handler, str) and not is_below(handler, by):
        return Answered(Code.FORBIDDEN, "the P2P handler is not the runtime's own")
    if isinstance(handler, str) and not handler.startswith(f"{by}/p2phandler/"):
        why = f"p2pHandler {handler} is no P2P handler stub, such as {by}/p2phandler/1"
        return Answered(Code.MALFORMED, why)
    if isinstance(requester, str) and is_other_stub(requester):
        why = f"p2pRequester {requester} is no P2P requester stub"
        return Answered(Code.MALFORMED, why)
    return None


# Devices to which the node can send push messages that wake up runtimes, and limits (PFY-09).

_SENDERS: Final = Rate(1 / 6, 10)
"""Limit of the wake-up calls of one sender: ten at once, then ten a minute."""

_CALLS: Final = Rate(1 / 60, 5)
"""Limit of the wake-up calls from one sender to one device: five at once, then one a minute."""

_ALL_CALLS: Final = Rate(1 / 6, 30)
"""Limit of the wake-up calls to one device, too high for a single sender to exhaust."""


@attrs.frozen(slots=True, kw_only=True)
class Device:
    """The push service endpoint of a runtime's device (RFC 8030, RFC 8291).

    Attributes:
        runtime: The runtime that registered the device.
        user: The user who was logged in there; None: no user.
        endpoint: URL that the push service gave to the device. Anyone who knows it may try to push.
        p256dh: Public key of the device, an uncompressed point in base64url.
        auth: Secret of the device, in base64url.
        until: Time at which the registration of the device expires.
    """

    runtime: str
    user: str | None
    endpoint: str = attrs.field(repr=False)
    p256dh: str = attrs.field(repr=False)
    auth: str = attrs.field(repr=False)
    until: float


class DeviceTable:
    """The push devices that a node knows: one for each runtime, `PUSH_DEVICES` for each user."""

    def __init__(self, devices: Iterable[Device] = ()) -> None:
        self._devices: dict[str, Device] = {}
        self._of_user: dict[str, set[str]] = {}
        self._senders = TokenBuckets[str](_SENDERS)
        self._calls = TokenBuckets[tuple[str, str]](_CALLS)
        self._all_calls = TokenBuckets[str](_ALL_CALLS)
        for device in devices:
            self._note(device)

    def __len__(self) -> int:
        return len(self._devices)

    def keep(self, device: Device, now: float) -> tuple[str, ...] | None:
        """Register a device; return the runtimes whose devices were removed to make room.

        If the user has too many devices, those that expire first are removed. None: the table is
        full, and the device is not registered.

        Args:
            device: The device; it replaces the former device of its runtime.
            now: Current time.
        """
        self.forget(device.runtime)
        gone: list[str] = []
        if device.user is not None:
            held = sorted(self.reached_by(device.user, 0.0), key=lambda each: each.until)
            gone += [spare.runtime for spare in held[: max(0, len(held) + 1 - node.PUSH_DEVICES)]]
        if len(self._devices) - len(gone) >= node.PUSH_RUNTIMES:
            gone += [spare.runtime for spare in self._devices.values() if spare.until <= now]
        for runtime in gone:
            self.forget(runtime)
        if len(self._devices) >= node.PUSH_RUNTIMES:
            return None
        self._note(attrs.evolve(device, until=now + node.PUSH_LIFE))
        return tuple(gone)

    def _note(self, device: Device) -> None:
        self._devices[device.runtime] = device
        if device.user is not None:
            self._of_user.setdefault(device.user, set()).add(device.runtime)

    def forget(self, runtime: str) -> bool:
        """Remove the device of a runtime; return whether the runtime had a device."""
        device = self._devices.pop(runtime, None)
        if device is None:
            return False
        if device.user is not None:
            others = self._of_user[device.user]
            others.discard(runtime)
            if not others:
                del self._of_user[device.user]
        return True

    def device_of(self, runtime: str) -> Device | None:
        """Return the push device of a runtime, or None."""
        return self._devices.get(runtime)

    def reached_by(self, address: str, now: float) -> tuple[Device, ...]:
        """Return the registered devices that have not expired, of a runtime or of a user.

        Args:
            address: Address of the runtime or user.
            now: Current time.
        """
        runtimes = self._of_user.get(address, {address})
        devices = (self._devices.get(runtime) for runtime in sorted(runtimes))
        return tuple(item for item in devices if item is not None and item.until > now)

    def may_call(self, sender: str, now: float) -> bool:
        """Count a wake-up call of a sender; return whether the sender's limit allows it.

        Args:
            sender: Address of the runtime, or of the node of another domain.
            now: Current time.
        """
        return self._senders.try_spend(sender, now)

    def may_reach(self, device: Device, sender: str, now: float) -> bool:
        """Count a wake-up call of a sender to a device; return whether the limits allow it.

        Args:
            device: The device.
            sender: Address of the runtime, or of the node of another domain.
            now: Current time.
        """
        is_free = self._calls.try_spend((sender, device.runtime), now)
        return is_free and self._all_calls.try_spend(device.runtime, now)


# Pages of search results: newest records first; one session cannot fill a page (M-26..M-28).

_QUARTER: Final = 4
_TAG: Final = 6
_BAD: Final = "after is no cursor that this search has returned"


Found: TypeAlias = tuple[int, JsonObject]
"""Registration number of a matching record, and the content that the requester gets."""

Lane: TypeAlias = tuple[str, Callable[[int], Iterator[Found]]]
"""A runtime, and a function that yields its matching records below a number, newest first."""


@final
@attrs.frozen(slots=True)
class Cursor:
    """The position in the results of a search at which the next page begins.

    Attributes:
        search: Hash of the search, to recognise cursors of other searches.
        is_live: Whether the results are live records, or disconnected records.
        below: Registration number below which no record was delivered yet.
        waiting: Sessions with undelivered records above `below`: hash of the session, and number of
            its last delivered record.
    """

    search: str
    is_live: bool
    below: int = protocol.MAX_ID + 1
    waiting: tuple[tuple[str, int], ...] = ()

    @classmethod
    def first(cls, search: Search, *, is_live: bool) -> Self:
        """Return the position of the first page.

        Args:
            search: The search.
            is_live: Whether the results are live records.
        """
        return cls(_tag_of(search), is_live)

    @classmethod
    def read(cls, text: str, search: Search) -> Self:
        """Parse the cursor that a requester sends to get the next page.

        Args:
            text: The cursor.
            search: The search that is continued.

        Raises:
            BadMessageError: The text is no cursor of this search.
        """
        if len(text) > protocol.SEARCH_CURSOR_CHARS:
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
        """The cursor encoded as text, which the requester sends to get the next page."""
        parts: list[Json] = [self.search, self.is_live, self.below, {**dict(self.waiting)}]
        return base64.urlsafe_b64encode(json.dumps(parts, separators=(",", ":")).encode()).decode()


def page_of(
    lanes: Iterable[Lane], start: Cursor, limit: int
) -> tuple[list[JsonObject], Cursor | None]:
    """Return a page of search results, newest first, and the cursor of the next page, if any.

    The records of all sessions are merged by age; hardly more records than those of the page are
    read. After a session has filled a quarter of the page, its other records go to later pages.

    Args:
        lanes: The matching records of each session.
        start: The position at which the page begins.
        limit: Largest number of records on the page.
    """
    waiting, tag_of = dict(start.waiting), cache(_hash)
    following: list[tuple[int, int, str, JsonObject, Iterator[Found]]] = []
    for index, (runtime, older) in enumerate(lanes):
        place = waiting.get(tag_of(runtime), start.below) if waiting else start.below
        lane = older(place)
        following += [(-number, index, runtime, value, lane) for number, value in islice(lane, 1)]
    heapify(following)
    is_shared = len(following) > 1
    most = max(1, limit // _QUARTER) if is_shared else limit
    share = protocol.SEARCH_BYTES // _QUARTER if is_shared else protocol.SEARCH_BYTES
    behind = {tag_of(runtime) for _, _, runtime, _, _ in following} & waiting.keys()
    page, room, below = list[JsonObject](), protocol.SEARCH_BYTES, start.below
    used: dict[str, tuple[int, int]] = {}
    last: dict[str, int] = {}
    full: set[str] = set()
    while following and len(page) < limit:
        negated, index, runtime, value, lane = following[0]
        size = len(json.dumps(value, separators=(",", ":"))) + 1
        entries, taken = used.get(runtime, (0, 0))
        if entries and (entries == most or taken + size > share):
            behind.add(tag_of(runtime))
            if len(behind) > protocol.SEARCH_WAITING:  # the cursor names no more sessions
                break
            full.add(runtime)
            heappop(following)
        elif page and size > room:
            break
        else:
            page.append(value)
            room -= size
            used[runtime], last[runtime] = (entries + 1, taken + size), -negated
            heappop(following)
            for number, older_one in islice(lane, 1):
                heappush(following, (-number, index, runtime, older_one, lane))
        below = min(below, -negated)
    if not following and not full:
        return page, None
    full |= {runtime for negated, _, runtime, _, _ in following if -negated >= below}
    places = {
        tag_of(runtime): last.get(runtime, waiting.get(tag_of(runtime), below)) for runtime in full
    }
    return page, attrs.evolve(start, below=below, waiting=tuple(sorted(places.items())))


def _tag_of(search: Search) -> str:
    narrowed = sorted(search.resources), sorted(search.data_schemes)
    fields = sorted((by.value, text) for by, text in search.fields)
    return _hash(repr((search.by.value, search.value, search.scheme, narrowed, fields)))


def _hash(text: str) -> str:
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=_TAG).digest()
    return base64.urlsafe_b64encode(digest).decode()
