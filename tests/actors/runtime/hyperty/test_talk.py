"""What a runtime's parts ask services of, and what they make of the answers."""

from functools import partial

import pytest
import trio
import trio.testing
from typing_extensions import override

from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Actor
from actors.kit.supervision.delivery import Delivery
from actors.kit.supervision.supervisor import ChildSpec
from actors.runtime.bus.messages import ListenerAdded, ListenerRemoved, Origin
from actors.runtime.bus.mini_bus import MiniBus
from actors.runtime.bus.ports import CorePort
from actors.runtime.hop_trace import HopTrace
from actors.runtime.registry.registrations import (
    RegisterWanted,
    Registrar,
    RegistrationError,
    ReplayWanted,
    UnregisterWanted,
)
from specs.addresses.address import domain_registry, subscription_manager
from specs.bodies.registry import Record
from specs.limits.protocol import RETRY_COOL_DOWN
from specs.message import MessageType, reply_to
from specs.reply_code import Code
from tests.support.runtime.runtime_parts import Listener, R, open_bus
from tests.support.wire.wire import A, B, C, ask

RECORD = Record(A, R, expires=220)


class Service(Actor[Delivery]):
    """Answers with the codes it was given, then with 200."""

    def __init__(self, port: CorePort, codes: list[int], heard: list, value: object) -> None:
        self._port = port
        self._codes = codes
        self._heard = heard
        self._value = value

    @override
    async def handle(self, message: Delivery) -> None:
        self._heard.append((message.message.type, message.message.body))
        code = self._codes.pop(0) if self._codes else 200
        value = {} if self._value is None else {"value": self._value}
        await self._port.post(reply_to(message.message, Code(code), value))


async def serve(world, address, *codes, value=None, heard=None):
    heard = [] if heard is None else heard
    make = partial(Service, world.port(address), list(codes), heard, value)
    ref = await world.supervisor.start_child(ChildSpec(address, make))
    world.agent.admit(address, Origin.LOCAL, ref)
    return heard


async def registrar(world, *codes):
    heard = await serve(world, domain_registry("a.ex"), *codes)
    await serve(world, subscription_manager("a.ex"), heard=heard)
    return await lone_registrar(world), heard


async def lone_registrar(world):
    port = world.port(f"{R}/registry")
    listener = await world.supervisor.start_child(ChildSpec("r", partial(Listener, [])))
    await port.add_listener(port.url, listener)
    make = partial(Registrar, port, IdSource())
    return await world.supervisor.start_child(ChildSpec("registrar", make))


def types(heard):
    return [kind.value for kind, _ in heard]


async def test_a_record_is_kept_alive_until_it_is_unregistered(autojump_clock):
    async with open_bus() as world:
        ref, heard = await registrar(world)
        await ref.ask(partial(RegisterWanted, RECORD))
        await trio.sleep(250)
        assert types(heard) == ["create", "update", "update"]
        await ref.ask(partial(UnregisterWanted, A))
        await ref.ask(partial(UnregisterWanted, A))
        await trio.sleep(1000)
        assert heard[3:] == [
            (
                MessageType.UPDATE,
                {"resource": A, "attribute": "status", "value": "disconnected"},
            )
        ]


async def test_a_record_the_registry_forgot_is_registered_anew(autojump_clock):
    async with open_bus() as world:
        ref, heard = await registrar(world, 200, 404)
        await ref.ask(partial(RegisterWanted, RECORD))
        await trio.sleep(101)
        assert types(heard) == ["create", "update", "subscribe", "create"]


async def test_a_keep_alive_that_fails_is_repeated_soon(autojump_clock):
    async with open_bus() as world:
        ref, heard = await registrar(world, 200, 503)
        await ref.ask(partial(RegisterWanted, RECORD))
        await trio.sleep(100 + RETRY_COOL_DOWN + 1)
        assert types(heard) == ["create", "update", "update"]


async def test_after_a_new_session_everything_is_claimed_and_registered_again(autojump_clock):
    async with open_bus() as world:
        ref, heard = await registrar(world)
        await ref.ask(partial(RegisterWanted, RECORD))
        await ref.ask(ReplayWanted)
        await trio.sleep(1)
        assert types(heard) == ["create", "subscribe", "create"]
        assert heard[1][1] == {"resources": [A], "source": R}


async def test_a_hyperty_unregistered_during_its_claim_stays_unregistered(autojump_clock):
    async with open_bus() as world:
        ref, heard = await registrar(world)
        await ref.ask(partial(RegisterWanted, RECORD))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ref.ask, ReplayWanted)
            await trio.lowlevel.checkpoint()
            await ref.ask(partial(UnregisterWanted, A))
        assert sorted(types(heard)) == ["create", "subscribe", "update"]


async def test_a_cancelled_registration_is_undone(autojump_clock):
    async with open_bus() as world, trio.open_nursery() as nursery:
        registry = domain_registry("a.ex")
        heard = await world.component(registry)
        ref = await lone_registrar(world)
        nursery.start_soon(refused, ref, Code.GONE)
        await world.settle()
        await ref.ask(partial(UnregisterWanted, A))
        await world.port(registry).post(reply_to(heard[0].message, Code.OK))
        await world.settle()
        assert [each.message.body.get("value") for each in heard][1:] == ["disconnected"]
        await world.port(registry).post(reply_to(heard[1].message, Code.OK))


async def refused(ref, code):
    """Ask for a registration, and get the answer that there is none."""
    with pytest.raises(RegistrationError) as caught:
        await ref.ask(partial(RegisterWanted, RECORD))
    assert caught.value.code == code


async def test_a_refused_registration_says_why(autojump_clock):
    async with open_bus() as world:
        ref, _ = await registrar(world, 403, 403)
        with pytest.raises(RegistrationError, match="403") as caught:
            await ref.ask(partial(RegisterWanted, RECORD))
        assert caught.value.url == A


# ---- a MiniBUS


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
