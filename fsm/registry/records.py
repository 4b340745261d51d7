"""Records of a domain registry: rows, requests and their answers, checks, and the index.

The checks say whether a runtime may register or change a record; every back end of a registry
uses them. The index finds records other than by address (M-26..M-28, and ours):

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

Criteria narrow each: `scheme`, `resources` and `dataSchemes`, and the fields `user`, `guid`,
`name` and `reporter`; a record must have all that are named.
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
    """The attribute by which a search finds records."""

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
"""Fields of a record by whose whole value it is found."""

_LISTS: Final = (By.RESOURCE, By.DATA_SCHEME)
"""Fields of a record that are lists of texts, by each of which it is found."""

_INDEXED: Final = (*_FIELDS, *(by.value for by in _LISTS))

_NARROWING: Final = (By.USER, By.GUID, By.NAME, By.REPORTER)
"""Fields that criteria may name besides the attribute of the search."""

_URL: Final = "url"
"""The criteria that identify one record instead of a search."""


@attrs.frozen(slots=True)
class Search:
    """A search for records that meet all its conditions.

    Attributes:
        by: The attribute whose value is `value`.
        scheme: Scheme of the records' addresses; None: any.
        resources: Resources that a record must all offer.
        data_schemes: Schemes that a record must all handle.
        fields: Further fields that it must have, with their values.
    """

    by: By
    value: str
    scheme: str | None = None
    resources: frozenset[str] = frozenset()
    data_schemes: frozenset[str] = frozenset()
    fields: frozenset[tuple[By, str]] = frozenset()

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
            and self.fields <= _fields(record)
        )


def search_of(resource: str, criteria: JsonObject | None) -> Search | None:
    """Return the search that a read asks for, or None if it asks for one record.

    A search is `/<scheme>/<by>/<value>`, or the address of a user or GUID alone.

    Args:
        resource: The `resource` of the read.
        criteria: The `criteria` of the read; None: none.
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
    """Return the address that a read of one record names, with or without `/<scheme>/url/`."""
    match resource.split("/", 3):
        case ["", _, kind, rest] if kind == _URL:
            return rest
        case _:
            return resource


def _texts(value: Json) -> frozenset[str]:
    listed = value if isinstance(value, list) else [value]
    return frozenset(item for item in listed if isinstance(item, str))


def _fields(value: Mapping[str, Json]) -> frozenset[tuple[By, str]]:
    """Return the fields of a record, or of criteria, by which a search can be narrowed."""
    named = ((by, value.get(by.value)) for by in _NARROWING)
    return frozenset((by, _normal(text)) for by, text in named if isinstance(text, str))


def _normal(value: str) -> str:
    """Return an address in canonical form, and any other text unchanged."""
    if "://" not in value:
        return value  # mostly names; an error for each would take a third of a node's start
    try:
        return canonical(value)
    except BadUrlError:
        return value


KEPT: Final = "kept from before the node started"
"""The reason in reports about records of an earlier process."""


def status_for_others(status: State) -> State:
    """Return a status as it is shown to other runtimes."""
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
    """A stored record.

    Attributes:
        url: Address of the hyperty or object.
        runtime: The runtime that registered it.
        status: State of the record.
        touched: Time at which its runtime last proved to be alive, or left.
        text: The record as the runtime wrote it, as JSON, with unknown keys.
        number: Number of its registration; later registrations have higher numbers.
        cost: Approximate number of bytes of memory that it takes.
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
        """The record, parsed anew each time: as objects it would take several times its text."""
        value: JsonObject = json.loads(self.text)
        return value

    @property
    def is_live(self) -> bool:
        """True if the hyperty or object can be reached, even if the record outlives its session."""
        return status_for_others(self.status) is State.LIVE

    @property
    def due(self) -> float:
        """The time at which the record's status changes without a request."""
        patience = REGISTRATION.patience(self.status)
        if self.is_live:
            patience = min(patience, _wanted_patience(self.value))
        return self.touched + patience


Entry: TypeAlias = tuple[int, str]
"""Number and address of a record."""


