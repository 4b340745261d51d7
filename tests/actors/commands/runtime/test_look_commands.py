"""`python -m actors top` and `bench`: what a running node does, and how fast it is."""

import signal
from functools import partial

import orjson
import pytest
import trio

from actors.cli.group import ExitCode
from tests.support.command import call, serving, typed
from transports.sockets import open_background

NODE = ("node", "--domain", "a.example", "--allow-legacy")
HTTP = ("--http", "127.0.0.1:0")
TOKEN = "a-token-of-sixteen-characters-or-more"  # noqa: S105 - a token of tests


def place(node):
    return ("--domain", "a.example", "--node", node.url)


async def test_a_node_is_measured_and_watched_meanwhile():
    async with serving(*NODE, *HTTP) as node:
        http = str(node.ready["http_url"])
        async with serving("top", http, "--json") as top:
            assert top.ready["runtimes"] == 0
            options = ("--requests", "200", "--at-once", "8", "--json")
            ended = await call("bench", *place(node), *options)
            assert (ended.status, ended.err) == (ExitCode.OK, [])
            rows = [orjson.loads(line) for line in ended.out]
            assert [(row["requests"], row["at_once"]) for row in rows] == [(200, 1), (200, 8)]
            for row in rows:
                assert 0 < row["p50_ms"] <= row["p90_ms"] <= row["p99_ms"] <= row["max_ms"]
                assert row["per_second"] > 0
            assert (await top.line())["schema"] == "protofly.top/1"
            assert await top.stop() == ExitCode.OK
        later = await call("top", http, "--once", "--json")
        (report,) = map(orjson.loads, later.out)
        assert report["domain"] == "a.example"
        assert report["total"]["received"] > 800  # two measurements, there and back
        assert report["sessions"]["open"] == report["runtimes"] == 0


async def test_people_get_tables():
    async with serving(*NODE, *HTTP) as node:
        echo = ("--hyperty", "echo=actors.hyperties:Echo", "--p2p", "none", "--name", "ra")
        async with serving("runtime", *place(node), *echo):
            watched = await call("top", str(node.ready["http_url"]), "--once")
        assert watched.out[0].split()[0] == "a.example"
        assert "runtimes 1" in watched.out[0]
        assert watched.out[1].startswith("sessions  open 1")
        assert [line.split()[0] for line in watched.out[4:9]] == [
            "messages", "received", "sent", "refused", "dropped",
        ]  # fmt: skip
        measured = await call("bench", *place(node), "--requests", "10", "--bytes", "0")
        head, *rows = measured.out
        assert head.split()[:2] == ["REQUESTS", "BYTES"]
        assert [row.split()[:3] for row in rows] == [["10", "0", "1"], ["10", "0", "10"]]


async def test_a_node_with_a_token_is_watched_with_its_file(tmp_path):
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    token = ("--http-token-file", str(file))
    async with serving(*NODE, *HTTP, *token) as node:
        http = str(node.ready["http_url"])
        refused = await call("top", http, "--once")
        assert (refused.status, refused.out) == (ExitCode.REFUSED, [])
        (why,) = refused.err
        assert "--http-token-file" in why
        assert (await call("top", http, "--once", *token)).status == ExitCode.OK
        links = node.url.replace("ws:", "http:").removesuffix("/link")
        wrong = await call("top", links, "--once")
        assert (wrong.status, len(wrong.err)) == (ExitCode.FAILED, 1)


AT = b'event: state\ndata: {"domain": "a.ex", "figures": {}, "total": 0, "slow": [], "at": %s}\n\n'


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"event: state\ndata: [1]\n\n", "no dashboard"),
        (b"event: state\ndata: null\n\n", "no dashboard"),
        (b":\n\n", "no dashboard"),
        (AT % b"1e300", "no dashboard"),
        (AT % b"-1e17", "no dashboard"),
        (AT % b"NaN", "no dashboard"),
    ],
)
async def test_what_a_wrong_server_says_is_no_dashboard(said, why):
    async def serve(stream):
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + said)
        await stream.receive_some()

    async with open_background() as nursery:
        serving_it = partial(trio.serve_tcp, serve, 0, host="127.0.0.1")
        (listener,) = await nursery.start(serving_it)
        port = listener.socket.getsockname()[1]
        ended = await call("top", f"http://127.0.0.1:{port}", "--once")
    assert (ended.status, ended.out) == (ExitCode.FAILED, [])
    assert why in ended.err[-1]
    assert len(ended.err) == 1


async def test_top_ends_when_its_node_does():
    async with (
        serving(*NODE, *HTTP) as node,
        serving("top", str(node.ready["http_url"]), "--json") as top,
    ):
        assert await node.stop() == ExitCode.OK
        assert await top.process.ended() == ExitCode.CANNOT_CONNECT


async def test_ctrl_c_ends_a_measurement_and_its_sessions():
    async with serving(*NODE, *HTTP) as node:
        options = ("--requests", "1500", "--at-once", "1", "--json")
        async with serving("bench", *place(node), *options) as bench:
            assert bench.ready["at_once"] == 1  # the second measurement runs
            assert await bench.stop(signal.SIGINT) == ExitCode.INTERRUPTED
        later = await call("top", str(node.ready["http_url"]), "--once", "--json")
        assert orjson.loads(later.out[0])["sessions"] == {"open": 0, "detached": 0}


@pytest.mark.parametrize(
    ("words", "status", "why"),
    [
        (("top", "nowhere"), ExitCode.USAGE, "'nowhere' names no HTTP server"),
        (("top", "http://127.0.0.1:1", "--interval", "0"), ExitCode.USAGE, "from 1 to 3600"),
        (("top", "http://b.example"), ExitCode.USAGE, "--insecure"),
        (("top", "http://127.0.0.1:1"), ExitCode.CANNOT_CONNECT, "http_url"),
        (("bench", "--requests", "0"), ExitCode.USAGE, "'0' is no whole number from 1 to 1000000"),
        (("bench", "--at-once", "many"), ExitCode.USAGE, "'many' is no whole number from 1 to 256"),
        (("bench", "--bytes", "9999999"), ExitCode.USAGE, "'9999999' is no whole number from 0 to"),
        (("bench",), ExitCode.CANNOT_CONNECT, "start a node there"),
    ],
)
def test_the_reason_of_a_failure_is_one_sentence(words, status, why):
    node = ("--domain", "a.example", "--node", "ws://127.0.0.1:1/link")
    command, *rest = words
    ended = typed(command, *(node if command == "bench" else ()), *rest)
    assert (ended.status, ended.out) == (status, [])
    assert why in ended.err[-1]
