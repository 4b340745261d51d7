"""Requests that a part of the node relays to a back end: limits, order, retries (CON-07).

Requests under way and requests that wait are limited; further requests are refused with 503.
Requests of one lane are sent one after the other, in order. A request that takes too long, waiting
included, is refused with 504. When the session of a requester ends, its requests are given up. An
answer of the back end to a request that is over is late.

`RetryQueue` holds work of the node at a back end for sessions that are over. Each entry is tried
until it succeeds, with pauses that double up to `RETRY_QUEUE_PAUSE`, and is given up after
`RETRY_QUEUE_TRIES` attempts.

`Reservations` are the reservations of sessions at a quality broker (CON-04). A reservation belongs
to a session and one of its clients, and has a name that only the node and the broker know.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final, Protocol, final

import attrs

from fsm.machines.registration import State
from fsm.registry import records
from specs.addresses.address import scheme_of
from specs.jsonvalue import Json, JsonObject
from specs.limits.node import MAX_RESERVATIONS, RETRY_QUEUE_PAUSE, RETRY_QUEUE_TRIES
from specs.limits.protocol import RETRY_COOL_DOWN
from specs.reply_code import Code


@attrs.frozen
class Reservation:
    """A reservation that the broker granted.

    Attributes:
        name: Its name at the broker.
        request: The request for it.
        value: The value of the request that opens it.
    """

    name: str
    request: JsonObject
    value: JsonObject


class Reservations:
    """The reservations of all sessions of one node."""

    def __init__(self) -> None:
        self._held: dict[str, dict[str, Reservation]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._held.values()))

    def find(self, by: str, client: str) -> Reservation | None:
        """Return the reservation of a client, or None.

        Args:
            by: Address of the session's runtime.
            client: Name of the client, within the session.
        """
        return self._held.get(by, {}).get(client)

    def has_room(self, by: str) -> bool:
        """Return whether a session may hold one more reservation."""
        return len(self._held.get(by, {})) < MAX_RESERVATIONS

    def record_grant(self, by: str, client: str, reservation: Reservation) -> None:
        """Note the reservation that the broker granted to a client.

        Args:
            by: Address of the session's runtime.
            client: Name of the client, within the session.
            reservation: The reservation.
        """
        self._held.setdefault(by, {})[client] = reservation

    def give_back(self, by: str, client: str) -> str | None:
        """Remove a client's reservation; return its name, or None if there is none.

        Args:
            by: Address of the session's runtime.
            client: Name of the client, within the session.
        """
        of_session = self._held.get(by, {})
        reservation = of_session.pop(client, None)
        if not of_session:
            self._held.pop(by, None)
        return None if reservation is None else reservation.name

    def remove_session(self, by: str) -> tuple[str, ...]:
        """Remove all reservations of a session; return their names."""
        return tuple(each.name for each in self._held.pop(by, {}).values())


_GROWTH: Final = 2.0


@attrs.define
class _Retry:
    due: float
    tries: int = 0


class RetryQueue:
    """Names of work to do at a back end, oldest first."""

    def __init__(self) -> None:
        self._owed: dict[str, _Retry] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._owed

    def __len__(self) -> int:
        return len(self._owed)

    def owe(self, name: str, now: float) -> None:
        """Add work, which is due at once.

        Args:
            name: Name of the work, such as that of a reservation.
            now: Seconds on the host's clock.
        """
        self._owed[name] = _Retry(now)

    def remove(self, name: str) -> None:
        """Remove work that is done or no longer needed."""
        self._owed.pop(name, None)

    def count_failure(self, name: str, now: float) -> bool:
        """Note a failed attempt; return whether it was the last one.

        Args:
            name: Name of the work.
            now: Seconds on the host's clock.
        """
        retry = self._owed.get(name)
        if retry is None:
            return False
        retry.tries += 1
        if retry.tries >= RETRY_QUEUE_TRIES:
            del self._owed[name]
            return True
        retry.due = now + min(RETRY_COOL_DOWN * _GROWTH ** (retry.tries - 1), RETRY_QUEUE_PAUSE)
        return False

    def due(self, now: float) -> tuple[str, ...]:
        """Return the names of the work to try now."""
        return tuple(name for name, retry in self._owed.items() if retry.due <= now)

    def deadline(self) -> float:
        """Return when the next attempt is due."""
        return min((retry.due for retry in self._owed.values()), default=float("inf"))


@final
@attrs.frozen(slots=True)
class RelayLimits:
    """The limits of requests to one back end.

    Attributes:
        parallel: Largest number of requests under way at once.
        waiting: Largest number of requests that wait for one of them to end.
        patience: Seconds a request may take, waiting included.
        each: Largest number of requests of one user under way at once; None: the same as
            `parallel`.
    """

    parallel: int
    waiting: int
    patience: float
    each: int | None = None


class RelayPort(Protocol):
    """The calls of a relay to its host; a request is identified by its number."""

    def send(self, number: int) -> None:
        """Send a request to the back end."""

    def deliver(self, number: int) -> None:
        """Deliver the answer of the back end to the requester."""

    def refuse(self, number: int, code: Code, why: str) -> None:
        """Refuse a request, and cancel a request that is under way at the back end."""

    def give_up(self, number: int) -> None:
        """Cancel a request at the back end: its requester is gone."""

    def drop_late(self, number: int) -> None:
        """Drop the answer of the back end to a request that is over."""


@attrs.frozen(slots=True)
class _Request:
    """An open request: its requester, its lane, and the user or runtime whose limits it uses."""

    number: int
    by: str | None
    lane: str | None
    counts_for: str | None


_FULL: Final = "too many requests wait for the back end"
_SLOW: Final = "the back end did not answer in time"


class RelayCore:
    """The open requests to one back end; `now` is in seconds on the host's clock."""

    def __init__(self, limits: RelayLimits, port: RelayPort) -> None:
        self._limits = limits
        self._port = port
        self._due: dict[int, float] = {}
        self._open: dict[int, _Request] = {}
        self._waiting: deque[_Request] = deque()
        self._running: dict[int, _Request] = {}

    def __len__(self) -> int:
        return len(self._open)

    def deadline(self) -> float:
        """Return when `tick` is due; all have the same patience, so the first request is next."""
        return next(iter(self._due.values()), float("inf"))

    def want(
        self,
        number: int,
        by: str | None,
        now: float,
        lane: str | None = None,
        user: str | None = None,
    ) -> None:
        """Take a request for the back end.

        Args:
            number: Identifies the request; never used again.
            by: The runtime over whose session it came; None: the node itself sends it.
            lane: Requests of the same lane keep their order; None: no lane.
            user: The user whose limits it counts for, over all sessions; None: it counts for the
                runtime.
        """
        request = self._open[number] = _Request(number, by, lane, user or by)
        self._due[number] = now + self._limits.patience
        self._waiting.append(request)
        self._start()
        if len(self._waiting) > self._limits.waiting:
            crowded = self._crowding(request).number
            self._end(crowded, partial(self._port.refuse, crowded, Code.UNAVAILABLE, _FULL))

    def _crowding(self, request: _Request) -> _Request:
        """Return the request to refuse: the newest one of the user with most waiting requests.

        Otherwise one user could fill the queue, so that all others are refused.
        """
        waiting = Counter(each.counts_for for each in self._waiting)
        user, count = waiting.most_common(1)[0]
        if waiting[request.counts_for] == count:
            return request
        return next(each for each in reversed(self._waiting) if each.counts_for == user)

    def take_answer(self, number: int) -> None:
        """Note that the back end has answered."""
        self._end(number, partial(self._port.deliver, number))

    def take_failure(self, number: int, why: str) -> None:
        """Note that the back end cannot be reached, or its answer is malformed."""
        self._end(number, partial(self._port.refuse, number, Code.BAD_BACKEND, why))

    def leave(self, runtime: str) -> None:
        """Note that the session of a runtime is over."""
        for number in [each.number for each in self._open.values() if each.by == runtime]:
            self._end(number, partial(self._port.give_up, number))

    def tick(self, now: float) -> None:
        """Refuse requests that take too long."""
        for number in [each for each, due in self._due.items() if due <= now]:
            self._end(number, partial(self._port.refuse, number, Code.BACKEND_TIMEOUT, _SLOW))

    def _end(self, number: int, end: Callable[[], None]) -> None:
        request = self._open.pop(number, None)
        if request is None:
            self._port.drop_late(number)
            return
        del self._due[number]
        if self._running.pop(number, None) is None:
            self._waiting.remove(request)
        end()
        self._start()

    def _start(self) -> None:
        """Start the requests that may start, in their order."""
        busy = {item.lane for item in self._running.values()} - {None}
        running, each = (
            Counter(item.counts_for for item in self._running.values()),
            self._limits.each,
        )
        for request in list(self._waiting):
            if len(self._running) >= self._limits.parallel:
                break
            if request.lane in busy or (each is not None and running[request.counts_for] >= each):
                continue
            running[request.counts_for] += 1
            if request.lane is not None:
                busy.add(request.lane)
            self._waiting.remove(request)
            self._running[request.number] = request
            self._port.send(request.number)