class RecordIndex:
    """The records by the attributes of searches, and by their sessions.

    The records of each session are sorted by number.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[By, str], dict[str, list[Entry]]] = {}

    def add(self, row: Row) -> None:
        """Add a record.

        Args:
            row: Its row, which is not in the index.
        """
        entry = row.number, row.url
        for key in _keys(row.value):
            insort(self._entries.setdefault(key, {}).setdefault(row.runtime, []), entry)

    def remove(self, row: Row) -> None:
        """Remove a record.

        Args:
            row: Its row, equal to the one that was added.
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
        """Replace a record; a change of no attribute of a search costs nothing.

        Args:
            old: The row that was added; None: there was none.
            new: The new row.
        """
        if old is None:
            self.add(new)
        elif old.text is not new.text:
            old_value, new_value = old.value, new.value
            if any(old_value.get(field) != new_value.get(field) for field in _INDEXED):
                self.remove(old)
                self.add(new)

    def find(self, by: By, value: str) -> Mapping[str, Sequence[Entry]]:
        """Return the matching records, by the runtimes of their sessions.

        Args:
            by: The attribute to search by.
            value: Its value.
        """
        return self._entries.get((by, value), {})

    def urls(self, by: By, value: str) -> list[str]:
        """Return the addresses of the matching records.

        Args:
            by: The attribute to search by.
            value: Its value.
        """
        lanes = self.find(by, value)
        return [url for entries in lanes.values() for _, url in entries]

    def count(self, by: By, value: str) -> int:
        """Return the number of records that `find` returns.

        Args:
            by: The attribute to search by.
            value: Its value.
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
    """The registration of a record by a runtime (M-21).

    Attributes:
        by: The runtime whose session sent the request.
        owner: The runtime that owns the address, according to the node.
        is_lasting: Whether the record outlives the session: the runtime speaks upstream's form.
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
    """A change of a record, its removal, or a sign of life (M-22..M-24).

    Attributes:
        fields: The fields to set; empty: only a sign of life.
        is_lasting: As in `Create`.
        users: As in `Create`.
    """

    url: str
    by: str
    fields: JsonObject
    is_lasting: bool = False
    users: frozenset[str] | None = None


@attrs.frozen(slots=True)
class Read:
    """A request for one record, or one attribute of it (M-25).

    Attributes:
        attribute: Dotted path of the attribute; None: the whole record.
    """

    url: str
    attribute: str | None = None

    def answer(self, record: JsonObject, *, is_live: bool) -> "Answered":
        """Return the answer: 408 if the record is disconnected, 404 if it lacks the attribute.

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
    """A search for a page of records (M-26..M-28).

    Attributes:
        limit: Largest number of records on the page.
        after: The cursor at which the page begins, as the requester sent it; None: at the newest
            record.
    """

    search: Search
    limit: int = protocol.SEARCH_PAGE
    after: str | None = None


Request: TypeAlias = Create | Touch | Read | Find

Change: TypeAlias = tuple[str, Row | None]
"""Address of a record, and its new row; None: the record is removed."""


@attrs.frozen(slots=True)
class Answered:
    """The answer to a request.

    Attributes:
        after: Cursor of the next page of a search; None: no further page.
        is_attribute: Whether `value` is the value of one attribute, which may be null.
    """

    code: Code
    why: str = ""
    value: Json = None
    after: str | None = None
    is_attribute: bool = False


def _wanted_patience(value: JsonObject) -> float:
    """Return the seconds of silence after which the record expires, as it asks for itself."""
    expires = value.get("expires")
    return float(expires) if isinstance(expires, int | float) and expires > 0 else math.inf


OK: Final = Answered(Code.OK)
UNKNOWN: Final = Answered(Code.NOT_FOUND, "Not Found")

NO_SUCH_STATUS: Final = Answered(Code.MALFORMED, "a record is set live or disconnected")

AWAY: Final = "Temporarily Unavailable"
"""The reason in answers about records that are registered but cannot be reached now."""

_FIXED: Final = ("url", "runtime")


def create_refusal(request: Create, held_by: str | None) -> Answered | None:
    """Return the refusal of a registration, or None if it is allowed.

    Args:
        request: The registration.
        held_by: The runtime that has a record with the address; None: there is no such record.
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
        record: The present record.
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
        has_login: Whether its runtime had the possibility to log in.
    """
    if user is not None:
        return frozenset({user})
    return frozenset() if has_login else None


def _wrong_user(value: JsonObject, users: frozenset[str] | None) -> Answered | None:
    """Return the refusal of a record that names another user, or None.

    A login proves no GUID, so where users log in, no record may have a GUID.
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
    """Return the state that an update asks for, or None if that is not permitted.

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
    """Return the refusal of a record whose stubs cannot set up a link (I-G6, ADR-07), or None."""
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


# Push devices of sleeping runtimes, and the limits of wake-up calls (PFY-09).

_SENDERS: Final = Rate(1 / 6, 10)
"""Limit of the calls of one sender: ten at once, then ten a minute (ours)."""

_CALLS: Final = Rate(1 / 60, 5)
"""Limit of the calls from one sender to one device: five at once, then one a minute (ours)."""

_ALL_CALLS: Final = Rate(1 / 6, 30)
"""Limit of the calls to one device: a single sender cannot use it up (ours)."""


@attrs.frozen(slots=True, kw_only=True)
class Device:
    """The push service endpoint of a runtime's device (RFC 8030, RFC 8291).

    Attributes:
        runtime: The runtime that registered it.
        user: The user who was logged in there; None: no user.
        endpoint: URL that the push service gave to the device. Anyone who knows it may try to push.
        p256dh: Public key of the device, an uncompressed point in base64url.
        auth: Secret of the device, in base64url.
        until: Time at which it is forgotten unless it is registered again.
    """

    runtime: str
    user: str | None
    endpoint: str = attrs.field(repr=False)
    p256dh: str = attrs.field(repr=False)
    auth: str = attrs.field(repr=False)
    until: float


class DeviceTable:
    """The devices of one node: one for each runtime, at most `PUSH_DEVICES` for each user."""

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
        """Register a device; return the runtimes whose devices were removed for it.

        Devices of the same user that were registered first are removed. None: the table is full.

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
        """Forget the device of a runtime; return whether there was one."""
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
        """Return the device of a runtime, or None."""
        return self._devices.get(runtime)

    def reached_by(self, address: str, now: float) -> tuple[Device, ...]:
        """Return the devices of a runtime, or of a user.

        Args:
            address: Address of the runtime or user.
            now: Current time.
        """
        runtimes = self._of_user.get(address, {address})
        devices = (self._devices.get(runtime) for runtime in sorted(runtimes))
        return tuple(item for item in devices if item is not None and item.until > now)

    def may_call(self, sender: str, now: float) -> bool:
        """Count a call of a sender; return whether the sender's limit allows it.

        Args:
            sender: Runtime, or node of another domain.
            now: Current time.
        """
        return self._senders.try_spend(sender, now)

    def may_reach(self, device: Device, sender: str, now: float) -> bool:
        """Count a call of a sender to a device; return whether both limits allow it.

        Args:
            device: The device.
            sender: Runtime, or node of another domain.
            now: Current time.
        """
        is_free = self._calls.try_spend((sender, device.runtime), now)
        return is_free and self._all_calls.try_spend(device.runtime, now)


