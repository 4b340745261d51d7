"""Relay of requests from a node to a back end server: limits, order, retries (CON-07).

`RelayCore` limits the requests that are running or waiting; further requests are refused with 503.
Requests of one lane are sent one after the other, in order. A request that takes too long, waiting
included, is refused with 504. When the session of a requester ends, its requests are cancelled. An
answer of the back end to a request that has ended is dropped.

`RetryQueue` holds tasks at a back end that must be done after a session has ended. Each task is
tried until it succeeds, with pauses that double up to `RETRY_QUEUE_PAUSE`, at most
`RETRY_QUEUE_TRIES` times.

`Reservations` stores the reservations of sessions at a quality-of-service broker (CON-04). A
reservation belongs to a session and one of its clients, and has a name that only the node and the
broker know. The other functions translate registry requests to a REST interface (CON-02).
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
    """A reservation that the quality-of-service broker has granted to a client.

    Attributes:
        name: Name of the reservation at the broker.
        request: The request for the reservation that was sent to the broker.
        value: The value in the client's request that opened the reservation.
    """

    name: str
    request: JsonObject
    value: JsonObject


class Reservations:
    """The reservations of all sessions of one node at the quality-of-service broker."""

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
        """Return whether a session may have one more reservation."""
        return len(self._held.get(by, {})) < MAX_RESERVATIONS

    def record_grant(self, by: str, client: str, reservation: Reservation) -> None:
        """Store the reservation that the broker granted to a client.

        Args:
            by: Address of the session's runtime.
            client: Name of the client, within the session.
            reservation: The reservation.
        """
        self._held.setdefault(by, {})[client] = reservation

    def give_back(self, by: str, client: str) -> str | None:
        """Remove a client's reservation; return its name, or None if the client has none.

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
    """The state of a task: time of the next attempt, and number of failed attempts."""

    due: float
    tries: int = 0


