"""What a host dials for a sandbox, and what it does not (T16)."""

import pytest
import trio

from actors.pipe.outlet import Outlet, Relays
from actors.pipe.plan import PipeError, PipeMessage, Word, read_message
from specs.limits.protocol import SANDBOX_LINKS, SANDBOX_WINDOW
from transports.link import Kind, Upgrade
from transports.memory import MemoryNetwork, Wire
from transports.sockets import open_background

NODE = "ws://127.0.0.1:40000/link"
PLACES = (NODE, "tcp://127.0.0.1:40002", "stream://127.0.0.1:40003")


class Bench:
    """Relays, and the sandbox's end of their pipe."""

    def __init__(self, relays, sandbox, background):
        self.relays = relays
        self._sandbox = sandbox
        self._background = background

    def dial(self, number, address=NODE, kind="websocket", subprotocol="protofly.v1"):
        asked = {"kind": kind, "subprotocol": subprotocol}
        work = self.relays.dial(PipeMessage(Word.DIAL, number, address, asked))
        if work is not None:
            self._background.start_soon(work)
        return work is not None

    async def hear(self):
        with trio.fail_after(30):
            return read_message(await self._sandbox.receive())


@pytest.fixture
async def bench(autojump_clock):
    network, wire = MemoryNetwork(), Wire(Kind.UNIX, "pipe", 1, Upgrade())
    outlet = Outlet(wire.dialler)
    async with (
        network.listen(Kind.WEBSOCKET, "127.0.0.1:40000") as listener,
        open_background() as background,
    ):
        background.start_soon(outlet.run)
        one = Bench(Relays(network, PLACES, outlet), wire.acceptor, background)
        one.listener, one.network = listener, network
        yield one


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("ws://127.0.0.1:40001/link", "websocket"),
        (NODE, "tcp"),
        ("/run/secret", "unix"),
        ("127.0.0.1:40002", "stream"),
        ("127.0.0.1:40003", "tcp"),
        ("127.0.0.1:40004", "tcp"),
        ("tcp://127.0.0.1:40002", "tcp"),
    ],
)
async def test_only_the_configured_places_are_dialled(bench, address, kind, autojump_clock):
    assert not bench.dial(1, address, kind)
    said = await bench.hear()
    assert (said.word, said.number) == (Word.GONE, 1)
    assert "may not" in said.text


@pytest.mark.parametrize("subprotocol", ["mqtt", "protofly.v2", "protofly.v1, mqtt", "a\r\nb: c"])
async def test_a_subprotocol_that_no_endpoint_names_is_not_asked_for(
    bench, subprotocol, autojump_clock
):
    """T16: what stands in a handshake is not the sandbox's to choose."""
    assert not bench.dial(1, subprotocol=subprotocol)
    said = await bench.hear()
    assert (said.word, said.number) == (Word.GONE, 1)
    assert "may not ask for this subprotocol" in said.text


@pytest.mark.parametrize("subprotocol", ["protofly.v1", None, ""])
async def test_the_own_subprotocol_is_asked_for_or_none(bench, subprotocol, autojump_clock):
    assert bench.dial(1, subprotocol=subprotocol)


async def test_a_sandbox_has_no_more_links_than_it_needs(bench, autojump_clock):
    most = SANDBOX_LINKS * len(PLACES)
    assert [bench.dial(number) for number in range(1, most + 2)] == [*[True] * most, False]


async def test_bytes_that_are_no_frames_pass_in_both_directions_in_order(bench, autojump_clock):
    async with bench.network.listen(Kind.STREAM, "127.0.0.1:40003") as listener:
        assert bench.dial(1, "127.0.0.1:40003", "stream")
        assert (await bench.hear()).word is Word.OPEN
        far = await listener.accept()
        bench.relays.receive(PipeMessage(Word.DATA, 1, rest=b"hello\n"))
        assert await far.receive() + await far.receive() == b"hello\n"
        await bench.hear()
        await far.send(b"welcome\n")
        assert (await bench.hear()).rest + (await bench.hear()).rest == b"welcome\n"


async def test_frames_pass_in_both_directions_and_are_acknowledged(bench, autojump_clock):
    bench.dial(1)
    assert (await bench.hear()).word is Word.OPEN
    far = await bench.listener.accept()
    bench.relays.receive(PipeMessage(Word.DATA, 1, rest=b"out"))
    assert await far.receive() == b"out"
    assert (await bench.hear()).word is Word.TOOK
    await far.send(b"in")
    said = await bench.hear()
    assert (said.word, said.rest) == (Word.DATA, b"in")


async def test_a_sandbox_with_too_many_unacknowledged_frames_is_misbehaving(bench, autojump_clock):
    bench.dial(1)
    await bench.hear()
    for _ in range(SANDBOX_WINDOW + 1):
        # The first of them is being written.
        bench.relays.receive(PipeMessage(Word.DATA, 1, rest=b"x"))
    with pytest.raises(PipeError):
        bench.relays.receive(PipeMessage(Word.DATA, 1, rest=b"x"))


async def test_no_more_is_read_than_the_sandbox_takes(bench, autojump_clock):
    bench.dial(1)
    await bench.hear()
    far = await bench.listener.accept()
    with trio.move_on_after(1):
        for _ in range(100):
            await far.send(b"x")
    heard = 0
    with trio.move_on_after(1):
        while True:
            assert read_message(await bench._sandbox.receive()).word is Word.DATA
            heard += 1
    assert heard == SANDBOX_WINDOW


async def test_the_end_of_a_link_is_reported_with_its_close_reason(bench, autojump_clock):
    bench.dial(1)
    await bench.hear()
    await (await bench.listener.accept()).aclose()
    said = await bench.hear()
    assert (said.word, said.get("farewell")) == (Word.GONE, "1000")
