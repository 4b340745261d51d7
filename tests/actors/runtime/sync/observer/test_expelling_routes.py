"""An observer is shut out by whichever way it hears (SYN-21, P2P-30)."""

import trio

import actors
from actors.runtime.config import RuntimeConfig
from specs.message import MessageType
from specs.trace import Op
from tests.support.link_world import LINKED, pair
from tests.support.report_world import Closed, Open
from tests.support.runtime.domain import Echo
from transports.link import Kind
from transports.memory import MemoryNetwork

UNSUBSCRIBE, READ = MessageType.UNSUBSCRIBE, MessageType.READ


async def test_an_observer_of_another_domain_is_cut_off_at_the_node_of_the_object(autojump_clock):
    """What is said to it and to its sync manager passes another node, and here is lost."""
    network = MemoryNetwork()
    async with (
        actors.open_node("a.ex", network=network) as ours,
        actors.open_node("b.ex", network=network) as theirs,
        actors.open_runtime(config("a.ex", "ra", ours, theirs), network=network) as here,
        actors.open_runtime(config("a.ex", "rc", ours, theirs), network=network) as beside,
        actors.open_runtime(config("b.ex", "rb", theirs, ours), network=network) as there,
    ):
        room = await here.deploy(Open)
        guest, other = await there.deploy(Closed), await beside.deploy(Closed)
        async with (
            room.report("comm", {"n": 0}) as thing,
            guest.observe(thing.url) as copy,
            other.observe(thing.url) as beside_it,
        ):
            await thing.set("n", 1)
            await copy.wait_for(lambda value: value["n"] == 1)
            for wire in network.open_wires(Kind.WEBSOCKET):
                if wire.address == theirs.url:
                    wire.dialler.pattern = wire.acceptor.pattern = lambda _number, _frame: ()
            await thing.expel(guest.url)
            await thing.set("n", 2)
            await beside_it.wait_for(lambda value: value["n"] == 2)
            await trio.sleep(3)
            assert (copy.value["n"], thing.observers) == (1, (other.url,))


def config(domain, name, own, other):
    """A runtime that finds its way to both nodes."""
    nodes = {"a.ex": other.url} if domain == "b.ex" else {"b.ex": other.url}
    return RuntimeConfig(domain=domain, name=name, node=own.url, nodes=nodes)


async def test_an_observer_that_hears_by_a_link_hears_nothing_more_by_it(autojump_clock):
    """P2P-30: the object's own end takes the link off, whoever else is still published to."""
    async with pair(LINKED, p2p=True) as two:
        echo = Echo()
        beside = await two.alice.runtime.deploy("beside", lambda: echo)
        await two.obj.allow(beside)
        async with echo.observe(two.obj.url) as copy:
            await two.obj.set("n", 1)
            await copy.wait_for(lambda value: value["n"] == 1)
            await trio.sleep(1)
            (guest,) = [one for one in two.obj.observers if one != beside]
            arrived = two.arrived(two.bob)
            await two.obj.expel(guest)
            await two.obj.set("n", 2)
            await copy.wait_for(lambda value: value["n"] == 2)
            await trio.sleep(5)
            assert two.arrived(two.bob) == arrived
            assert (two.copy.is_gone, two.copy.value["n"]) == (True, 1)
            assert (Op.DEL, two.branches()[0][1]) in two.branches()
