"""What a host bears of a sandbox that does not do as sandboxes do (S17, T16, R11)."""

from contextlib import asynccontextmanager, suppress

import orjson
import pytest
import trio

from actors.pipe.plan import PipeMessage, Word, read_message, write_message
from specs.limits.foreign_code import SANDBOX_EASY_BURST
from specs.limits.protocol import SANDBOX_SILENCE
from specs.reply_code import DropReason
from tests.support.packages import code_of
from tests.support.runtime.sandbox_world import H, open_sandbox_world
from transports.errors import LinkError
from transports.link import Kind, Upgrade
from transports.memory import Wire

CODE = code_of("def activate(context): pass\n")
DIAL = PipeMessage(Word.DIAL, 1, "ws://nowhere.ex:1/link", {"kind": "websocket"})


class Sandbox:
    """The other end of a host's pipe, played by a test."""

    def __init__(self):
        self._wire = Wire(Kind.UNIX, "sandbox", 4, Upgrade())

    @asynccontextmanager
    async def spawn(self, label):
        try:
            yield self._wire.dialler
        finally:
            self._wire.cut()

    async def say(self, *words):
        for said in words:
            await self._wire.acceptor.send(write_message(said))

    async def dial_for_ever(self):
        """Have refusals said, fewer than would be a flood, and read none of them."""
        with suppress(LinkError):
            while True:
                await self.say(*[DIAL] * 1000)
                await trio.sleep(1)

    async def hear(self, word):
        with trio.fail_after(60):
            while read_message(await self._wire.acceptor.receive()).word is not word:
                pass


@asynccontextmanager
async def kept(sandbox):
    """A world with a sandbox that says it is ready."""
    async with open_sandbox_world(CODE, spawn=sandbox.spawn) as world:
        await sandbox.say(PipeMessage(Word.READY))
        assert await world.load() is None
        yield world


async def test_one_that_gives_signs_of_life_and_reads_nothing_is_ended(autojump_clock):
    """What is said to it does not grow without end, though it is no flood."""
    sandbox = Sandbox()
    async with kept(sandbox) as world:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sandbox.dial_for_ever)
            answer = await world.ask("well?")
        await world.gone()
    assert answer.code == 503
    assert "does not read" in answer.body["description"]


async def test_one_that_floods_has_its_turn_when_others_have_had_theirs(autojump_clock):
    """SEC-33, R11: while a neighbour works, few of its messages are taken; later all of them."""
    sandbox, burst, other = Sandbox(), 100, "hyperty://a.ex/other"
    flood = [
        {"id": number, "type": "create", "from": H, "to": other, "body": {}}
        for number in range(1, burst + 1)
    ]
    async with open_sandbox_world(CODE) as world, trio.open_nursery() as nursery:
        nursery.start_soon(sandbox.say, PipeMessage(Word.READY))
        await world.host("tests.support.runtime.rough:Rough", sandbox.spawn)
        heard, taken = await world.bus.component(other), []
        posts = [PipeMessage(Word.POST, rest=orjson.dumps(one)) for one in flood]
        nursery.start_soon(sandbox.say, *posts)
        for _ in range(100):
            assert (await world.ask(1, f"{world.bus.agent.url}/nobody")).code == 404
            taken.append(len(heard))
        assert taken[0] < SANDBOX_EASY_BURST
        assert taken[-1] == SANDBOX_EASY_BURST
        with trio.fail_after(1):
            while len(heard) < burst:  # noqa: ASYNC110 - there is no event
                await trio.sleep(0.01)


@pytest.mark.parametrize("count", [10_001, -1, 0, True, "1", 1.5, None])
async def test_a_count_that_is_none_ends_it(count, autojump_clock):
    sandbox = Sandbox()
    async with kept(sandbox) as world:
        await sandbox.hear(Word.PING)
        await sandbox.say(PipeMessage(Word.PONG, fields={"overflow": count}))
        with trio.fail_after(SANDBOX_SILENCE / 2):
            await world.gone()
        assert world.bus.counters.drops[DropReason.OVERFLOW] == 0


async def test_drops_inside_a_process_are_counted_at_once_in_any_number(autojump_clock):
    sandbox = Sandbox()
    reported = {DropReason.OVERFLOW.value: 10_000, DropReason.LOOP.value: 3}
    async with kept(sandbox) as world:
        for _ in range(2):
            await sandbox.hear(Word.PING)
            await sandbox.say(PipeMessage(Word.PONG, fields=reported))
        await sandbox.hear(Word.PING)
        drops = world.bus.counters.drops
        assert (drops[DropReason.OVERFLOW], drops[DropReason.LOOP]) == (20_000, 6)