# Translation between requests to a domain registry and upstream's REST interface (CON-02).

_VISIBLE: Final = frozenset({State.LIVE.value, State.DISCONNECTED.value})


class StatusWatch:
    """The last known status of each record, for a limited number of recent records (I-G5).

    It tells real changes of status from repeated reports of a registry behind the node.

    Args:
        size: Number of records that it remembers.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._known: OrderedDict[str, str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def is_change(self, url: str, status: str) -> bool:
        """Note a status; return whether it is a change that is visible to others.

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

    def record_status(self, url: str, status: str) -> None:
        """Note the status of a record that was read, unless a status is known.

        A known status was reported to subscribers. A status that was read may be a change that is
        yet to be reported.

        Args:
            url: Address of the record.
            status: The status in the record.
        """
        if url not in self._known:
            self.is_change(url, status)


_HYPERTIES: Final = frozenset({"hyperty", "hyperty-runtime", "user", "user-guid"})
"""Schemes of records that upstream stores with its hyperties; all others are data objects."""

_HYPERTY_FIELDS: Final = (
    "descriptor", "expires", "resources", "dataSchemes", "status", "runtime",
    "p2pRequester", "p2pHandler", "guid",
)  # fmt: skip
_OBJECT_FIELDS: Final = (
    "name", "schema", "url", "reporter", "expires", "dataSchemes", "resources", "status",
    "runtime", "p2pRequester",
)  # fmt: skip
_OURS: Final = {"hypertyID": "url", "userID": "user"}
"""Our names of fields that upstream's server names differently."""

