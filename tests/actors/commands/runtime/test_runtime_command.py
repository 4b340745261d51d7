"""`python -m actors runtime` and `request`, as processes that talk to a real node."""

import os
import socket

import orjson
import pytest

from actors.cli.group import ExitCode
from specs.limits.protocol import DIAL_TIMEOUT
from tests.support.command import call, serving, typed

NODE = ("node", "--domain", "a.example", "--allow-legacy")
ECHO = "echo=actors.hyperties:Echo"
NEEDS_ARGUMENTS = "tests.support.runtime.apart:Named"


@pytest.fixture
def nobody():
    """The URL of a node that is not there."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    return f"ws://127.0.0.1:{port}/link"


def runtime(node, *more):
    return ("runtime", "--domain", "a.example", "--name", "ra", "--node", node, *more)


def request(node, to, value="1"):
    return ("request", "--domain", "a.example", "--node", node, to, value)


async def test_a_question_goes_through_node_and_runtime_and_back():
    async with (
        serving(*NODE) as node,
        serving(*runtime(node.url, "--hyperty", ECHO, "--p2p", "none")) as echo,
    ):
        assert echo.url == "hyperty-runtime://a.example/ra"
        ended = await call(*request(node.url, echo.ready["hyperties"]["echo"], '{"a": [1]}'))
    assert ended.status == ExitCode.OK
    answer = orjson.loads(ended.out[0])
    assert answer.pop("id") > 0
    assert (answer["schema"], answer["code"]) == ("protofly.answer/1", 200)
    assert answer["value"] == {"a": [1]}


async def test_a_runtime_ends_orderly_when_reported():
    async with serving(*NODE) as node, serving(*runtime(node.url, "--hyperty", ECHO)) as echo:
        assert await echo.stop() == ExitCode.OK


async def test_a_request_to_an_unknown_address_is_answered_404():
    async with serving(*NODE) as node:
        ended = await call(*request(node.url, "hyperty://a.example/nobody"))
    assert ended.status == ExitCode.FAILED
    assert orjson.loads(ended.out[0])["code"] == 404
    assert len(ended.err) == 1


@pytest.mark.parametrize("command", [runtime, lambda url: request(url, "hyperty://a.example/1")])
def test_a_node_that_is_not_there_is_reported(command, nobody):
    ended = typed(*command(nobody))
    assert ended.status == ExitCode.CANNOT_CONNECT
    assert len(ended.err) == 1
    assert nobody.split("/")[2] in ended.err[0]
    assert "--node" in ended.err[0]


def test_a_node_that_says_nothing_is_not_waited_for():
    """The time is the dialler's own: within 5 s, start and end of the command included."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ended = typed(*runtime(f"ws://127.0.0.1:{silent.getsockname()[1]}/link"))
    assert ended.status == ExitCode.CANNOT_CONNECT
    assert f"no answer within {DIAL_TIMEOUT:.0f} s" in ended.err[0]
    assert DIAL_TIMEOUT <= 3


@pytest.mark.parametrize("url", ["http://127.0.0.1/link", "nonsense", "ws://[/link"])
def test_an_invalid_url_of_a_node_is_a_usage_error(url):
    ended = typed(*runtime(url))
    assert ended.status == ExitCode.USAGE
    assert "cannot be dialled" in ended.err[-1]


def test_a_hyperty_that_needs_arguments_is_reported_before_anything_is_dialled():
    ended = typed(*runtime("ws://127.0.0.1:1/link", "--hyperty", f"x={NEEDS_ARGUMENTS}"))
    assert (ended.status, len(ended.err)) == (ExitCode.CONFIGURATION, 1)
    assert f"{NEEDS_ARGUMENTS} cannot be made without arguments" in ended.err[0]


async def test_several_hyperties_may_be_named_in_the_environment():
    async with serving(*NODE) as node:
        named = f"{ECHO} two=actors.hyperties:Counter"
        env = {**os.environ, "PROTOFLY_RUNTIME_HYPERTY": named}
        async with serving(*runtime(node.url, "--p2p", "none"), env=env) as both:
            assert set(both.ready["hyperties"]) == {"echo", "two"}


async def test_a_step_that_no_table_declares_is_in_the_log(capfd):
    clumsy = "clumsy=tests.support.runtime.misstep:Misstep"
    async with (
        serving(*NODE) as node,
        serving(*runtime(node.url, "--hyperty", clumsy, "--p2p", "none")) as served,
    ):
        url = served.ready["hyperties"]["clumsy"]
        await call(*request(node.url, url, '"misstep"'))
        again = await call(*request(node.url, url))
    assert again.status == ExitCode.OK
    (line,) = [one for one in capfd.readouterr().err.splitlines() if "monitor violation" in one]
    assert f"actor={url} machine=address key=comm://a.ex/o1 state=[*] trigger=release" in line
