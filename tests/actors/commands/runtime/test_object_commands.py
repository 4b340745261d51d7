"""`python -m actors report`, `observe` and `send`: data objects and events from a shell."""

import os
import re
from contextlib import contextmanager

import orjson
import pytest

from actors.cli.group import ExitCode
from tests.support.command import call, serving, typed

NODE = ("node", "--domain", "a.example", "--allow-legacy")
COUNTER = "counter=actors.hyperties:Counter"


def place(node):
    return ("--domain", "a.example", "--node", node.url)


def write(written, *values):
    written.writelines(orjson.dumps(value) + b"\n" for value in values)


@contextmanager
def lines():
    """The standard input of a command, and its other end."""
    reading, writing = os.pipe()
    with open(reading, "rb") as given, open(writing, "wb", buffering=0) as written:  # noqa: PTH123
        yield given.fileno(), written


async def test_what_one_command_reports_another_observes():
    async with serving(*NODE) as node:
        with lines() as (stdin, written):
            report = ("report", *place(node), "kitchen", "--value", '{"degrees": 20}')
            async with serving(*report, stdin=stdin) as reporter:
                url = reporter.ready["url"]
                once = await call("observe", *place(node), url, "--once")
                (first,) = map(orjson.loads, once.out)
                assert (first["version"], first["value"]) == (1, {"degrees": 20})
                async with serving("observe", *place(node), url) as observer:
                    assert observer.ready["value"] == {"degrees": 20}
                    write(written, {"degrees": 24, "room.name": "hall"})
                write(written, [1])
                assert await reporter.process.ended() == ExitCode.USAGE
        gone = await call("observe", *place(node), url)
        assert (gone.status, gone.out) == (ExitCode.FAILED, [])
        (why,) = gone.err
        assert "404" in why


async def test_changes_are_lines_until_the_object_is_deleted():
    async with serving(*NODE) as node:
        with lines() as (stdin, written):
            report = ("report", *place(node), "kitchen", "--value", '{"degrees": 20}')
            async with (
                serving(*report, stdin=stdin) as reporter,
                serving("observe", *place(node), reporter.ready["url"]) as observer,
            ):
                write(written, *[{"degrees": degrees} for degrees in range(21, 60)])
                changes = [await observer.line() for _ in range(21, 60)]
                assert [change["schema"] for change in changes] == ["protofly.update/1"] * 39
                assert [change["new"] for change in changes] == [*range(21, 60)]
                assert [change["version"] for change in changes] == [*range(2, 41)]
                assert await reporter.stop() == ExitCode.OK
                assert (await observer.line())["schema"] == "protofly.end/1"
                assert await observer.line() is None
                assert await observer.process.ended() == ExitCode.OK


async def test_events_are_sent_as_an_argument_or_as_lines():
    async with (
        serving(*NODE) as node,
        serving(
            "runtime", *place(node), "--name", "ra", "--p2p", "none", "--hyperty", COUNTER
        ) as runtime,
    ):
        url = runtime.ready["hyperties"]["counter"]
        sent = await call("send", *place(node), url, '{"number": 1}')
        assert (sent.status, orjson.loads(sent.out[0])["events"]) == (ExitCode.OK, 1)
        with lines() as (stdin, written):
            write(written, {"number": 2}, {"number": 3})
            written.close()
            sent = await call("send", *place(node), url, stdin=stdin)
        assert (sent.status, orjson.loads(sent.out[0])["events"]) == (ExitCode.OK, 2)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("observe", "nowhere"), "'nowhere' is no address"),
        (("report", "x", "--value", "3"), "'3' is no JSON object"),
        (("send", "hyperty://a.example/1", "{"), "'{' is no JSON"),
        (("completion", "tcsh"), "'tcsh' is not one of"),
    ],
)
def test_wrong_words_are_refused_in_a_sentence(words, why):
    command, *rest = words
    more = (
        () if command == "completion" else ("--domain", "a.example", "--node", "ws://127.0.0.1:1")
    )
    ended = typed(command, *more, *rest)
    assert (ended.status, ended.out) == (ExitCode.USAGE, [])
    assert why in ended.err[-1]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options(shell):
    script = typed("completion", shell)
    assert script.status == ExitCode.OK
    assert f"_PROTOFLY_COMPLETE={shell}_complete" in "\n".join(script.out)
    env = {
        "_PROTOFLY_COMPLETE": "bash_complete",
        "COMP_WORDS": "protofly observe --onc",
        "COMP_CWORD": "2",
    }
    assert typed(env=env).out == ["plain,--once"]


def test_one_page_explains_all_commands():
    page = "\n".join(typed("--help-all").out)
    usages = re.findall(r"^Usage: (protofly.*?) \[OPTIONS\]", page, re.MULTILINE)
    assert {"protofly", "protofly observe", "protofly stub sign", "protofly fsm draw"} <= {*usages}
    assert len(usages) == len(set(usages)) > 30


@pytest.mark.parametrize("words", [("-h",), ("node", "-h"), ("stub", "sign", "-h")])
def test_each_command_explains_itself(words):
    ended = typed(*words)
    assert (ended.status, ended.err) == (ExitCode.OK, [])
    assert ended.out[0].startswith("Usage: protofly")