_SEEN: Final = frozenset({State.LIVE.value, State.DISCONNECTED.value})
_NO_PAGES: Final = records.Answered(
    Code.MALFORMED, "the registry behind this node has no further pages"
)
_NO_USER: Final = records.Answered(Code.MALFORMED, "the registry behind this node needs value.user")


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


def create_call(request: records.Create) -> RestCall | records.Answered:
    """Return the call that registers a record (M-21), or its refusal."""
    value: JsonObject = {
        "status": State.LIVE.value, "resources": [], "dataSchemes": [], **request.value
    }  # fmt: skip
    if not _is_hyperty(request.url):
        body = _some(value, _OBJECT_FIELDS)
        return RestCall("PUT", ("hyperty", "dataobject", request.url), body=body)
    user = value.get("user")
    if not isinstance(user, str) or not user:
        return _NO_USER
    body = _some(value, _HYPERTY_FIELDS)
    return RestCall("PUT", ("hyperty", "user", user, request.url), body=body)


def touch_call(request: records.Touch) -> RestCall:
    """Return the call that changes, unregisters or keeps alive a record (M-22..M-24)."""
    path = ("hyperty", "url") if _is_hyperty(request.url) else ("dataobject", "url")
    return RestCall("PUT", (*path, request.url), body=request.fields)


