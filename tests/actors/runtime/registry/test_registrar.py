"""What a runtime's registry says of its hyperties to the domain registry, and keeps alive."""

from contextlib import asynccontextmanager

import attrs
import pytest
import trio
import trio.testing

from actors.kit.errors import ActorStoppedError
from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Delivery
from actors.runtime.registry.registrations import Registrar, RegistrationError
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
    registrar: Registrar
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
        await self.registrar.register(RECORD)


@asynccontextmanager
async def open_world(*codes):
    async with open_bus() as bus, trio.open_nursery() as nursery:
        url = f"{R}/registry"
        await bus.component(url)
        heard = await bus.component(DR)
        sm = await bus.component(SM)
        registrar = Registrar(bus.port(url), IdSource(), bus.tasks)
        bus.tasks.spawn(registrar.keep_alive)
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


async def test_a_registry_that_cannot_answer_now_is_asked_again_soon(autojump_clock):
    """REG-08."""
    async with open_world(Code.OK, Code.UNAVAILABLE) as world:
        await world.register()
        await trio.sleep(PERIOD + RETRY_COOL_DOWN + 2)
        assert world.said() == [CREATE, KEEP, KEEP]


# ---- calls that meet, are cancelled, or wait at the end


@asynccontextmanager
async def open_silent():
    """A registrar, and services that do not answer by themselves."""
    async with open_bus() as bus:
        url = f"{R}/registry"
        await bus.component(url)
        heard, claims = await bus.component(DR), await bus.component(SM)
        registrar = Registrar(bus.port(url), IdSource(), bus.tasks)
        bus.tasks.spawn(registrar.keep_alive)
        world = World(bus, registrar, heard)
        world.claims = World(bus, registrar, claims)
        yield world


async def reply(world, code=Code.OK):
    """Answer the last request, and let the registrar go on."""
    request = world.heard[-1].message
    await world.bus.port(request.to).post(reply_to(request, code))
    await world.bus.settle()


async def note(ends, call, *args):
    """Note how a call ends: by the type of its error, or None."""
    try:
        await call(*args)
    except (RegistrationError, ActorStoppedError) as error:
        ends.append(error.code if isinstance(error, RegistrationError) else type(error))
    else:
        ends.append(None)


@pytest.mark.parametrize("is_unregistered", [False, True])
async def test_a_registration_goes_on_when_its_caller_is_cancelled(is_unregistered, autojump_clock):
    """What the registry has is either kept alive or disconnected."""
    async with open_silent() as world:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.register)
            await world.bus.settle()
            nursery.cancel_scope.cancel()
        if is_unregistered:
            await world.registrar.unregister(A)
        await reply(world)
        await trio.sleep(PERIOD + 1)
        assert world.said() == [CREATE, KEEP]
        assert world.heard[-1].message.body.get("value") == (
            "disconnected" if is_unregistered else None
        )


async def test_of_two_registrations_of_an_address_the_later_one_counts(autojump_clock):
    ends = []
    async with open_silent() as world, trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(note, ends, world.register)
            await world.bus.settle()
        first, second = (one.message for one in world.heard)
        for request in (first, second):
            await world.bus.port(DR).post(reply_to(request, Code.OK))
            await world.bus.settle()
        assert (ends, world.said()) == ([Code.GONE, None], [CREATE, CREATE])
        await trio.sleep(PERIOD + 1)
        assert world.said() == [CREATE, CREATE, KEEP]
        nursery.cancel_scope.cancel()
