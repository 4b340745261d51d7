"""HTTP over real connections: what is no request, who dawdles, and how many come."""

from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
import trio

from actors.http.config import HttpConfig, OpenMetricsError
from actors.http.metrics import Part, Readiness, ReadyPage
from actors.http.service import open_http, site_of
from actors.kit.counters import Counters
from actors.kit.supervision.supervisor import Monitor
from specs.limits.protocol import HTTP_HEAD_BYTES, HTTP_PER_HOST
from tests.support.node.web import get
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


async def test_a_body_is_not_waited_for():
    raw = b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\nx"
    async with served() as url:
        answer = await said(url, raw)
    assert answer.startswith(b"HTTP/1.1 405 ")
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize("where", ["0.0.0.0:0", "[::]:0"])
async def test_public_metrics_need_a_token(where):
    with pytest.raises(OpenMetricsError, match="can be read from other machines"):
        async with served(HttpConfig(where)):
            pass
    async with served(HttpConfig(where, b"a-token-of-16-ch")) as url:
        assert (await get(f"{url}/metrics")).status == 401


async def test_the_token_is_not_in_what_a_config_shows():
    assert "canary" not in repr(HttpConfig("127.0.0.1:0", b"canary-of-16-char"))
