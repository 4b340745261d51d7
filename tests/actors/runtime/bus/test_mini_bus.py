"""The MiniBUS: messages wait for their first listener, go to all of them, or are not taken."""

from functools import partial

import trio

from actors.kit.supervision.actor import Delivery, Purpose
from actors.kit.supervision.supervisor import ChildSpec
from actors.runtime.bus.messages import Origin
from actors.runtime.bus.mini_bus import MiniBus
from specs.limits.protocol import STUB_QUEUE
from specs.trace import Op
from tests.support.runtime.runtime_parts import Listener, open_bus
from tests.support.wire.wire import A, B, C, ask


def mini_bus(world):
    return MiniBus("minibus", world.hops("minibus"), world.bus.hops)


async def test_messages_before_their_first_listener_wait(autojump_clock):
    async with open_bus() as world:
        bus = mini_bus(world)
        assert bus.try_tell(Delivery(ask(1), B))
        heard = await world.component(B)
        component = await world.supervisor.start_child(ChildSpec("x", partial(Listener, heard)))
        assert bus.add("*", component, "loader") == ()
        await world.settle()
        assert world.heard_by(heard) == [ask(1)]


async def test_messages_that_wait_for_a_listener_are_few_and_given_back():
    async with open_bus() as world:
        bus = mini_bus(world)
        taken = [bus.try_tell(Delivery(ask(number), B)) for number in range(STUB_QUEUE + 1)]
        assert taken == [*[True] * STUB_QUEUE, False]
        assert [each.message.id for each in bus.close()] == list(range(STUB_QUEUE))
        assert (bus.is_gone, bus.try_tell(Delivery(ask(1), B)), bus.close()) == (True, False, ())


async def test_messages_wait_while_only_others_have_a_listener():
    """A component that starts may listen to an address of its own before it gets the rest."""
    async with open_bus() as world:
        bus, heard = mini_bus(world), []
        component = await world.supervisor.start_child(ChildSpec("x", partial(Listener, heard)))
        assert bus.try_tell(Delivery(ask(1), B))
        assert bus.try_tell(Delivery(ask(2, to=C), C))
        assert bus.add(C, component, "x") == ()
        assert bus.try_tell(Delivery(ask(3), B))
        await world.settle()
        assert world.heard_by(heard) == [ask(2, to=C)]
        assert bus.add("*", component, "loader") == ()
        await world.settle()
        assert world.heard_by(heard) == [ask(2, to=C), ask(1), ask(3)]


async def test_the_announcement_of_a_message_is_not_recorded_as_its_delivery():
    """OBS-01: also where it waits for its listener."""
    async with open_bus() as world:
        bus = mini_bus(world)
        component = await world.supervisor.start_child(ChildSpec("x", partial(Listener, [])))
        bus.try_tell(Delivery(ask(1), B, purpose=Purpose.ANNOUNCE))
        bus.add("*", component, "loader")
        bus.try_tell(Delivery(ask(2), B, purpose=Purpose.ANNOUNCE))
        assert [fact.op for fact in world.tracer.facts if fact.op] == [Op.ADD]


async def listening(world, bus, *names):
    """Let some listen for everything in one sandbox; return what each hears, and who they are."""
    heard = {name: [] for name in names}
    refs = {}
    for name, mine in heard.items():
        spec = ChildSpec(name, partial(Listener, mine))
        refs[name] = await world.supervisor.start_child(spec)
        bus.add(B, refs[name], "loader")
    return heard, refs


async def test_all_listeners_in_a_sandbox_get_their_copy():
    """BUS-04, I-B2: also who comes later, and who stays when another goes."""
    async with open_bus() as world:
        bus = mini_bus(world)
        heard, refs = await listening(world, bus, "one", "two", "three")
        bus.try_tell(Delivery(ask(1), B))
        bus.remove(B, refs["one"], "loader")
        bus.try_tell(Delivery(ask(2), B))
        await world.settle()
        ids = {name: [each.message.id for each in mine] for name, mine in heard.items()}
    assert ids == {"one": [1], "two": [1, 2], "three": [1, 2]}


class Stuck(Listener):
    async def handle(self, message):
        await trio.sleep_forever()


async def stuck(world, mailbox):
    """Start a component that reads one message and no more."""
    spec = ChildSpec("stuck", partial(Stuck, []), mailbox=mailbox)
    return await world.supervisor.start_child(spec)


async def test_a_component_that_reads_nothing_delays_no_other_of_its_sandbox():
    async with open_bus() as world:
        bus = mini_bus(world)
        bus.add(B, await stuck(world, 1), "loader")
        heard, _ = await listening(world, bus, "two")
        for number in range(1, 5):
            assert bus.try_tell(Delivery(ask(number), B))
            await world.settle()
        assert [each.message.id for each in heard["two"]] == [1, 2, 3, 4]
        await world.supervisor.stop_child("stuck")


async def test_a_message_for_a_full_mailbox_is_not_taken():
    async with open_bus() as world:
        bus, taken = mini_bus(world), []
        bus.add("*", await stuck(world, 2), "loader")
        for number in range(1, 5):
            taken.append(bus.try_tell(Delivery(ask(number), B)))
            await world.settle()
        assert taken == [True, True, True, False]
        assert not bus.is_gone
        await world.supervisor.stop_child("stuck")
        assert bus.is_gone


async def test_the_records_of_both_buses_are_in_order():
    """OBS-01: first that the Message BUS has delivered to the MiniBUS, then what that has done."""
    async with open_bus() as world:
        bus = mini_bus(world)
        await listening(world, bus, "one")
        world.agent.admit(B, Origin.LOCAL, bus)
        await world.component(A)
        await world.port(A).post(ask(1))
        hops = [
            (actor, fact.listener) for actor, fact in world.tracer.records if fact.op is Op.DELIVER
        ]
    assert hops == [("bus", "minibus"), ("minibus", "one")]
