"""HTTP listener of a node or runtime: accepts connections and answers their requests.

A connection is h11 on a byte stream link, with a time limit for every step. An ASGI server does not
fit: the Trio worker of Hypercorn shields its writes without a deadline, so that a peer that reads
nothing keeps the process from ending, and cannot be configured to refuse HTTP/2 and WebSockets.
"""

import itertools
from collections.abc import AsyncIterator, Container, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from email.utils import formatdate
from functools import partial
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, Never
from urllib.parse import parse_qsl

import attrs
import h11
import trio
from typing_extensions import override

from actors.catalogue.source import DirectorySource
from actors.catalogue.source import Source as CatalogueSource
from actors.http.config import HttpConfig, HttpPlaceError, OpenMetricsError
from actors.http.metrics import MetricsPage, ReadyPage, health
from actors.http.site import (
    ROOT,
    STATEMENT_KEYS,
    WEB,
    Feed,
    Folder,
    Gate,
    HttpService,
    Page,
    Site,
    Source,
    Visit,
    WebFiles,
    WellKnown,
    json_page,
    keys_page,
)
from actors.kit.counters import Counters, Measured
from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor
from actors.kit.supervision.supervisor import ChildSpec, Crash, Monitor, open_supervisor
from fsm.limits.shares import HostShares
from specs.jsonvalue import JsonObject
from specs.limits import protocol
from specs.limits.node import REST_CONNECTIONS, REST_PER_HOST
from transports.errors import LinkBrokenError, LinkClosedError, LinkError, ListenError
from transports.link import Everybody, Kind, Link, Listener, Network
from transports.urls import is_this_machine, own_origin, read_host_port, split_target

_log = get_logger("actors.http")

_ALWAYS: Final = (("cache-control", "no-store"), ("x-content-type-options", "nosniff"))
_CLOSE: Final = ("connection", "close")

_VERSIONS: Final = (b"1.0", b"1.1")

_PIECE: Final = protocol.HTTP_HEAD_BYTES // 4
"""Bytes that are parsed at once, and so the most by which a head can exceed its limit."""

_QUERY_FIELDS: Final = 16
"""Maximum number of fields of a query: more than any page here reads."""

_CONTINUE: Final = h11.InformationalResponse(status_code=HTTPStatus.CONTINUE, headers=[])


