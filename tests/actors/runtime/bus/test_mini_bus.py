"""The MiniBUS of a sandbox: its listeners, and messages that none of them takes."""

from functools import partial

import trio
import trio.testing

from actors.kit.supervision.delivery import Delivery
from actors.kit.supervision.supervisor import ChildSpec
from actors.runtime.bus.messages import ListenerAdded, ListenerRemoved
from actors.runtime.bus.mini_bus import MiniBus
from actors.runtime.hop_trace import HopTrace
from specs.reply_code import Code
from tests.support.runtime.runtime_parts import Listener, open_bus
from tests.support.wire.wire import B, C, ask


async def mini_bus(world, lost):
    hops = HopTrace(world.tracer, "minibus", world.counters)
    make = partial(MiniBus, lambda each: lost.append(each) or True, hops)
    return await world.supervisor.start_child(ChildSpec("minibus", make))


async def test_messages_before_the_first_listener_wait(autojump_clock):
    async with open_bus() as world:
        ref = await mini_bus(world, [])
        await ref.tell(Delivery(ask(1), B))
        heard = await world.component(B)
        component = await world.supervisor.start_child(ChildSpec("x", partial(Listener, heard)))
        await ref.ask(partial(ListenerAdded, "*", component, "loader"))
        await world.settle()
        assert world.heard_by(heard) == [ask(1)]


async def test_an_undeliverable_message_is_reported(autojump_clock):
    async with open_bus() as world:
        lost: list = []
        ref = await mini_bus(world, lost)
        component = await world.supervisor.start_child(ChildSpec("x", partial(Listener, [])))
        await ref.ask(partial(ListenerAdded, C, component, "loader"))
        await ref.tell(Delivery(ask(1), B))
        await world.settle()
        assert [each.code for each in lost] == [Code.NOT_FOUND]
        await ref.ask(partial(ListenerRemoved, C, component, "loader"))


async def listening(world, ref, *names):
    """Let some listen for everything in one sandbox; return what each hears, and who they are."""
    heard = {name: [] for name in names}
    refs = {}
    for name, mine in heard.items():
        spec = ChildSpec(name, partial(Listener, mine))
        refs[name] = await world.supervisor.start_child(spec)
        await ref.ask(partial(ListenerAdded, B, refs[name], "loader"))
    return heard, refs


async def test_all_listeners_in_a_sandbox_get_their_copy():
    """BUS-04, I-B2: also who comes later, and who stays when another goes."""
    async with open_bus() as world:
        ref = await mini_bus(world, [])
        heard, refs = await listening(world, ref, "one", "two", "three")
        await ref.tell(Delivery(ask(1), B))
        await ref.ask(partial(ListenerRemoved, B, refs["one"], "loader"))
        await ref.tell(Delivery(ask(2), B))
        await world.settle()
        ids = {name: [each.message.id for each in mine] for name, mine in heard.items()}
    assert ids == {"one": [1], "two": [1, 2], "three": [1, 2]}


async def test_a_component_that_reads_nothing_delays_no_other_of_its_sandbox():
    class Stuck(Listener):
        async def handle(self, message):
            await trio.sleep_forever()

    async with open_bus() as world:
        lost: list = []
        ref = await mini_bus(world, lost)
        stuck = ChildSpec("stuck", partial(Stuck, []), mailbox=1)
        component = await world.supervisor.start_child(stuck)
        await ref.ask(partial(ListenerAdded, B, component, "loader"))
        heard, _ = await listening(world, ref, "two")
        for number in range(1, 5):
            await ref.tell(Delivery(ask(number), B))
            await world.settle()
        assert [each.message.id for each in heard["two"]] == [1, 2, 3, 4]
        assert lost == []
        await world.supervisor.stop_child("stuck")


async def test_a_message_for_a_full_mailbox_is_reported(autojump_clock):
    class Stuck(Listener):
        async def handle(self, message):
            await trio.sleep_forever()

    async with open_bus() as world:
        lost: list = []
        ref = await mini_bus(world, lost)
        with trio.move_on_after(60):
            component = await world.supervisor.start_child(
                ChildSpec("stuck", partial(Stuck, []), mailbox=2)
            )
            await ref.ask(partial(ListenerAdded, "*", component, "loader"))
            for number in range(1, 5):
                await ref.tell(Delivery(ask(number), B))
                await world.settle()
            assert [each.code for each in lost] == [Code.UNAVAILABLE]
