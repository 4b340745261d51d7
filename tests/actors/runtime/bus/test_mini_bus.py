"""The MiniBUS: messages wait for their first listener, go to all of them, or are not taken."""

from functools import partial

from actors.kit.supervision.actor import Delivery, Purpose
from actors.kit.supervision.supervisor import ChildSpec
from actors.runtime.bus.mini_bus import MiniBus
from specs.trace import Op
from tests.support.runtime.runtime_parts import Listener, open_bus
from tests.support.wire.wire import B, C, ask


def mini_bus(world):
    return MiniBus("minibus", world.hops("minibus"), world.bus.hops)


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
