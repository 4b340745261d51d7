"""Addresses of a runtime: answers of the node, calls that are cancelled, and the end."""

import trio

from actors.kit.errors import ActorStoppedError
from actors.kit.ids import IdSource
from actors.runtime.registry.allocation import AddressAllocation, AllocationError
from fsm.registry.allocation import Purpose
from specs.addresses.address import address_allocation, subscription_manager
from specs.bodies.registry import Allocated
from specs.errors import BadMessageError
from specs.message import MessageType, reply_to
from specs.reply_code import Code
from tests.support.runtime.runtime_parts import R, open_bus
from tests.support.wire.wire import A, B
from transports.bodies import write_body

NODE = address_allocation("a.ex")
PURPOSE = Purpose("hyperty", "hyperty-catalogue://catalogue.a.ex/.well-known/hyperty/Echo")
PATHS = subscription_manager("a.ex")


class Allocation:
    """An address allocation, and the node, which is the test itself."""

    def __init__(self, world, requests):
        port = world.port(f"{R}/address-allocation")
        self.world = world
        self.requests = requests
        self.parts = AddressAllocation("a.ex", port, IdSource(), world.tasks)

    def types(self):
        return [one.message.type for one in self.requests]

    async def answer(self, code=Code.OK, *addresses):
        """Answer the last request."""
        value = write_body(Allocated(addresses)) if addresses else {}
        request = self.requests[-1].message
        await self.world.port(NODE).post(reply_to(request, code, {"value": value}))


async def open_allocation(world):
    await world.component(f"{R}/address-allocation")
    return Allocation(world, await world.component(NODE))


async def call(ends, method, *args):
    """Note the result of a call, or its error."""
    try:
        ends.append(await method(*args))
    except (AllocationError, ActorStoppedError, BadMessageError) as error:
        ends.append(type(error))


async def test_addresses_that_nobody_waits_for_any_more_are_given_back():
    async with open_bus() as world, trio.open_nursery() as nursery:
        allocation = await open_allocation(world)
        nursery.start_soon(allocation.parts.allocate, "hyperty", 1)
        await world.settle()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await world.settle()
            await allocation.answer(Code.OK, A)
            await world.settle()
    assert allocation.types() == [MessageType.CREATE, MessageType.DELETE]
    assert allocation.requests[-1].message.body == {"childrenResources": [A]}


async def test_who_waits_when_the_runtime_closes_gets_an_error_and_who_calls_later_too(
    autojump_clock,
):
    ends = []
    with trio.fail_after(5):
        async with trio.open_nursery() as outside, open_bus() as world:
            allocation = await open_allocation(world)
            allocation.parts.keep(B, PURPOSE)
            outside.start_soon(call, ends, allocation.parts.allocate, "hyperty", 1)
            outside.start_soon(call, ends, allocation.parts.free, (A,))
            outside.start_soon(call, ends, allocation.parts.claim_all)
            await world.settle()
        await call(ends, allocation.parts.allocate, "hyperty", 1)
        await call(ends, allocation.parts.free, (A,))
    assert ends == [ActorStoppedError] * 5


async def claim_both(world, nursery):
    """Begin to claim two addresses again; return the allocation, and the claims as they come."""
    allocation = await open_allocation(world)
    claims = await world.component(PATHS)
    for address in (A, B):
        allocation.parts.keep(address, PURPOSE)
    nursery.start_soon(allocation.parts.claim_all)
    return allocation, claims


async def test_addresses_beside_one_that_is_lost_are_claimed_alone(autojump_clock):
    async with open_bus() as world, trio.open_nursery() as nursery:
        _, claims = await claim_both(world, nursery)
        for code in (Code.FORBIDDEN, Code.FORBIDDEN, Code.OK):
            await world.settle()
            await world.port(PATHS).post(reply_to(claims[-1].message, code))
    assert [one.message.body["resources"] for one in claims] == [[A, B], [A], [B]]


async def test_an_address_that_is_given_back_meanwhile_is_not_claimed_again(autojump_clock):
    async with open_bus() as world, trio.open_nursery() as nursery:
        allocation, claims = await claim_both(world, nursery)
        await world.settle()
        nursery.start_soon(allocation.parts.free, (A,))
        await world.settle()
        await allocation.answer()
        await trio.sleep(20)
        await world.port(PATHS).post(reply_to(claims[-1].message, Code.OK))
    assert [one.message.body["resources"] for one in claims][:2] == [[A, B], [B]]