class Conversation:
    """HTTP connection of a client; answers its requests one after the other.

    Args:
        name: Name of the connection, for people.
        own_origin: The web origin of pages of the listener itself.
    """

    def __init__(self, name: str, link: Link, site: Site, own_origin: str) -> None:
        self.name = name
        self._link = link
        self._site = site
        self._own_origin = own_origin
        self._host = link.host  # a closed link has no host any more
        self._protocol = h11.Connection(
            h11.SERVER, max_incomplete_event_size=protocol.HTTP_HEAD_BYTES
        )
        self._unread = b""
        self._left = protocol.HTTP_REQUESTS

    async def talk(self) -> None:
        """Answer requests until the client or the server closes; an error ends the connection."""
        try:
            while await self._answer_next():
                self._protocol.start_next_cycle()
            # Close in order: a reset would destroy the answers that the peer has not read yet.
            await self._link.aclose()
        except (LinkError, h11.LocalProtocolError):
            _log.debug("http connection lost", actor=self.name)

    async def _answer_next(self) -> bool:
        """Answer one request; return False if the connection is over."""
        visit: Visit | Page | None = None
        with trio.move_on_after(protocol.HTTP_REQUEST_TIMEOUT) as patience:
            try:
                visit = await self._next_visit()
            except h11.RemoteProtocolError as exc:
                await self._refuse(exc.error_status_hint)
                return False
        if patience.cancelled_caught or visit is None:
            return False
        self._left -= 1
        answer = visit if isinstance(visit, Page) else await self._site.answer(visit)
        if isinstance(answer, Feed):
            return await self._stream(answer)
        is_head = isinstance(visit, Visit) and visit.method == "HEAD"
        with trio.move_on_after(protocol.HTTP_REQUEST_TIMEOUT):
            await self._write(answer, b"" if is_head else answer.body)
            return self._may_go_on()
        return False

    def _may_go_on(self) -> bool:
        is_over = self._protocol.our_state is h11.DONE and self._protocol.their_state is h11.DONE
        return is_over and self._left > 0

    # ---- reading

    async def _next_visit(self) -> Visit | Page | None:
        """Read a request with its body; return a page if it is refused, None at the end."""
        request = await self._next_event()
        if not isinstance(request, h11.Request):
            return None
        if request.http_version not in _VERSIONS:
            self._left = 0
            return json_page(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, {"error": "HTTP/1.1 is served"})
        if _has_unclear_body(request):
            # A proxy may have read another length, and missed a second request in the body.
            self._left = 0
            return _UNCLEAR
        visit = _visit(request, self._host, self._own_origin)
        limit = self._site.body_limit(visit)
        if not limit:
            while isinstance(self._protocol.next_event(), h11.Data):
                pass
            return visit
        body = await self._body(limit)
        if body is None:
            return self._site.too_large(visit)
        return attrs.evolve(visit, body=body)

    async def _body(self, limit: int) -> bytes | None:
        """Read a body; None: the body is over the limit."""
        parts = bytearray()
        while isinstance(event := await self._next_event(), h11.Data):
            parts += event.data
            if len(parts) > limit:
                return None
        return bytes(parts)

    async def _next_event(self) -> h11.Event | None:
        """Return the next event; None: the request is over."""
        while (event := self._protocol.next_event()) is h11.NEED_DATA:
            if self._protocol.they_are_waiting_for_100_continue:
                await self._link.send(self._protocol.send(_CONTINUE) or b"")
            self._protocol.receive_data(await self._piece())
        return event if isinstance(event, h11.Event) else None

    async def _piece(self) -> bytes:
        """Return some of the next bytes; empty: the peer has closed its end."""
        if not self._unread:
            try:
                self._unread = await self._link.receive()
            except LinkBrokenError as exc:
                if exc.close_reason is None:
                    raise
                return b""
        piece, self._unread = self._unread[:_PIECE], self._unread[_PIECE:]
        return piece

    # ---- writing

    async def _refuse(self, status: int) -> None:
        """Answer bytes that are no HTTP request, if an answer is still possible."""
        if self._protocol.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self._left = 0
            page = json_page(HTTPStatus(status), {"error": "this is no HTTP request"})
            await self._write(page, page.body)

    async def _write(self, page: Page, body: bytes) -> None:
        length = (("content-length", str(len(page.body))),)
        # An answer 304 must not state another length (RFC 9110, 8.6).
        lengths = () if page.status is HTTPStatus.NOT_MODIFIED else length
        events = (self._head(page, *lengths), h11.Data(data=body), h11.EndOfMessage())
        await self._send(*events)

    async def _stream(self, feed: Feed) -> bool:
        """Write the parts of an answer as they come; stop if the peer does not read them."""
        try:
            is_read = await self._is_read(self._head(feed))
            while is_read and (part := await feed.source.next()):
                is_read = await self._is_read(h11.Data(data=part))
            return is_read and await self._is_read(h11.EndOfMessage()) and self._may_go_on()
        finally:
            feed.source.close()

    async def _is_read(self, event: h11.Event) -> bool:
        """Send a part of an answer; return False if the peer does not read in time."""
        with trio.move_on_after(protocol.HTTP_REQUEST_TIMEOUT) as patience:
            await self._send(event)
        return not patience.cancelled_caught

    def _head(self, answer: Page | Feed, *extra: tuple[str, str]) -> h11.Response:
        headers = [
            ("date", formatdate(usegmt=True)),
            ("content-type", answer.content_type),
            *extra,
            *(each for each in _ALWAYS if each[0] not in dict(answer.headers)),
            *answer.headers,
        ]
        if self._left <= 0 or self._protocol.their_state is not h11.DONE:
            headers.append(_CLOSE)
        return h11.Response(
            status_code=answer.status, reason=answer.status.phrase.encode(), headers=headers
        )

    async def _send(self, *events: h11.Event) -> None:
        data = b"".join([self._protocol.send(event) or b"" for event in events])
        frames = range(0, len(data), protocol.MAX_FRAME_BYTES)
        await self._link.send_many([data[at : at + protocol.MAX_FRAME_BYTES] for at in frames])


def _visit(request: h11.Request, host: str, own_origin: str) -> Visit:
    authority, target = split_target(request.target.decode("latin-1"))
    path, _, query = target.partition("?")
    headers = tuple(
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers
    )
    if authority is not None:
        headers = (*(header for header in headers if header[0] != "host"), ("host", authority))
    fields = parse_qsl(query, keep_blank_values=True)[:_QUERY_FIELDS]
    return Visit(
        request.method.decode("latin-1"),
        path,
        headers,
        MappingProxyType(dict(fields)),
        host=host,
        own_origin=own_origin,
        version=request.http_version.decode("latin-1"),
    )


_UNCLEAR: Final = json_page(
    HTTPStatus.BAD_REQUEST, {"error": "the length of the body is not clear"}
)


def _has_unclear_body(request: h11.Request) -> bool:
    """Return whether the length of a body can be read in more than one way (RFC 9112, 6.1)."""
    names = {name for name, _ in request.headers}
    is_old = request.http_version != b"1.1"
    return b"transfer-encoding" in names and (is_old or b"content-length" in names)


