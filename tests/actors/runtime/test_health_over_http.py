"""Health, readiness and metrics that a runtime serves over HTTP, as a process."""

import re
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest
import trio

import actors
from actors.cli.group import ExitCode
from tests.support.command import ROOT, call, serving
from tests.support.node.web import get

NODE = ("node", "--domain", "a.example", "--allow-legacy")
PLACE = ("--http", "127.0.0.1:0")
ECHO = ("--hyperty", "echo=actors.hyperties:Echo")


def runtime(node, *more):
    named = ("runtime", "--domain", "a.example", "--name", "ra", "--node", node, "--p2p", "none")
    return (*named, *PLACE, *more)


async def missing_at(url):
    """What /readyz says is missing, by part."""
    page = await get(f"{url}/readyz")
    answer = orjson.loads(page.text)
    assert answer["ready"] == (page.status == HTTPStatus.OK) == (not answer["missing"])
    return {one["part"]: one["why"] for one in answer["missing"]}


async def test_a_runtime_is_ready_while_it_has_a_session_at_its_node():
    async with serving(*NODE) as node, serving(*runtime(node.url, *ECHO)) as echo:
        url = echo.ready["http_url"]
        assert orjson.loads((await get(f"{url}/healthz")).text) == {"status": "ok"}
        assert await missing_at(url) == {}
        node.process.kill()
        await node.process.ended()
        with trio.fail_after(20):
            while not (missing := await missing_at(url)):
                pass  # each look is a request
        assert list(missing) == ["session"]
        assert (await get(f"{url}/healthz")).status == HTTPStatus.OK


async def test_a_program_reads_where_its_runtime_shows_its_health():
    place = actors.HttpConfig("127.0.0.1:0")
    given = {"domain": "a.example", "name": "ra", "http": place}
    async with (
        actors.open_node("a.example") as node,
        actors.open_runtime(actors.RuntimeConfig(node=node.url, **given)) as runtime,
        actors.open_runtime("a.example", "rb", node=node.url) as other,
    ):
        await runtime.enter()
        assert await missing_at(runtime.http_url) == {}
        assert other.http_url is None


async def test_metrics_are_those_that_a_runtime_has():
    async with serving(*NODE) as node, serving(*runtime(node.url, *ECHO)) as echo:
        url = echo.ready["http_url"]
        to = echo.ready["hyperties"]["echo"] + "0"
        await call("request", "--domain", "a.example", "--node", node.url, to, "1")
        text = (await get(f"{url}/metrics")).text
    assert "\nprotofly_hyperties 1.0" in text
    shown = set(re.findall(r"^# HELP (\S+)", text, re.MULTILINE))
    page = (Path(ROOT) / "docs" / "operating.md").read_text()
    documented = set(re.search(r"A runtime shows (.*)\.\n", page)[1].replace("`", "").split(", "))
    assert {name for name in shown if not name.startswith("process_")} == documented


async def test_a_hyperty_that_was_given_up_is_missing_and_its_exception_is_not_shown():
    doomed = ("--hyperty", "doomed=tests.support.runtime.doomed:Doomed")
    async with serving(*NODE) as node, serving(*runtime(node.url, *doomed)) as echo:
        with trio.fail_after(20):
            while not (missing := await missing_at(echo.ready["http_url"])):
                pass  # each look is a request
    assert missing == {"hyperties": "the hyperty 'doomed' was given up"}


async def test_readers_of_metrics_show_the_token(tmp_path):
    token = tmp_path / "token"
    token.write_text("a-token-of-the-readers\n")
    options = ("--http-token-file", str(token))
    async with serving(*NODE) as node, serving(*runtime(node.url, *options)) as echo:
        url = echo.ready["http_url"]
        assert (await get(f"{url}/metrics")).status == HTTPStatus.UNAUTHORIZED
        bearer = f"Bearer {token.read_text().strip()}"
        shown = await get(f"{url}/metrics", authorization=bearer)
        assert shown.status == HTTPStatus.OK


@pytest.mark.parametrize(
    ("place", "status", "complaint"),
    [
        ("0.0.0.0:0", ExitCode.CONFIGURATION, "--http-token-file"),
        ("nowhere", ExitCode.USAGE, "no place to listen"),
        ("127.0.0.1:{}", ExitCode.FAILED, "--http"),
    ],
)
async def test_a_place_that_cannot_be_is_refused(place, status, complaint):
    async with serving(*NODE) as node:
        taken = place.format(urlsplit(node.url).port)
        ended = await call(*runtime(node.url, "--http", taken))
    assert ended.status == status
    assert complaint in " ".join(ended.err)
