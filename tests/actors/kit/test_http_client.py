"""The HTTP client, over real sockets: what is bounded, what is refused, what is left behind."""

import orjson
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.kit.http_client import HttpClient, HttpError, HttpUrlError, ServerUrl, path_of
from specs.limits.node import BACKEND_CONNECTIONS
from tests.support.node.http_server import HangupError, Said, open_http_server


@pytest.fixture
async def asked():
    """Return a function that asks a server, whose client is closed in the end."""
    clients = []

    def make(server, limit=1000):
        client = HttpClient(ServerUrl.read(server.url), limit)
        clients.append(client)
        return client

    yield make
    for client in clients:
        await client.aclose()


async def echo(call):
    return Said(200, [call.method, list(call.segments), call.query, call.body])


async def test_a_request_arrives_as_it_was_made(asked):
    async with open_http_server(echo) as server:
        path = path_of("a b", "user://x/y?z", query={"q": "1,2 &"})
        answer = await asked(server).ask("PUT", path, {"k": "ü"})
    assert answer.json() == ["PUT", ["a b", "user://x/y?z"], {"q": "1,2 &"}, {"k": "ü"}]


async def test_a_connection_is_used_again(asked):
    async with open_http_server(echo) as server:
        client = asked(server)
        for _ in range(3):
            await client.ask("GET", "/")
    assert server.connections == 1


async def test_a_status_is_no_error(asked):
    async def missing(_):
        return Said(404, {"message": "no"})

    async with open_http_server(missing) as server:
        answer = await asked(server).ask("GET", "/")
    assert answer.status == 404


async def test_an_answer_over_the_limit_is_refused(asked):
    async def large(_):
        return Said(200, raw=b"x" * 1_000_000)

    async with open_http_server(large) as server:
        with pytest.raises(HttpError, match="larger than 1000 bytes"):
            await asked(server).ask("GET", "/")


async def test_a_redirect_is_not_followed(asked):
    async def elsewhere(_):
        return Said(302, headers=(("location", "http://169.254.169.254/"),))

    async with open_http_server(elsewhere) as server:
        with pytest.raises(HttpError, match="redirect"):
            await asked(server).ask("GET", "/")
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    "url",
    ["http://169.254.169.254/x", "http://[::1]:1/x", "http://127.0.0.1:1/", "https://127.0.0.1/"],
)
async def test_nothing_but_the_configured_server_is_ever_dialled(asked, url):
    async with open_http_server(echo) as server:
        client = asked(server)
        with pytest.raises(Exception, match="is not the server that was configured"):
            await client._pool.request("GET", url)


async def test_a_missing_server_is_an_error():
    async with open_http_server(echo) as server:
        url = server.url
    client = HttpClient(ServerUrl.read(url))
    with pytest.raises(HttpError, match="cannot be asked"):
        await client.ask("GET", "/")
    await client.aclose()


async def test_a_hang_up_is_an_error_and_the_next_request_works(asked):
    async def once(call):
        if len(server.calls) == 1:
            raise HangupError
        return Said()

    async with open_http_server(once) as server:
        client = asked(server)
        with pytest.raises(HttpError):
            await client.ask("GET", "/")
        assert (await client.ask("GET", "/")).status == 200


async def test_an_invalid_json_answer_is_an_error(asked):
    async def garbage(_):
        return Said(200, raw=b"<html>")

    async with open_http_server(garbage) as server:
        answer = await asked(server).ask("GET", "/")
    with pytest.raises(HttpError, match="no JSON"):
        answer.json()


async def test_a_cancelled_request_leaves_a_client_that_works(asked):
    async def slow_first(call):
        if len(server.calls) == 1:
            await trio.sleep_forever()
        return Said(200, "there")

    async with open_http_server(slow_first) as server:
        client = asked(server)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.ask, "GET", "/")
            await server.until(lambda: server.busy)
            nursery.cancel_scope.cancel()
        assert orjson.loads((await client.ask("GET", "/")).body) == "there"


async def test_no_more_requests_run_than_there_may_be_connections(asked):
    full = trio.Event()

    async def answered_when_full(_):
        if server.busy == BACKEND_CONNECTIONS:
            await wait_all_tasks_blocked(0.05)  # a request too many would come meanwhile
            full.set()
        await full.wait()
        return Said()

    async with open_http_server(answered_when_full) as server, trio.open_nursery() as nursery:
        client = asked(server)
        for _ in range(3 * BACKEND_CONNECTIONS):
            nursery.start_soon(client.ask, "GET", "/")
    assert server.most_busy == BACKEND_CONNECTIONS


@pytest.mark.parametrize(
    "text",
    ["", "registry", "ftp://x", "http://", "http://x:y", "http://a@b", "http://x/?q", "http://[x"],
)
def test_an_url_without_a_server_is_refused(text):
    with pytest.raises(HttpUrlError, match="names no HTTP server"):
        ServerUrl.read(text)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("http://x", "http://x:80"),
        ("https://x/base/", "https://x:443/base"),
        ("http://[::1]:8/", "http://[::1]:8"),
    ],
)
def test_an_url_with_a_server_is_read(text, reported):
    assert ServerUrl.read(text).text == reported
