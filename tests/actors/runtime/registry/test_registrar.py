"""What a runtime's registry says of its hyperties to the domain registry, and keeps alive."""

from contextlib import asynccontextmanager
from functools import partial

import attrs
import pytest
import trio
import trio.testing

from actors.kit.ids import IdSource
from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.delivery import Delivery
from actors.kit.supervision.supervisor import ChildSpec
from actors.runtime.registry.registrations import (
    RegisterWanted,
    Registrar,
    RegistrarMessage,
    RegistrationError,
    ReplayWanted,
    UnregisterWanted,
)
from specs.addresses.address import domain_registry, subscription_manager
from specs.bodies.registry import Record
from specs.limits.protocol import KEEP_ALIVE_SHARE, RETRY_COOL_DOWN
from specs.message import MessageType, reply_to
from specs.reply_code import Code
from tests.support.runtime.runtime_parts import BusWorld, R, open_bus
from tests.support.wire.wire import A

DOMAIN = "a.ex"
DR, SM = domain_registry(DOMAIN), subscription_manager(DOMAIN)
RECORD = Record(A, R, name="alice")
PERIOD = RECORD.expires / KEEP_ALIVE_SHARE


@attrs.define
class World:
    """A registrar, and a service of the node, which answers as `codes` says, then 200."""

    bus: BusWorld
    registrar: ActorRef[RegistrarMessage]
    heard: list[Delivery]
    codes: list[int] = attrs.field(factory=list)
    claims: "World | None" = None

    async def answer(self):
        done = 0
        while True:
            await trio.testing.wait_all_tasks_blocked()
            for delivery in self.heard[done:]:
                code = self.codes.pop(0) if self.codes else Code.OK
                await self.bus.port(delivery.message.to).post(reply_to(delivery.message, code))
            done = len(self.heard)
            await trio.sleep(0.5)

    def said(self):
        """What the services were asked: verb, and what about."""
        return [(one.message.type.value, one.message.to) for one in self.heard]

    async def register(self):
        await self.registrar.ask(lambda reply: RegisterWanted(RECORD, reply))


@asynccontextmanager
async def open_world(*codes):
    async with open_bus() as bus, trio.open_nursery() as nursery:
        url = f"{R}/registry"
        await bus.component(url)
        heard = await bus.component(DR)
        sm = await bus.component(SM)
        make = partial(Registrar, bus.port(url), IdSource())
        registrar = await bus.supervisor.start_child(ChildSpec("registrar", make))
        claims = World(bus, registrar, sm)
        world = World(bus, registrar, heard, list(codes), claims)
        for service in (world, claims):
            nursery.start_soon(service.answer)
        yield world
        nursery.cancel_scope.cancel()


KEEP = (MessageType.UPDATE.value, DR)
CREATE = (MessageType.CREATE.value, DR)


async def test_a_record_is_kept_alive_before_it_runs_out(autojump_clock):
    """REG-08."""
    async with open_world() as world:
        await world.register()
        await trio.sleep(3.5 * PERIOD)
        assert world.said() == [CREATE, KEEP, KEEP, KEEP]


async def test_a_registry_that_has_forgotten_a_record_is_sent_all_of_it(autojump_clock):
    """REG-08, C-53: its address is claimed first, which the node does not know as ours."""
    async with open_world(Code.OK, Code.NOT_FOUND) as world:
        await world.register()
        await trio.sleep(1.5 * PERIOD)
        assert world.said() == [CREATE, KEEP, CREATE]
        assert world.claims.said() == [(MessageType.SUBSCRIBE.value, SM)]


async def test_a_registry_that_cannot_answer_now_is_asked_again_soon(autojump_clock):
    """REG-08."""
    async with open_world(Code.OK, Code.UNAVAILABLE) as world:
        await world.register()
        await trio.sleep(PERIOD + RETRY_COOL_DOWN + 2)
        assert world.said() == [CREATE, KEEP, KEEP]


async def test_an_unregistered_hyperty_is_not_kept_alive(autojump_clock):
    """REG-08, REG-09 (U-43): its status is set, and that is the last word of it."""
    async with open_world() as world:
        await world.register()
        for _ in range(2):
            await world.registrar.ask(lambda reply: UnregisterWanted(A, reply))
        await trio.sleep(3 * PERIOD)
        assert world.said() == [CREATE, KEEP]
        assert world.heard[-1].message.body["value"] == "disconnected"


async def test_an_unregistered_hyperty_is_not_registered_again_after_a_restart_of_the_node(
    autojump_clock,
):
    """REG-08, REG-09."""
    async with open_world() as world:
        await world.register()
        await world.registrar.ask(lambda reply: UnregisterWanted(A, reply))
        await world.registrar.ask(ReplayWanted)
        await trio.sleep(5)
        assert world.said() == [CREATE, KEEP]


async def test_a_hyperty_that_was_unregistered_too_early_can_register_at_once(autojump_clock):
    """REG-09: the late answer to the first registration does not end the second one."""
    async with open_world() as world:
        await trio.sleep(0.1)
        with trio.move_on_after(0.1):
            await world.register()
        await world.registrar.ask(lambda reply: UnregisterWanted(A, reply))
        await world.register()
        await trio.sleep(1.5 * PERIOD)
        assert world.said() == [CREATE, CREATE, KEEP]
        assert "value" not in world.heard[-1].message.body


async def test_a_record_that_is_refused_is_not_kept(autojump_clock):
    """REG-06, HYP-01: also when its address, which the node may have forgotten, is claimed."""
    async with open_world(Code.FORBIDDEN, Code.FORBIDDEN) as world:
        with pytest.raises(RegistrationError) as caught:
            await world.register()
        await trio.sleep(2 * PERIOD)
        assert (caught.value.code, world.said()) == (Code.FORBIDDEN, [CREATE, CREATE])


async def test_registering_an_address_again_updates_its_record(autojump_clock):
    """REG-06: there is one record of it, and one keep-alive."""
    async with open_world() as world:
        await world.register()
        await world.register()
        await trio.sleep(1.5 * PERIOD)
        assert world.said() == [CREATE, CREATE, KEEP]
