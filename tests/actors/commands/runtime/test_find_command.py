"""`python -m actors find` and `request USER NAME`: no address is copied from a ready line."""

import os
import signal
import sys

import orjson
import pytest
import trio

from actors.cli.group import ExitCode
from tests.support.command import ROOT, call, serving, typed

NODE = ("node", "--domain", "a.example", "--allow-legacy")
ECHO = "greeter=actors.hyperties:Echo"
BOB, EVE = "user://a.example/bob", "user://a.example/eve"


def place(node):
    return ("--domain", "a.example", "--node", node.url)


def runtime(node, name, *more):
    return ("runtime", *place(node), "--name", name, "--p2p", "none", *more)


async def test_hyperties_are_found_and_asked_by_user_and_name():
    async with (
        serving(*NODE) as node,
        serving(*runtime(node, "ra", "--user", BOB, "--hyperty", ECHO)) as bob,
        serving(*runtime(node, "rb", "--user", EVE, "--hyperty", ECHO)) as eve,
    ):
        bobs, eves = (one.ready["hyperties"]["greeter"] for one in (bob, eve))

        table = await call("find", *place(node), "--name", "greeter")
        head, *rows = (line.split() for line in table.out)
        assert (table.status, table.err) == (ExitCode.OK, [])
        assert head == ["STATUS", "NAME", "USER", "RESOURCES", "SCHEMAS", "ADDRESS"]
        assert sorted(rows) == sorted(
            ["live", "greeter", user, "-", "-", url] for user, url in ((BOB, bobs), (EVE, eves))
        )

        found = await call("find", *place(node), BOB, "--json")
        (entry,) = map(orjson.loads, found.out)
        assert (entry["schema"], entry["url"]) == ("protofly.entry/1", bobs)
        assert (entry["runtime"], entry["user"], entry["name"]) == (bob.url, BOB, "greeter")

        one = await call("find", *place(node), "--address", bobs, "--attribute", "user")
        assert (one.status, one.out) == (ExitCode.OK, [f'"{BOB}"'])

        asked = await call("request", *place(node), BOB, "greeter", '{"value": 1}')
        answer = orjson.loads(asked.out[0])
        assert (answer["sender"], answer["value"]) == (bobs, {"value": 1})


async def test_a_handler_is_asked_by_its_verb_and_path_and_its_schema_is_found():
    shop = "shop=tests.actors.runtime.hyperty.typed_shop:Shop"
    async with (
        serving(*NODE) as node,
        serving(*runtime(node, "ra", "--user", BOB, "--hyperty", shop)),
    ):
        words = (*place(node), BOB, "shop", "--verb", "update", "--path", "/order", "[1]")
        asked = await call("request", *words)
        assert (asked.status, orjson.loads(asked.out[0])["code"]) == (ExitCode.OK, 200)
        found = await call("find", *place(node), BOB, "--json")
        assert orjson.loads(found.out[0])["message_schema"]["title"] == "Shop"


async def test_a_request_says_whom_it_does_not_find_or_cannot_choose():
    two = ("--hyperty", "greeter=actors.hyperties:Echo", "--user", BOB)
    async with serving(*NODE) as node, serving(*runtime(node, "rb", *two)) as second:
        async with serving(*runtime(node, "ra", *two)) as first:
            many = await call("request", *place(node), BOB, "greeter", "1")
            assert many.status == ExitCode.REFUSED
            assert many.out == []
            assert "2 hyperties 'greeter' of user://a.example/bob" in many.err[0]
            for one in (first, second):
                assert one.ready["hyperties"]["greeter"] in many.err[0]
            none = await call("request", *place(node), BOB, "clock", "1")
            assert none.status == ExitCode.FAILED
            assert "no hyperty 'clock' of user://a.example/bob" in none.err[0]
            await first.stop()
        await second.stop()
        away = await call("request", *place(node), BOB, "greeter", "1")
        assert (away.status, len(away.err)) == (ExitCode.CANNOT_CONNECT, 1)
        nothing = await call("find", *place(node), "--resource", "chat")
        assert (nothing.status, nothing.out) == (ExitCode.FAILED, [])
        assert "no entry is found" in nothing.err[0]
        elsewhere = await call("find", *place(node), BOB, "--registry", "b.example")
        assert elsewhere.status == ExitCode.FAILED
        assert "404" in elsewhere.err[-1]


async def test_what_is_found_is_followed_until_a_signal():
    async with serving(*NODE) as node:
        command = [sys.executable, "-m", "actors", "find", *place(node), "--name", "greeter"]
        async with serving(*runtime(node, "ra", "--hyperty", ECHO)) as bob:
            watching = await trio.lowlevel.open_process(
                [*command, "--watch", "--json"], stdout=-1, cwd=ROOT, env=dict(os.environ)
            )
            try:
                lines = Lines(watching.stdout)
                with trio.fail_after(60):
                    appeared = orjson.loads(await lines.next())
                    await bob.stop()
                    changed = orjson.loads(await lines.next())
                watching.send_signal(signal.SIGTERM)
                with trio.fail_after(30):
                    assert await watching.wait() == ExitCode.OK
            finally:
                watching.kill()
                await watching.wait()
                await watching.stdout.aclose()
    seen = [(one["schema"], one["change"], one["status"]) for one in (appeared, changed)]
    assert seen == [
        ("protofly.change/1", "appeared", "live"),
        ("protofly.change/1", "changed", "disconnected"),
    ]


class Lines:
    """The lines that a process prints."""

    def __init__(self, stream):
        self.stream, self.rest = stream, b""

    async def next(self):
        while b"\n" not in self.rest:
            piece = await self.stream.receive_some()
            assert piece, "it ended"
            self.rest += piece
        line, _, self.rest = self.rest.partition(b"\n")
        return line


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["find"], "a criterion is missing"),
        (["find", "--name", ""], "name is empty"),
        (["find", "--name", "x", "--attribute", "user"], "--attribute needs --address"),
        (["find", "--name", "x", "--address", "hyperty://a.example/1"], "leave out criteria"),
        (["find", "--watch", "--address", "hyperty://a.example/1"], "and --watch"),
        (["find", "hyperty://a.example/1"], "is no user"),
        (["find", "--reporter", "x"], "no address"),
        (["find", "--name", "x", "--scheme", "a/b"], "no scheme"),
        (["request", BOB, "1"], "NAME JSON"),
        (["request", BOB, "x", "1", "--verb", "response"], "is not one of 'create', 'read'"),
        (["request", "hyperty://a.example/1", "greeter", "1"], "the arguments are"),
        (["request", "hyperty://a.example/1", "1", "--registry", "b.example"], "--registry"),
        (["runtime", "--name", "ra", "--user", "bob"], "no address"),
        (["runtime", "--name", "ra", "--user", "user-guid://g"], "is no user"),
    ],
)
def test_wrong_words_are_explained(words, why):
    ended = typed(*words, "--domain", "a.example", "--node", "ws://127.0.0.1:1/link")
    assert ended.status == ExitCode.USAGE
    assert why in " ".join(ended.err)