# Pages of a search: newest records first, no page filled by a single session (M-26..M-28).

_QUARTER: Final = 4
_TAG: Final = 6
_BAD: Final = "after is no cursor that this search has returned"


Found: TypeAlias = tuple[int, JsonObject]
"""Number of a matching record, and the record as it is shown to the requester."""

Lane: TypeAlias = tuple[str, Callable[[int], Iterator[Found]]]
"""A runtime, and a function that yields the records of its session below a number, newest first."""


@final
@attrs.frozen(slots=True)
class Cursor:
    """The position in a search at which a page begins.

    Attributes:
        search: Tag of the search.
        is_live: Whether the search shows live records, or disconnected ones.
        below: Number below which no record was delivered yet.
        waiting: By the tag of a session: the number of its last delivered record, above `below`.
    """

    search: str
    is_live: bool
    below: int = protocol.MAX_ID + 1
    waiting: tuple[tuple[str, int], ...] = ()

    @classmethod
    def first(cls, search: Search, *, is_live: bool) -> Self:
        """Return the position before the newest record.

        Args:
            search: The search.
            is_live: Whether it shows live records.
        """
        return cls(_tag_of(search), is_live)

    @classmethod
    def read(cls, text: str, search: Search) -> Self:
        """Read the cursor that a requester sends back.

        Args:
            text: The cursor.
            search: The search that is continued.

        Raises:
            BadMessageError: It is none of this search.
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
        """The cursor as text for a requester."""
        parts: list[Json] = [self.search, self.is_live, self.below, {**dict(self.waiting)}]
        return base64.urlsafe_b64encode(json.dumps(parts, separators=(",", ":")).encode()).decode()


def page_of(
    lanes: Iterable[Lane], start: Cursor, limit: int
) -> tuple[list[JsonObject], Cursor | None]:
    """Return the page at a position, newest records first, and the position of the next page.

    Few records besides those of the page are read: the lanes are merged. A session that has used up
    its share of the page waits: its further records are for later pages.

    Args:
        lanes: The lanes of all matching records, one for each session.
        start: The position.
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
