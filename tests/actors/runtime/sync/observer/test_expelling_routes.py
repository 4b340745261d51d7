"""An observer is shut out by whichever way it hears (SYN-21, SYN-26, P2P-30)."""

import pytest
import trio

import actors
from actors.runtime.config import RuntimeConfig
from specs.message import MessageType
from specs.trace import Op
from tests.support.link_world import LINKED, pair
from tests.support.report_world import Closed, Open, met
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


class Heir(Closed):
    """Takes an object over, and asks nobody in."""

    async def on_delegated(self, delegated):
        self.spawn(self.go_on, delegated.url)

    async def go_on(self, url):
        async with self.taken_over(url) as self.thing:
            await trio.sleep_forever()


async def handed(m, runtime):
    """Hand the object over; return who reports it now."""
    heirs = [heir := Heir()]
    there = await runtime.deploy(lambda: heirs[0])
    await m.thing.delegate(there.url)
    await trio.sleep(1)
    return heir


async def test_of_an_object_that_was_handed_over_its_new_reporter_expels(autojump_clock):
    """SYN-26: and the old one no more."""
    async with met() as m, m.guest.observe(m.thing.url) as copy:
        heir = await handed(m, m.w.there)
        await heir.thing.set("n", 1)
        await copy.wait_for(lambda value: value["n"] == 1)
        with pytest.raises(actors.ObjectError):
            await m.thing.expel(m.guest.url)
        reported = {"resource": m.thing.url}
        assert (await m.room.ask(m.guest.url, UNSUBSCRIBE, reported)).code == 403
        await heir.thing.expel(m.guest.url)
        await trio.sleep(1)
        assert (copy.is_gone, heir.thing.observers) == (True, ())


async def test_an_expelled_observer_stays_expelled_when_a_public_object_is_handed_over(
    autojump_clock,
):
    async with met(public=True) as m:
        other = await m.w.there.deploy(Closed)
        await m.thing.expel(m.guest.url)
        await handed(m, m.w.there)
        assert (await m.guest.ask(m.thing.url, READ, {})).code == 401
        assert (await other.ask(m.thing.url, READ, {})).code == 200


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