def read_call(request: records.Read | records.Find) -> RestCall | records.Answered:
    """Return the call that reads a record, or the candidates of a search (M-25..M-28)."""
    if isinstance(request, records.Read):
        kind = ("url",) if _is_hyperty(request.url) else ("dataobject", "url")
        return RestCall("GET", ("hyperty", *kind, request.url))
    if request.after is not None:
        return _NO_PAGES
    search = request.search
    lookup = _LOOKUPS.get(search.by)
    if lookup is None:
        why = f"the registry behind this node does not search by {search.by}"
        return records.Answered(Code.MALFORMED, why)
    path, narrowing = lookup
    query = _query(search)
    if query and narrowing:
        return RestCall("GET", ("hyperty", *path, search.value, narrowing), query)
    return RestCall("GET", ("hyperty", *path, search.value))


_LOOKUPS: Final[Mapping[records.By, tuple[tuple[str, ...], str]]] = {
    records.By.USER: (("user",), "hyperty"),
    records.By.GUID: (("guid",), ""),
    records.By.IDENTIFIER: (("email",), "hyperty"),
    records.By.NAME: (("dataobject", "name"), "do"),
    records.By.REPORTER: (("dataobject", "reporter"), "do"),
}
"""Path of each search, and its suffix if the server can narrow it; "": it cannot."""


def records_answer(
    asked: records.Read | records.Find, listed: list[JsonObject]
) -> records.Answered:
    """Return the answer for the server's records: 200; 408 if none is live; 404 if none exists.

    The server has no pages. Of a search the first page is returned, with the number of records that
    are left out.

    Args:
        asked: The read or the search.
        listed: The records that the server returned, in our names.
    """
    meant = [item for item in listed if item.get("status") in _SEEN and _is_meant(asked, item)]
    live = [each for each in meant if each["status"] == State.LIVE.value]
    if not meant:
        return records.UNKNOWN
    if isinstance(asked, records.Read):
        return asked.answer((live or meant)[0], is_live=bool(live))
    page = _first_page(asked, live or meant)
    omitted = len(live or meant) - len(page)
    remark = f"; {omitted} more are not shown" if omitted else ""
    if live:
        return records.Answered(Code.OK, f"OK{remark}" if remark else "", [*page])
    return records.Answered(Code.TIMEOUT, f"{records.AWAY}{remark}", [*page])


def _first_page(request: records.Find, matching: list[JsonObject]) -> list[JsonObject]:
    """Return the first page of records, in the order of the server."""
    lanes: dict[str, list[records.Found]] = {}
    for nth, item in enumerate(matching):
        lanes.setdefault(str(item.get("runtime", "")), []).append((len(matching) - nth, item))
    first = records.Cursor.first(request.search, is_live=True)
    each = ((runtime, lambda _, lane=lane: iter(lane)) for runtime, lane in lanes.items())
    page, _ = records.page_of(each, first, request.limit)
    return page


def records_in(answer: Json) -> list[JsonObject]:
    """Return the records in an answer of the server, with our names of fields."""
    return [record for record in map(_ours, _objects_in(answer)) if "url" in record]


def _objects_in(answer: Json) -> Iterator[JsonObject]:
    if isinstance(answer, list):
        yield from (each for each in answer if isinstance(each, dict))
    elif isinstance(answer, dict) and answer and all("://" in name for name in answer):
        for url, each in answer.items():
            if isinstance(each, dict):
                yield {**each, "url": url}
            elif isinstance(each, str):
                yield {"url": url, "status": each}
    elif isinstance(answer, dict):
        yield answer


def _ours(record: JsonObject) -> JsonObject:
    ours = {_OURS.get(name, name): each for name, each in record.items() if each is not None}
    return {"status": State.LIVE.value, **ours}


def _is_meant(asked: records.Read | records.Find, record: JsonObject) -> bool:
    url = record["url"]
    if not isinstance(url, str):
        return False
    return (
        url == asked.url if isinstance(asked, records.Read) else asked.search.accepts(url, record)
    )


def _is_hyperty(url: str) -> bool:
    return scheme_of(url) in _HYPERTIES


def _some(value: JsonObject, names: tuple[str, ...]) -> JsonObject:
    return {name: value[name] for name in names if value.get(name) is not None}


def _query(search: records.Search) -> dict[str, str]:
    listed = {"resources": search.resources, "dataSchemes": search.data_schemes}
    return {name: ",".join(sorted(values)) for name, values in listed.items() if values}
