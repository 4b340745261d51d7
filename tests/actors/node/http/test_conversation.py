"""HTTP over real connections: what is no request, who dawdles, and how many come."""

import socket
from contextlib import asynccontextmanager
from http import HTTPStatus
from urllib.parse import urlsplit

import h11
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors.http.config import HttpConfig, HttpPlaceError, OpenMetricsError
from actors.http.metrics import Part, Readiness, ReadyPage
from actors.http.service import open_http, site_of
from actors.http.site import Feed, HttpService, Parts
from actors.kit.counters import Counters
from actors.kit.supervision.supervisor import Monitor
from specs.limits.protocol import (
    HTTP_CONNECTIONS,
    HTTP_HEAD_BYTES,
    HTTP_PER_HOST,
    HTTP_REQUEST_TIMEOUT,
    HTTP_REQUESTS,
)
from tests.support.chance import examples
from tests.support.node.web import exchange, get
from transports.link import Kind
from transports.memory import FRAMES_IN_FLIGHT, MemoryNetwork
from transports.system import open_system_network

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@asynccontextmanager
async def served(config=None, **more):
    config = HttpConfig("127.0.0.1:0") if config is None else config
    standing = Readiness()
    standing.ready(Part.NODE)
    monitor = Monitor()
    site = site_of(config, Counters(), ReadyPage(standing, {}), **more)
    async with open_system_network() as network, open_http(network, config, site, monitor) as url:
        yield url


async def connect(url, host=None):
    place = urlsplit(url)
    return await trio.open_tcp_stream(place.hostname, place.port, local_address=host)


async def said(url, raw):
    """Send bytes and return all that is answered until the end."""
    async with await connect(url) as stream:
        await stream.send_all(raw)
        return b"".join([piece async for piece in stream])


async def test_every_answer_is_marked_uncacheable_with_its_own_type():
    async with served() as url:
        for path in ("/healthz", "/readyz", "/metrics", "/nothing"):
            answer = await get(url + path)
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert int(answer.headers["content-length"]) == len(answer.body) > 0


async def test_a_proxy_that_shows_only_its_version_reads_no_metrics():
    async with served() as url:
        for path, status in (("/metrics", b"403"), ("/healthz", b"200")):
            raw = b"GET %b HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
            assert (await said(url, raw % path.encode())).split()[1] == status


async def test_a_page_that_fails_ends_its_own_connection_only(caplog):
    async def fail():
        raise RuntimeError("not my day")

    async with served(more={"/broken": fail}) as url, await connect(url) as other:
        for _ in range(HTTP_PER_HOST):
            raw = b"GET /broken HTTP/1.1\r\nHost: localhost\r\n\r\n"
            assert await said(url, raw) == b""
        await other.send_all(GET)
        assert (await other.receive_some()).startswith(b"HTTP/1.1 200")
    crashes = [one for one in caplog.records if one.getMessage().startswith("actor crashed")]
    assert len(crashes) == HTTP_PER_HOST
    assert crashes[0].exc_info[1].args == ("not my day",)


async def test_a_head_has_no_body():
    async with served() as url:
        answer = await get(f"{url}/metrics", "HEAD")
    assert (answer.status, answer.body) == (200, b"")
    assert int(answer.headers["content-length"]) > 0


async def test_a_query_is_not_looked_at():
    async with served() as url:
        assert b" 200 OK" in await said(
            url, b"GET /healthz?a=%00 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        )


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        (b"http://localhost/healthz", b"a", 200),
        (b"http://localhost:9440/healthz?a=1", b"a", 200),
        (b"http://localhost/nothing", b"a", 404),
        (b"http://localhost", b"a", 404),
        (b"http://127.0.0.1/metrics", b"evil.example", 200),
        (b"http://evil.example/metrics", b"localhost", 403),
    ],
)
async def test_a_target_may_be_absolute_and_its_authority_counts(target, host, status):
    """RFC 9112, 3.2.2."""
    raw = b"GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (target, host)
    async with served() as url:
        assert (await said(url, raw)).startswith(b"HTTP/1.1 %d " % status)


async def test_one_connection_carries_many_requests_but_not_for_ever():
    async with served() as url, await connect(url) as stream:
        http = h11.Connection(h11.CLIENT)
        request = h11.Request(method="GET", target="/healthz", headers=[("host", "localhost")])
        for left in reversed(range(HTTP_REQUESTS)):
            answer = await exchange(stream, http, request)
            assert ("connection" in answer.headers) is (left == 0)
            if left:
                http.start_next_cycle()
        assert await stream.receive_some(1) == b""


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET  /healthz  HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 2 * HTTP_HEAD_BYTES + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ],
)
async def test_an_invalid_request_is_answered_and_disconnected(raw, status):
    async with served() as url:
        assert (await said(url, raw)).startswith(b"HTTP/1.1 %d " % status)


SMUGGLED = b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"POST /healthz HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        b"GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n",
    ],
)
async def test_a_body_whose_length_is_not_clear_ends_the_connection(head):
    """RFC 9112, 6.1: what a proxy takes for a part of the body must be no request here."""
    async with served() as url:
        with trio.fail_after(60):
            answer = await said(url, head + b"Host: localhost\r\n\r\n" + SMUGGLED)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"localhost", b"200"),
        (b"[::1]:80", b"200"),
        (b"127.0.0.1:1", b"200"),
        (b"[::1].evil", b"403"),
        (b"[::1]evil:80", b"403"),
        (b"[127.0.0.1].evil", b"403"),
        (b"[::1%evil]", b"403"),
        (b"127.0.0.1:80:80", b"403"),
        (b"127.0.0.1:80.evil", b"403"),
        (b"localhost.evil", b"403"),
        (b"[::1", b"403"),
    ],
)
async def test_metrics_are_read_by_a_name_of_this_machine_only(host, status):
    raw = b"GET /metrics HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n" % host
    async with served() as url:
        assert (await said(url, raw)).split()[1] == status


