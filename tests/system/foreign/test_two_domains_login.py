"""Two domains that ask each other for a login, as real processes (MN-05, MN-19, S4, S14)."""

import json
import signal
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import attrs
import pytest
import trio

from actors.cli.group import ExitCode
from actors.commands.token import issue
from actors.commands.token import make_keys as keys
from tests.support.command import Serving, call, called, serving
from tests.system.foreign.test_two_domains import RELAY, children_of, free_place, gone

pytestmark = pytest.mark.timeout(240)

MN_A = "domain://msg-node.a.ex"


@attrs.define
class Two:
    """Nodes of a.ex and b.ex with keys, and a hyperty at b.ex."""

    directory: Path
    key: dict[str, str]
    places: list[str]
    nodes: dict[str, Serving] = attrs.field(factory=dict)
    relay: str = ""
    number: int = 0

    def token(self, domain, user, *more):
        """Write a fresh token; return the file."""
        self.number += 1
        options = ("--key", self.key["key"], "--user", user, "--domain", domain, *more)
        [text] = called(issue, *options).out
        file = self.directory / f"{self.number}.token"
        file.write_text(text + "\n")
        return str(file)

    def node(self, domain, *more):
        place = self.places[domain == "b.ex"]
        return serving(
            "node", "--domain", domain, "--listen", place, "--jwks", self.key["jwks"], *more
        )

    def way(self, shown):
        url = f"ws://{self.places[1]}/link"
        return ("--foreign", f"b.ex={url}", "--foreign-token-file", f"b.ex={shown}")

    def bound(self):
        return self.token("b.ex", "user://a.ex/node", "--runtime", MN_A)

    async def ask(self):
        """Ask the hyperty at b.ex by the node of a.ex, as somebody of a.ex."""
        where = ("--domain", "a.ex", "--node", f"ws://{self.places[0]}/link")
        token = ("--token-file", self.token("a.ex", "user://a.ex/asker"))
        return await call("request", *where, *token, "--topology", "trapezoid", self.relay, "1")


@asynccontextmanager
async def open_b(directory):
    key = json.loads(called(keys, "--out", str(directory)).out[0])
    two = Two(directory, key, [free_place(), free_place()])
    async with AsyncExitStack() as stack:
        two.nodes["b"] = await stack.enter_async_context(two.node("b.ex"))
        token = ("--token-file", two.token("b.ex", "user://b.ex/relay"))
        where = ("--domain", "b.ex", "--name", "rb", "--node", two.nodes["b"].url)
        runtime = serving("runtime", *where, *token, "--p2p", "none", "--hyperty", RELAY)
        two.relay = (await stack.enter_async_context(runtime)).ready["hyperties"]["relay"]
        yield two


async def test_a_token_that_names_the_node_carries_messages_across(tmp_path):
    async with open_b(tmp_path) as two, two.node("a.ex", *two.way(two.bound())):
        ended = await two.ask()
        assert (ended.status, ended.err) == (ExitCode.OK, [])


async def test_a_users_token_carries_nothing(tmp_path):
    """A stolen one would speak for all of a.ex."""
    async with open_b(tmp_path) as two:
        stolen = two.token("b.ex", "user://a.ex/alice")
        async with two.node("a.ex", *two.way(stolen)):
            ended = await two.ask()
    assert ended.status != ExitCode.OK
    assert "bound" in ended.err[-1]


async def test_a_node_that_was_killed_logs_in_again_and_its_sandbox_is_gone(tmp_path):
    """It has lost its session's token; the same user takes the session over, at once."""
    async with open_b(tmp_path) as two:
        shown = two.bound()
        async with two.node("a.ex", *two.way(shown)) as first:
            assert (await two.ask()).status == ExitCode.OK
            (sandbox,) = children_of(first.process.pid)
            first.process.send_signal(signal.SIGKILL)
            await first.process.ended()
            await gone(sandbox)
        async with two.node("a.ex", *two.way(two.bound())) as second:
            assert (await two.ask()).status == ExitCode.OK
            (sandbox,) = children_of(second.process.pid)
            assert await second.stop() == 0
            await gone(sandbox)


async def test_a_used_token_is_replaced_while_the_node_runs(tmp_path):
    """The file is read at each open: no node has to be started again for it."""
    async with open_b(tmp_path) as two:
        shown = two.bound()
        async with two.node("a.ex", *two.way(shown)) as node:
            assert (await two.ask()).status == ExitCode.OK
            await replace(shown, two.bound())
            for sandbox in children_of(node.process.pid):
                await stopped(sandbox)
            assert (await two.ask()).status == ExitCode.OK


async def replace(file, by):
    await trio.Path(by).replace(file)


async def stopped(pid):
    """Hang a sandbox, as one does that spins: it owes signs of life, and is ended."""
    await trio.run_process(["kill", "-STOP", str(pid)])
    with trio.fail_after(60):
        await gone(pid)
