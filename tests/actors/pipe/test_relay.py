"""What a keeper dials for a sandbox, and what it does not (T16)."""

import pytest
import trio

from actors.pipe.errors import PipeError
from actors.pipe.outlet import Outlet
from actors.pipe.relay import Relays
from actors.pipe.said import Said, Word, read_said
from specs.limits import ROOM_LINKS, ROOM_WINDOW
from transports.background import open_background
from transports.link import Kind, Upgrade
from transports.memory import MemoryNetwork
from transports.memory_link import Wire

NODE = "ws://127.0.0.1:40000/link"


class Bench:
    """Relays, and the sandbox's end of their pipe."""

    def __init__(self, relays, room, background):
        self.relays = relays
        self._room = room
        self._background = background

    def dial(self, number, address=NODE, kind="websocket"):
        asked = {"kind": kind, "subprotocol": "protofly.v1"}
        work = self.relays.dial(Said(Word.DIAL, number, address, asked))
        if work is not None:
            self._background.start_soon(work)
        return work is not None

    async def hear(self):
        with trio.fail_after(5):
            return read_said(await self._room.receive())


@pytest.fixture
async def bench(autojump_clock):
    network, wire = MemoryNetwork(), Wire(Kind.UNIX, "pipe", 1, Upgrade())
    outlet = Outlet(wire.dialler)
    async with (
        network.listen(Kind.WEBSOCKET, "127.0.0.1:40000") as listener,
        open_background() as background,
    ):
        background.start_soon(outlet.run)
        one = Bench(Relays(network, NODE, outlet), wire.acceptor, background)
        one.listener = listener
        yield one


@pytest.mark.parametrize(
    ("address", "kind"),
    [("ws://127.0.0.1:40001/link", "websocket"), (NODE, "tcp"), ("/run/secret", "unix")],
)
async def test_only_the_configured_place_is_dialled(bench, address, kind):
    assert not bench.dial(1, address, kind)
    said = await bench.hear()
    assert (said.word, said.number) == (Word.GONE, 1)
    assert "may not" in said.text


async def test_a_sandbox_has_no_more_links_than_it_needs(bench):
    assert [bench.dial(number) for number in range(1, ROOM_LINKS + 2)] == [True, True, False]


async def test_frames_go_both_ways_and_are_acknowledged(bench):
    bench.dial(1)
    assert (await bench.hear()).word is Word.OPEN
    far = await bench.listener.accept()
    bench.relays.heard(Said(Word.DATA, 1, rest=b"out"))
    assert await far.receive() == b"out"
    assert (await bench.hear()).word is Word.TOOK
    await far.send(b"in")
    said = await bench.hear()
    assert (said.word, said.rest) == (Word.DATA, b"in")


async def test_a_sandbox_that_sends_more_than_may_be_on_its_way_is_misbehaving(bench):
    bench.dial(1)
    await bench.hear()
    for _ in range(ROOM_WINDOW + 1):
        # The first of them is being written.
        bench.relays.heard(Said(Word.DATA, 1, rest=b"x"))
    with pytest.raises(PipeError):
        bench.relays.heard(Said(Word.DATA, 1, rest=b"x"))


async def test_no_more_is_read_than_the_sandbox_takes(bench):
    bench.dial(1)
    await bench.hear()
    far = await bench.listener.accept()
    with trio.move_on_after(1):
        for _ in range(100):
            await far.send(b"x")
    heard = 0
    with trio.move_on_after(1):
        while True:
            assert read_said(await bench._room.receive()).word is Word.DATA
            heard += 1
    assert heard == ROOM_WINDOW


async def test_the_end_of_a_link_is_told_with_its_farewell(bench):
    bench.dial(1)
    await bench.hear()
    await (await bench.listener.accept()).aclose()
    said = await bench.hear()
    assert (said.word, said.get("farewell")) == (Word.GONE, "1000")