async def test_a_body_is_not_waited_for():
    raw = b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\nx"
    async with served() as url:
        answer = await said(url, raw)
    assert answer.startswith(b"HTTP/1.1 405 ")
    assert b"connection: close" in answer.lower()


async def test_no_websocket_and_no_http2_is_begun():
    raw = GET.replace(b"\r\n\r\n", b"\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n")
    async with served() as url:
        assert (await said(url, raw)).startswith(b"HTTP/1.1 200 ")


async def test_a_slow_client_is_disconnected(hasty_clock):
    async with served() as url, await connect(url) as stream:
        began = trio.current_time()
        await stream.send_all(GET[:20])
        assert await stream.receive_some(1) == b""
        assert trio.current_time() - began <= HTTP_REQUEST_TIMEOUT + 2


async def test_more_connections_than_allowed_are_hung_up_and_others_live(hasty_clock):
    async with served() as url, trio.open_nursery() as nursery:
        hosts = [f"127.0.0.{1 + n % 8}" for n in range(HTTP_CONNECTIONS)]
        streams = [await connect(url, host) for host in hosts]
        assert b" 200 " in await _answer(streams[-1])
        async with await connect(url, "127.0.0.9") as one_more:
            assert await _end(one_more)
        for stream in streams[1:]:
            await stream.aclose()
        assert b" 200 " in await _answer(streams[0])
        await streams[0].aclose()
        nursery.cancel_scope.cancel()


async def test_one_host_has_no_more_than_its_share_and_others_are_served(hasty_clock):
    """L6: who opens connections and says nothing keeps nobody else out."""
    async with served() as url:
        silent = [await connect(url) for _ in range(HTTP_PER_HOST)]
        async with await connect(url) as one_more:
            assert await _end(one_more)
        async with await connect(url, "127.0.0.2") as other:
            assert b" 200 " in await _answer(other)
        await silent[0].aclose()
        with trio.fail_after(HTTP_REQUEST_TIMEOUT / 2):
            while True:
                async with await connect(url) as again:
                    await again.send_all(GET)
                    if not await _end(again):
                        break
        for stream in silent:
            await stream.aclose()


async def _answer(stream):
    await stream.send_all(GET)
    return bytes(await stream.receive_some(1000))


async def _end(stream):
    try:
        return await stream.receive_some(1) == b""
    except trio.BrokenResourceError:
        return True


async def test_a_reader_that_reads_nothing_does_not_outlive_the_listener():
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    with sock:
        async with served() as url:
            place = urlsplit(url)
            sock.connect((place.hostname, place.port))
            sock.sendall(GET.replace(b"/healthz", b"/metrics") * 90)
            await get(f"{url}/healthz")


class Told(Parts):
    """Streams nothing, or one part."""

    def __init__(self, *parts):
        self.parts, self.closed = [*parts], trio.Event()

    async def next(self):
        await trio.lowlevel.checkpoint()
        return self.parts.pop() if self.parts else None

    def close(self):
        self.closed.set()


class Streaming(HttpService):
    methods, limit = ("GET",), 0

    def __init__(self, told):
        self.told = told

    def body_limit(self, visit):
        return 0

    async def answer(self, visit):
        return Feed(HTTPStatus.OK, self.told, "text/plain")

    def refusal_page(self, status, why, *headers):
        raise AssertionError(why)


WRITES = FRAMES_IN_FLIGHT // 2
"""Writes that a network in memory holds for a reader: it cuts each in two."""


@pytest.mark.parametrize("pages", range(WRITES - 2, WRITES + 1))
async def test_a_reader_of_a_stream_that_reads_nothing_is_disconnected(pages, autojump_clock):
    """Wherever the stream stops: at its head, at a part, or at its end."""
    told, network, counters = Told(b"part"), MemoryNetwork(), Counters()
    config = HttpConfig("127.0.0.1:4000")
    ready = ReadyPage(Readiness(), {})
    site = site_of(config, counters, ready, {"/stream": Streaming(told)})
    async with open_http(network, config, site, Monitor()):
        link = await network.dial(Kind.STREAM, "127.0.0.1:4000")
        for _ in range(pages):
            await link.send(GET)
        await link.send(GET.replace(b"/healthz", b"/stream"))
        with trio.fail_after(2 * HTTP_REQUEST_TIMEOUT):
            await told.closed.wait()


async def test_a_place_that_is_taken_is_reported():
    async with served() as url:
        with pytest.raises(HttpPlaceError, match="address already in use"):
            async with served(HttpConfig(urlsplit(url).netloc)):
                pass


@pytest.mark.parametrize("where", ["0.0.0.0:0", "[::]:0"])
async def test_public_metrics_need_a_token(where):
    with pytest.raises(OpenMetricsError, match="can be read from other machines"):
        async with served(HttpConfig(where)):
            pass
    async with served(HttpConfig(where, b"a-token-of-16-ch")) as url:
        assert (await get(f"{url}/metrics")).status == 401


async def test_the_token_is_not_in_what_a_config_shows():
    assert "canary" not in repr(HttpConfig("127.0.0.1:0", b"canary-of-16-char"))


@settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.binary(min_size=1, max_size=60) | st.sampled_from([GET, b"\r\n\r\n", b"GET "]),
        max_size=6,
    )
)
def test_after_any_request_the_next_one_is_served(pieces):
    async def visit():
        async with served() as url:
            async with await connect(url) as stream:
                for piece in pieces:
                    await stream.send_all(piece)
                await stream.send_eof()
            assert (await get(f"{url}/healthz")).status == 200

    trio.run(visit)
