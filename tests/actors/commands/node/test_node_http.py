"""`python -m actors node --http`: where it serves, who may read, and what it refuses to do."""

import signal
import socket
from urllib.parse import urlsplit

import pytest
import trio

from actors.cli.group import ExitCode
from tests.support.command import call, serving, typed
from tests.support.node.web import get

NODE = ("node", "--domain", "a.example")
TOKEN = "a-token-of-sixteen-characters-or-more"  # noqa: S105 - a token of tests


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return str(path)


async def test_without_the_option_nothing_is_served():
    async with serving(*NODE) as node:
        assert node.ready["http_url"] is None


async def test_the_ready_line_says_where():
    async with serving(*NODE, "--http", "127.0.0.1:0") as node:
        url = str(node.ready["http_url"])
        assert url.startswith("http://127.0.0.1:")
        assert (await get(f"{url}/readyz")).json == {"ready": True, "missing": []}


async def test_sessions_over_http_are_served_where_they_are_asked_for():
    async with serving(*NODE, "--http", "127.0.0.1:0") as node:
        assert node.ready["rest_url"] is None
        assert (await get(f"{node.ready['http_url']}/rest/session", "POST")).status == 404
    async with serving(*NODE, "--http", "127.0.0.1:0", "--rest") as node:
        assert node.ready["rest_url"] == f"{node.ready['http_url']}/rest"
        assert (await get(f"{node.ready['rest_url']}/messages")).status == 401


async def test_a_client_with_the_token_of_the_file_reads_metrics(token_file):
    """SEC-42."""
    options = ("--http", "127.0.0.1:0", "--http-token-file", token_file)
    async with serving(*NODE, *options) as node:
        page = f"{node.ready['http_url']}/metrics"
        assert (await get(page)).status == 401
        assert (await get(page, x_forwarded_for="127.0.0.1")).status == 401
        assert (await get(page, authorization=f"Bearer {TOKEN}")).status == 200


async def test_public_metrics_are_refused_in_one_sentence(token_file):
    """SEC-42."""
    ended = await call(*NODE, "--http", "0.0.0.0:0")
    assert (ended.status, ended.out, len(ended.err)) == (ExitCode.CONFIGURATION, [], 1)
    assert "--http-token-file" in ended.err[0]
    options = ("--http", "0.0.0.0:0", "--http-token-file", token_file)
    async with serving(*NODE, *options) as node:
        assert await node.stop() == ExitCode.OK


def test_a_place_that_is_taken_is_reported_in_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = typed(*NODE, "--http", where)
    assert (ended.status, len(ended.err)) == (ExitCode.FAILED, 1)
    assert where in ended.err[0]
    assert "--http" in ended.err[0]


@pytest.mark.parametrize("content", ["", "short", "two lines of a file\nthat is no token"])
def test_a_file_that_holds_no_token_is_reported_in_one_sentence(tmp_path, content):
    path = tmp_path / "token"
    path.write_text(content)
    ended = typed(*NODE, "--http", "127.0.0.1:0", "--http-token-file", str(path))
    assert (ended.status, len(ended.err)) == (ExitCode.CONFIGURATION, 1)
    assert "holds no token" in ended.err[0]
    assert not content or content not in ended.err[0]


async def test_a_registry_file_that_is_gone_makes_a_node_unready(tmp_path):
    file = tmp_path / "r.sqlite"
    async with serving(*NODE, "--http", "127.0.0.1:0", "--registry", str(file)) as node:
        page = f"{node.ready['http_url']}/readyz"
        assert (await get(page)).status == 200
        file.unlink()
        reported = await get(page)
        assert reported.status == 503
        assert reported.json["missing"] == [{"part": "registry", "why": "its file is gone"}]


async def test_a_bus_that_does_not_answer_makes_a_node_unready_but_not_dead():
    """Stopped, the process says nothing at all: that is what /healthz is for."""
    async with serving(*NODE, "--http", "127.0.0.1:0") as node:
        url = str(node.ready["http_url"])
        node.process.send_signal(signal.SIGSTOP)
        with trio.move_on_after(0.5) as patience:
            await get(f"{url}/healthz")
        assert patience.cancelled_caught
        node.process.send_signal(signal.SIGCONT)
        assert (await get(f"{url}/healthz")).status == 200


async def test_a_runtime_ends_in_time_though_its_node_says_nothing():
    echo = ("--hyperty", "echo=actors.hyperties:Echo")
    async with serving(*NODE, "--allow-legacy") as node:
        named = ("runtime", "--domain", "a.example", "--name", "ra", "--node", node.url, *echo)
        async with serving(*named) as runtime:
            node.process.send_signal(signal.SIGSTOP)
            # One that has not ended in `DRAIN_TIMEOUT` by its own clock has another status.
            with trio.fail_after(60):
                assert await runtime.stop() == ExitCode.OK


async def test_a_port_of_http_is_free_again_when_the_node_has_ended():
    async with serving(*NODE, "--http", "127.0.0.1:0") as node:
        place = urlsplit(str(node.ready["http_url"])).netloc
        assert await node.stop() == ExitCode.OK
    async with serving(*NODE, "--http", place) as again:
        assert str(again.ready["http_url"]).endswith(place)