class HttpListener(Actor[Never]):
    """Actor that accepts HTTP connections and limits their number per client host.

    A task serves each connection; its crash affects no other connection.

    Args:
        shares: Limits of simultaneous connections, in total and per host.
        is_encrypted: Whether connections are encrypted.
    """

    def __init__(
        self,
        listener: Listener,
        site: Site,
        monitor: Monitor,
        shares: HostShares,
        *,
        is_encrypted: bool,
    ) -> None:
        self._listener = listener
        self._monitor = monitor
        self._site = site
        self._shares = shares
        host, port = read_host_port(listener.address)
        self._own_origin = own_origin(host, port, is_encrypted=is_encrypted)
        self._numbers = itertools.count(1)

    @override
    async def start(self) -> None:
        self.spawn(self._accept)

    @override
    async def handle(self, message: Never) -> None:
        """Do nothing: this actor gets no messages."""

    async def _accept(self) -> None:
        with suppress(LinkClosedError):
            while True:
                link = await self._listener.accept()
                if self._shares.enter(link.host):
                    self.spawn(self._converse, link, link.host)
                else:
                    await trio.aclose_forcefully(link)

    async def _converse(self, link: Link, host: str) -> None:
        name = f"http:{next(self._numbers)}"
        with Crash(partial(self._record_crash, name)):
            try:
                await Conversation(name, link, self._site, self._own_origin).talk()
            finally:
                self._shares.leave(host)
                await trio.aclose_forcefully(link)

    def _record_crash(self, name: str, error: Exception) -> None:
        self._monitor.record_crash(name, error)
        _log.error("actor crashed", actor=name, exc_info=error)


_NO_SERVICES: Final[Mapping[str, HttpService]] = MappingProxyType({})
_NO_PAGES: Final[Mapping[str, Source]] = MappingProxyType({})


def site_of(
    config: HttpConfig,
    counters: Counters,
    ready: ReadyPage,
    services: Mapping[str, HttpService] = _NO_SERVICES,
    keys: JsonObject | None = None,
    *,
    shown: Container[Measured] | None = None,
    more: Mapping[str, Source] = _NO_PAGES,
    catalogue: CatalogueSource | None = None,
) -> Site:
    """Make the set of all pages and services that a process serves over HTTP.

    Args:
        config: The configuration.
        counters: Counters of the process.
        ready: Page of its readiness.
        services: Further services, by path.
        keys: Public keys of the domain, as a JSON Web Key Set; None: none are published.
        shown: The metrics to show, beside gauges; None: all.
        more: Further pages for everybody, by path.
        catalogue: Source of the served catalogue; None: its directory.
    """
    own_keys = {} if keys is None else {STATEMENT_KEYS: keys_page(keys)}
    folders: dict[str, Folder] = {WEB: WebFiles().answer}
    if config.catalogue is not None:
        source = catalogue or DirectorySource(config.catalogue.directory)
        folders[ROOT] = WellKnown(config.catalogue.domain, source).answer
    return Site(
        public={"/healthz": health, "/readyz": ready, **own_keys, **more},
        guarded={"/metrics": MetricsPage(counters, shown)},
        gate=Gate(config.token),
        services=services,
        folders=folders,
    )


def check_readers(config: HttpConfig, place: str) -> None:
    """Refuse a configuration that lets other machines read the metrics without a token.

    Args:
        config: The configuration.
        place: Address of the listener, `host:port`.

    Raises:
        OpenMetricsError: Other machines reach the address, and no token is required.
    """
    if config.token is None and not is_this_machine(read_host_port(place)[0]):
        raise OpenMetricsError(place)


@asynccontextmanager
async def open_http(
    network: Network, config: HttpConfig, site: Site, monitor: Monitor
) -> AsyncIterator[str]:
    """Serve a site while the context is open; yield its URL.

    Args:
        network: Network that opens links.
        config: The configuration.
        site: The served paths.
        monitor: Monitor of the process.

    Raises:
        HttpPlaceError: The address to listen at is in use or not allowed.
        OpenMetricsError: Any client that reaches the address could read the metrics.
    """
    async with _listening(network, config) as listener:
        check_readers(config, listener.address)
        limits = (
            (REST_CONNECTIONS, REST_PER_HOST)
            if config.rest
            else (protocol.HTTP_CONNECTIONS, protocol.HTTP_PER_HOST)
        )
        shares = HostShares(*limits)
        async with open_supervisor("http", monitor=monitor) as supervisor:
            make = partial(
                HttpListener, listener, site, monitor, shares, is_encrypted=config.tls is not None
            )
            await supervisor.start_child(ChildSpec("http-door", make))
            yield f"{'http' if config.tls is None else 'https'}://{listener.address}"


@asynccontextmanager
async def _listening(network: Network, config: HttpConfig) -> AsyncIterator[Listener]:
    async with AsyncExitStack() as stack:
        try:
            listener = await stack.enter_async_context(
                network.listen(Kind.STREAM, config.listen, gate=Everybody(config.tls))
            )
        except ListenError as exc:
            raise HttpPlaceError(exc.where, exc.reason) from exc
        yield listener