class RetryQueue:
    """Names of tasks that must be done at a back end, with the times of their next attempts."""

    def __init__(self) -> None:
        self._owed: dict[str, _Retry] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._owed

    def __len__(self) -> int:
        return len(self._owed)

    def owe(self, name: str, now: float) -> None:
        """Add a task, to be tried at once.

        Args:
            name: Name of the task, such as the name of a reservation to end.
            now: Seconds on the host's clock.
        """
        self._owed[name] = _Retry(now)

    def remove(self, name: str) -> None:
        """Remove a task that is done or no longer needed."""
        self._owed.pop(name, None)

    def count_failure(self, name: str, now: float) -> bool:
        """Note a failed attempt; return True after the last attempt, which removes the task.

        Args:
            name: Name of the task.
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
        """Return the names of the tasks to try now."""
        return tuple(name for name, retry in self._owed.items() if retry.due <= now)

    def deadline(self) -> float:
        """Return the time of the next attempt."""
        return min((retry.due for retry in self._owed.values()), default=float("inf"))


@final
@attrs.frozen(slots=True)
class RelayLimits:
    """The limits of requests to one back end.

    Attributes:
        parallel: Largest number of requests that run at the back end at once.
        waiting: Largest number of requests that wait because too many are running.
        patience: Seconds that a request may take, waiting included.
        each: Largest number of requests of one user that run at once; None: the same as
            `parallel`.
    """

    parallel: int
    waiting: int
    patience: float
    each: int | None = None


class RelayPort(Protocol):
    """Calls of `RelayCore` to its host, which talks to back end and requester.

    Each request is identified by its number.
    """

    def send(self, number: int) -> None:
        """Send a request to the back end."""

    def deliver(self, number: int) -> None:
        """Deliver the answer of the back end to the requester."""

    def refuse(self, number: int, code: Code, why: str) -> None:
        """Refuse a request, and cancel the running call to the back end, if any."""

    def give_up(self, number: int) -> None:
        """Cancel a request at the back end without an answer, since the requester has left."""

    def drop_late(self, number: int) -> None:
        """Drop the answer of the back end to a request that has ended before."""


@attrs.frozen(slots=True)
class _Request:
    """A waiting or running request: requesting runtime, lane, and user whose limits are charged.

    The requests of one lane keep their order.
    """

    number: int
    by: str | None
    lane: str | None
    counts_for: str | None


_FULL: Final = "too many requests wait for the back end"
_SLOW: Final = "the back end did not answer in time"


class RelayCore:
    """The running and waiting requests to one back end, with their limits and time-outs.

    `now` is always in seconds on the host's clock.
    """

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
        """Return the time at which `tick` must be called next: the end of the oldest request."""
        return next(iter(self._due.values()), float("inf"))

    def want(
        self,
        number: int,
        by: str | None,
        now: float,
        lane: str | None = None,
        user: str | None = None,
    ) -> None:
        """Queue a request for the back end, or refuse a request if too many are waiting.

        Args:
            number: Identifies the request; never used again.
            by: The runtime over whose session the request came; None: the node itself sends it.
            lane: Requests of the same lane keep their order; None: no lane.
            user: The user to whose limits the request is charged, over all sessions; None: it is
                charged to the runtime.
        """
        request = self._open[number] = _Request(number, by, lane, user or by)
        self._due[number] = now + self._limits.patience
        self._waiting.append(request)
        self._start()
        if len(self._waiting) > self._limits.waiting:
            crowded = self._crowding(request).number
            self._end(crowded, partial(self._port.refuse, crowded, Code.UNAVAILABLE, _FULL))

    def _crowding(self, request: _Request) -> _Request:
        """Return the request to refuse: the newest of the user with the most waiting requests.

        So a single user cannot fill the queue and thereby exclude all others.
        """
        waiting = Counter(each.counts_for for each in self._waiting)
        user, count = waiting.most_common(1)[0]
        if waiting[request.counts_for] == count:
            return request
        return next(each for each in reversed(self._waiting) if each.counts_for == user)

    def take_answer(self, number: int) -> None:
        """Deliver the answer of the back end to a request, and start waiting requests."""
        self._end(number, partial(self._port.deliver, number))

    def take_failure(self, number: int, why: str) -> None:
        """Refuse a request since the back end cannot be reached, or its answer is malformed."""
        self._end(number, partial(self._port.refuse, number, Code.BAD_BACKEND, why))

    def leave(self, runtime: str) -> None:
        """Cancel all requests of a runtime whose session has ended."""
        for number in [each.number for each in self._open.values() if each.by == runtime]:
            self._end(number, partial(self._port.give_up, number))

    def tick(self, now: float) -> None:
        """Refuse the requests that have taken too long."""
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
        """Send waiting requests to the back end, as far as limits and lanes permit."""
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


# Translation of registry requests to the REST interface of the original registry server (CON-02).

_VISIBLE: Final = frozenset({State.LIVE.value, State.DISCONNECTED.value})


class StatusWatch:
    """Detects changes of status in the reports of a back end registry, which repeats them (I-G5).

    It remembers the last known status of a limited number of records.

    Args:
        size: Number of remembered records; the oldest are forgotten first.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._known: OrderedDict[str, str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def is_change(self, url: str, status: str) -> bool:
        """Remember a reported status; return whether subscribers must be told about a change.

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
        """Remember the status of a record that was read, unless a status is known already.

        The known status is the last that subscribers were told. If the status that was read
        differs, the change must still be reported to them.

        Args:
            url: Address of the record.
            status: The status in the record.
        """
        if url not in self._known:
            self.is_change(url, status)


_HYPERTIES: Final = frozenset({"hyperty", "hyperty-runtime", "user", "user-guid"})
"""Schemes of records that the REST server stores as hyperties; all others are data objects."""

_HYPERTY_FIELDS: Final = (
    "descriptor", "expires", "resources", "dataSchemes", "status", "runtime",
    "p2pRequester", "p2pHandler", "guid",
)  # fmt: skip
_OBJECT_FIELDS: Final = (
    "name", "schema", "url", "reporter", "expires", "dataSchemes", "resources", "status",
    "runtime", "p2pRequester",
)  # fmt: skip
_OURS: Final = {"hypertyID": "url", "userID": "user"}
"""Fields that the REST server names differently, with the names that Protofly uses."""

_SEEN: Final = frozenset({State.LIVE.value, State.DISCONNECTED.value})
_NO_PAGES: Final = records.Answered(
    Code.MALFORMED, "the registry behind this node has no further pages"
)
_NO_USER: Final = records.Answered(Code.MALFORMED, "the registry behind this node needs value.user")


@attrs.frozen
class RestCall:
    """A call of the registry server's REST interface.

    Attributes:
        method: HTTP method.
        path: Segments of the URL path, not yet quoted.
        query: Query parameters of the URL.
        body: The JSON object to send; None: no body.
    """

    method: str
    path: tuple[str, ...]
    query: Mapping[str, str] = attrs.field(factory=dict)
    body: JsonObject | None = None


def create_call(request: records.Create) -> RestCall | records.Answered:
    """Return the REST call that registers a record (M-21), or the refusal of the request."""
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
    """Return the REST call that changes, unregisters or keeps alive a record (M-22..M-24)."""
    path = ("hyperty", "url") if _is_hyperty(request.url) else ("dataobject", "url")
    return RestCall("PUT", (*path, request.url), body=request.fields)


def read_call(request: records.Read | records.Find) -> RestCall | records.Answered:
    """Return the REST call for a read or search, or the refusal of the request (M-25..M-28).

    The result of a search may contain records that do not match; `records_answer` drops them.
    """
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
"""URL path of each search, and the suffix for criteria; empty: the server supports none."""


def records_answer(
    asked: records.Read | records.Find, listed: list[JsonObject]
) -> records.Answered:
    """Return the answer to a request from the records that the REST server returned.

    The code is 200, or 408 if no record is live, or 404 if none matches. The server has no pages,
    so only the first page of a search is returned, with the number of omitted records.

    Args:
        asked: The read or the search.
        listed: The records that the server returned, with the field names of Protofly.
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
    """Return the first page of matching records, in the order of the server."""
    lanes: dict[str, list[records.Found]] = {}
    for nth, item in enumerate(matching):
        lanes.setdefault(str(item.get("runtime", "")), []).append((len(matching) - nth, item))
    first = records.Cursor.first(request.search, is_live=True)
    each = ((runtime, lambda _, lane=lane: iter(lane)) for runtime, lane in lanes.items())
    page, _ = records.page_of(each, first, request.limit)
    return page


def records_in(answer: Json) -> list[JsonObject]:
    """Return the records in an answer of the REST server, with the field names of Protofly."""
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
