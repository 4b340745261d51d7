"""Three nodes of one domain as processes over a NATS server: one is killed, one goes down."""

import json
import signal
from contextlib import AsyncExitStack

import pytest
import trio
from click.testing import CliRunner

import actors
from actors.cli.group import ExitCode
from actors.hyperties import Caller, Echo
from fsm.__main__ import cli
from tests.support.nats_server import needs_server, run_server
from tests.support.node.node_processes import DOMAIN, open_nodes
from tests.support.runtime.apart import Thermometer
from transports.engine.contract import Row
from transports.engine.nats import open_engine
from transports.nats.connection import ServerUrl, Terms

pytestmark = [pytest.mark.long, pytest.mark.timeout(300), needs_server]

RUNTIMES = 6
PATIENCE = 120.0


class Slow(actors.Hyperty):
    """Answers when it is told to."""

    def __init__(self):
        self.asked = 0
        self.has_all = trio.Event()
        self.may_answer = trio.Event()

    async def on_request(self, message):
        self.asked += 1
        if self.asked == RUNTIMES:
            self.has_all.set()
        await self.may_answer.wait()
        return message.body["value"]


class Party:
    """Runtimes at all nodes in turn, each with a hyperty that asks and one that answers."""

    def __init__(self, runtimes, echoes, callers):
        self.runtimes = runtimes
        self.echoes = echoes
        self.callers = callers
        self.number = 0

    async def answered(self, caller, url):
        """Whether a request is answered as it must be."""
        self.number += 1
        number = self.number
        answer = await caller.request(url, number)
        assert answer.code != 200 or answer.value == number
        return answer.code == 200

    async def all_answered(self):
        """Have everybody ask everybody, again until it is answered."""

        async def ask(caller, url):
            while not await self.answered(caller, url):  # noqa: ASYNC110 - of other processes
                await trio.sleep(0.1)

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                for caller in self.callers:
                    for echo in self.echoes:
                        nursery.start_soon(ask, caller, echo.url)

    async def ask_on(self, pair, *, task_status):
        """Ask again and again, from one runtime to another; every request has to be answered."""
        caller, echo = self.callers[pair[0]], self.echoes[pair[1]]
        task_status.started()
        while True:
            assert await self.answered(caller, echo.url)
            await trio.sleep(0.02)  # real time: a pace, no patience


async def open_party(world, stack):
    runtimes = [
        await stack.enter_async_context(world.runtime(f"r{number}", number % 3))
        for number in range(RUNTIMES)
    ]
    return Party(
        runtimes,
        [await runtime.deploy(Echo) for runtime in runtimes],
        [await runtime.deploy(Caller) for runtime in runtimes],
    )


async def end_of(count, server):
    """Wait until the domain has no more nodes than this."""
    there = set()
    terms = Terms((ServerUrl.read(server.url),))
    async with open_engine(terms, DOMAIN) as engine, engine.watch("node/") as seen:
        is_known = False
        async for batch in seen:
            for one in batch:
                if not isinstance(one, Row):
                    is_known = True
                elif one.value is None:
                    there.discard(one.key)
                else:
                    there.add(one.key)
            if is_known and len(there) <= count:
                return


async def one_is_killed(world, server, party):
    """Runtimes of the nodes that stay talk as if nothing were; those of the other come back."""
    async with trio.open_nursery() as asking:
        for pair in ((1, 4), (1, 2), (2, 5), (5, 4)):
            await asking.start(party.ask_on, pair)
        assert await world.nodes[0].stop(signal.SIGKILL) == -signal.SIGKILL
        await party.all_answered()
        with trio.fail_after(PATIENCE):
            await end_of(2, server)
        await party.all_answered()
        asking.cancel_scope.cancel()


async def one_goes_down(world, party):
    """What was asked before is answered, at whatever node its two ends are by then."""
    slow, answers = Slow(), []
    late = await party.runtimes[1].deploy(lambda: slow, "slow")

    async def ask(caller):
        answer = await caller.request(late.url, caller.url)
        answers.append((answer.code, answer.value == caller.url))

    async with trio.open_nursery() as asking:
        for caller in party.callers:
            asking.start_soon(ask, caller)
        await slow.has_all.wait()
        assert await world.nodes[1].stop() == ExitCode.OK
        slow.may_answer.set()
    assert answers == [(200, True)] * RUNTIMES


async def test_runtimes_go_on_when_a_node_is_killed_and_another_one_goes_down(tmp_path):
    """MN-22, with the addresses of all hyperties and all copies of an object."""
    with run_server() as server:
        async with open_nodes(tmp_path, server, 3) as world:
            async with AsyncExitStack() as stack:
                party = await open_party(world, stack)
                await party.all_answered()
                thermometer = await party.runtimes[0].deploy(Thermometer)
                answer = await party.callers[1].request(thermometer.url)
                assert answer.code == 200, answer
                url = answer.value
                copies = [
                    await stack.enter_async_context(caller.observe(url)) for caller in party.callers
                ]
                await one_is_killed(world, server, party)
                await party.callers[2].request(thermometer.url)
                await one_goes_down(world, party)
                await party.all_answered()

                assert (await party.callers[4].request(thermometer.url)).code == 200
                with trio.fail_after(PATIENCE):
                    for copy in copies:
                        await copy.wait_for(lambda value: value["celsius"] == 23)
            assert await world.nodes[2].stop() == ExitCode.OK
    verdict, missing = judged(tmp_path)
    assert verdict == "incomplete", verdict
    # Only what the node that was killed has not written any more.
    assert all("/n0/" in one["file"] for one in missing), missing


def judged(folder):
    done = CliRunner().invoke(cli, ["judge", "--json", str(folder)])
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return lines[-1]["verdict"], [one for one in lines if one["schema"] == "protofly.flaw/1"]
