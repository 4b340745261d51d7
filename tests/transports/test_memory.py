"""Faults on purpose, in virtual time."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from specs.limits.protocol import DIAL_TIMEOUT, LINK_BACKLOG
from tests.support.runtime.links import Pair
from transports.errors import DialError, LinkBrokenError
from transports.link import Kind
from transports.memory import MemoryNetwork, deliver_once


@pytest.fixture
def network():
    return MemoryNetwork()


@pytest.fixture
async def listener(network):
    async with network.listen(Kind.TCP, "127.0.0.1:0") as listener:
        yield listener


@pytest.fixture
async def pair(network, listener):
    return Pair(await network.dial(Kind.TCP, listener.address), await listener.accept())


def only_second(*delays):
    """Do something to the second frame only."""
    return lambda number, _frame: delays if number == 2 else (0.0,)


@pytest.mark.parametrize("end", ["dialler", "acceptor"])
async def test_both_ends_of_a_cut_link_see_a_break(network, pair, end):
    await pair.dialler.send(b"in flight")
    network.cut(getattr(pair, end))

    for link in (pair.dialler, pair.acceptor):
        with pytest.raises(LinkBrokenError, match="cut"):
            await link.receive()
        with pytest.raises(LinkBrokenError, match="cut"):
            await link.send(b"more")


async def test_a_cut_ends_waiting_readers(network, pair, nursery):
    ends = []

    async def wait(link):
        try:
            await link.receive()
        except LinkBrokenError as error:
            ends.append(error.link)

    nursery.start_soon(wait, pair.dialler)
    nursery.start_soon(wait, pair.acceptor)
    await wait_all_tasks_blocked()
    network.cut(pair.dialler)
    await wait_all_tasks_blocked()

    assert sorted(ends) == ["tcp-1-in", "tcp-1-out"]


async def test_open_wires_are_those_that_neither_end_left_or_cut(network, listener):
    one, two, three = [await network.dial(Kind.TCP, listener.address) for _ in range(3)]
    await two.aclose()
    network.cut(three)

    assert [wire.dialler for wire in network.open_wires(Kind.TCP)] == [one]
    assert network.open_wires(Kind.UNIX) == []
    assert len(network.wires) == 3


async def test_a_refused_address_is_refused_until_allowed(network, listener):
    network.refuse(listener.address)
    with pytest.raises(DialError, match="refused"):
        await network.dial(Kind.TCP, listener.address)
    network.allow(listener.address)

    assert await network.dial(Kind.TCP, listener.address)


@pytest.mark.parametrize(
    ("delays", "came"),
    [((), [b"1", b"3"]), ((0.0,), [b"1", b"2", b"3"]), ((0.0, 0.0), [b"1", b"2", b"2", b"3"])],
    ids=["lost", "passed", "doubled"],
)
async def test_a_pattern_says_what_becomes_of_a_frame(pair, delays, came):
    pair.dialler.pattern = only_second(*delays)
    await pair.dialler.send_many([b"1", b"2", b"3"])

    assert [await pair.acceptor.receive() for _ in came] == came


async def test_a_sieve_says_what_is_left_of_a_frame(pair):
    pair.dialler.sieve = lambda frame: frame.replace(b"2", b"") if frame != b"2" else None
    await pair.dialler.send_many([b"12", b"2", b"", b"3"])

    assert [await pair.acceptor.receive() for _ in range(3)] == [b"1", b"", b"3"]


async def test_a_delayed_frame_holds_up_those_behind_it(pair, autojump_clock):
    pair.dialler.pattern = only_second(5.0)
    start = trio.current_time()
    await pair.dialler.send_many([b"1", b"2", b"3"])
    came = [(await pair.acceptor.receive(), trio.current_time() - start) for _ in range(3)]

    assert came == [(b"1", 0.0), (b"2", pytest.approx(5.0)), (b"3", pytest.approx(5.0))]


async def test_a_receive_cancelled_during_a_delay_loses_no_frame(pair, autojump_clock):
    pair.dialler.pattern = only_second(5.0)
    await pair.dialler.send_many([b"1", b"2"])
    await pair.acceptor.receive()
    with trio.move_on_after(1) as patience:
        await pair.acceptor.receive()
    assert patience.cancelled_caught

    assert await pair.acceptor.receive() == b"2"


async def test_patterns_can_be_set_before_the_link_is_there(network, listener):
    network.disturb(listener.address, deliver_once, only_second())
    dialler, acceptor = await network.dial(Kind.TCP, listener.address), await listener.accept()
    await dialler.send_many([b"1", b"2"])
    await acceptor.send_many([b"1", b"2", b"3"])

    assert [await acceptor.receive(), await acceptor.receive()] == [b"1", b"2"]
    assert [await dialler.receive(), await dialler.receive()] == [b"1", b"3"]


async def test_a_listener_that_does_not_accept_gives_no_answer(network, listener, autojump_clock):
    for _ in range(LINK_BACKLOG):
        await network.dial(Kind.TCP, listener.address)
    start = trio.current_time()
    with pytest.raises(DialError, match="no answer"):
        await network.dial(Kind.TCP, listener.address)

    assert trio.current_time() - start == pytest.approx(DIAL_TIMEOUT)


async def test_an_unaccepted_link_breaks_with_its_listener(network):
    async with network.listen(Kind.UNIX, "/s") as listener:
        link = await network.dial(Kind.UNIX, listener.address)

    with pytest.raises(LinkBrokenError):
        await link.receive()


@pytest.mark.parametrize(
    ("path", "subprotocol", "answer"),
    [("/nowhere", "protofly.v1", "404"), ("/link", None, "400"), ("/link", "other", "400")],
)
async def test_listeners_in_memory_behave_like_those_of_a_real_server(
    network, path, subprotocol, answer
):
    async with network.listen(Kind.WEBSOCKET, "127.0.0.1:0") as listener:
        with pytest.raises(DialError, match=answer):
            await network.dial(Kind.WEBSOCKET, listener.address + path, subprotocol)


async def test_a_cut_ends_a_wait_for_a_frame_in_transit_at_once(
    network, pair, nursery, autojump_clock
):
    ends = []

    async def wait():
        with pytest.raises(LinkBrokenError):
            await pair.acceptor.receive()
        ends.append(trio.current_time())

    pair.dialler.pattern = lambda _number, _frame: (9.0,)
    await pair.dialler.send(b"late")
    nursery.start_soon(wait)
    await wait_all_tasks_blocked()
    begun = trio.current_time()
    network.cut(pair.dialler)
    await wait_all_tasks_blocked()
    assert ends == [begun]
