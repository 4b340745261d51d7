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
            await world.registrar.unregister(A)
        await trio.sleep(3 * PERIOD)
        assert world.said() == [CREATE, KEEP]
        assert world.heard[-1].message.body["value"] == "disconnected"


async def test_an_unregistered_hyperty_is_not_registered_again_after_a_restart_of_the_node(
    autojump_clock,
):
    """REG-08, REG-09."""
    async with open_world() as world:
        await world.register()
        await world.registrar.unregister(A)
        await world.registrar.register_all_again()
        await trio.sleep(5)
        assert world.said() == [CREATE, KEEP]


async def test_a_hyperty_that_was_unregistered_too_early_can_register_at_once(autojump_clock):
    """REG-09: the late answer to the first registration does not end the second one."""
    async with open_world() as world:
        await trio.sleep(0.1)
        with trio.move_on_after(0.1):
            await world.register()
        await world.registrar.unregister(A)
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
        assert (caught.value.code, caught.value.url) == (Code.FORBIDDEN, A)
        assert world.said() == [CREATE, CREATE]


async def test_registering_an_address_again_updates_its_record(autojump_clock):
    """REG-06: there is one record of it, and one keep-alive."""
    async with open_world() as world:
        await world.register()
        await world.register()
        await trio.sleep(1.5 * PERIOD)
        assert world.said() == [CREATE, CREATE, KEEP]


async def test_after_a_new_session_everything_is_claimed_and_registered_again(autojump_clock):
    """STB-09, C-44."""
    async with open_world() as world:
        await world.register()
        await world.registrar.register_all_again()
        assert world.said() == [CREATE, CREATE]
        assert [one.message.body for one in world.claims.heard] == [{"resources": [A], "source": R}]


async def test_records_say_how_the_runtime_is_reached_once_it_takes_links(autojump_clock):
    """C-71."""
    async with open_world() as world:
        await world.register()
        world.registrar.accept_links(f"{R}/p2phandler/1", "hyperty-catalogue://a.ex/requester")
        await world.register()
        first, second = (one.message.body["value"] for one in world.heard)
        assert "p2pHandler" not in first
        assert second["p2pHandler"] == f"{R}/p2phandler/1"
        assert second["p2pRequester"] == "hyperty-catalogue://a.ex/requester"


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


async def test_a_record_unregistered_before_the_answer_is_disconnected_after_it(autojump_clock):
    ends = []
    async with open_silent() as world, trio.open_nursery() as nursery:
        nursery.start_soon(note, ends, world.register)
        await world.bus.settle()
        await world.registrar.unregister(A)
        await reply(world)
        assert world.heard[-1].message.body["value"] == "disconnected"
        await reply(world)
        await trio.sleep(2 * PERIOD)
    assert (ends, world.said()) == ([Code.GONE], [CREATE, KEEP])


@pytest.mark.parametrize("is_claiming", [False, True])
async def test_a_record_unregistered_before_a_refusal_is_tried_no_further(
    is_claiming, autojump_clock
):
    """REG-09: its address may be another's by now."""
    ends = []
    async with open_silent() as world, trio.open_nursery() as nursery:
        nursery.start_soon(note, ends, world.register)
        await world.bus.settle()
        if is_claiming:
            await reply(world, Code.FORBIDDEN)
        await world.registrar.unregister(A)
        if is_claiming:
            await reply(world.claims)
        else:
            await reply(world, Code.FORBIDDEN)
        await trio.sleep(2 * PERIOD)
        claims = [(MessageType.SUBSCRIBE.value, SM)] if is_claiming else []
        assert (world.said(), world.claims.said()) == ([CREATE], claims)
    assert ends == [Code.FORBIDDEN]


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


async def test_a_hyperty_unregistered_during_its_claim_stays_unregistered(autojump_clock):
    async with open_silent() as world, trio.open_nursery() as nursery:
        nursery.start_soon(world.register)
        await world.bus.settle()
        await reply(world)
        nursery.start_soon(world.registrar.register_all_again)
        await world.bus.settle()
        nursery.start_soon(world.registrar.unregister, A)
        await world.bus.settle()
        await reply(world.claims)
        await reply(world)
    assert world.said() == [CREATE, KEEP]


async def test_a_record_that_replaces_another_during_its_claim_stays(autojump_clock):
    """REG-06: the node has forgotten the former one, which does not come back."""
    async with open_silent() as world, trio.open_nursery() as nursery:
        nursery.start_soon(world.register)
        await world.bus.settle()
        await reply(world)
        nursery.start_soon(world.registrar.register_all_again)
        nursery.start_soon(world.registrar.register, attrs.evolve(RECORD, name="bob"))
        await world.bus.settle()
        await reply(world)
        await reply(world.claims)
    assert world.said() == [CREATE, CREATE]


async def test_records_are_registered_again_when_the_caller_does_not_wait(autojump_clock):
    async with open_silent() as world:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.register)
            await world.bus.settle()
            await reply(world)
            nursery.start_soon(world.registrar.register_all_again)
            await world.bus.settle()
            nursery.cancel_scope.cancel()
        await reply(world.claims)
        assert world.said() == [CREATE, CREATE]


async def test_a_registry_that_does_not_answer_is_not_waited_for_without_end(autojump_clock):
    ends = []
    async with open_silent() as world:
        with trio.fail_after(60):
            await note(ends, world.register)
    assert ends == [Code.TIMEOUT]


async def test_who_waits_when_the_runtime_closes_gets_an_error_and_who_calls_later_too(
    autojump_clock,
):
    ends = []
    with trio.fail_after(5):
        async with trio.open_nursery() as outside, open_silent() as world:
            outside.start_soon(note, ends, world.register)
            await world.bus.settle()
            await reply(world)
            outside.start_soon(note, ends, world.register)
            outside.start_soon(note, ends, world.registrar.register_all_again)
            await world.bus.settle()
            outside.start_soon(note, ends, world.registrar.unregister, A)
            await world.bus.settle()
        await note(ends, world.register)
        await note(ends, world.registrar.register_all_again)
    assert ends == [None, *[ActorStoppedError] * 5]
