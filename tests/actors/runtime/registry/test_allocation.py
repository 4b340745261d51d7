"""Addresses of a runtime: answers of the node, calls that are cancelled, and the end."""

import pytest
import trio

from actors.kit.errors import ActorStoppedError
from actors.kit.ids import IdSource
from actors.runtime.registry.allocation import AddressAllocation, AllocationError
from fsm.registry.allocation import Purpose
from specs.addresses.address import address_allocation, subscription_manager
from specs.bodies.registry import Allocated
from specs.errors import BadMessageError
from specs.limits.protocol import MAX_LIST
from specs.message import MessageType, reply_to
from specs.reply_code import Code
from tests.support.runtime.domain import open_domain
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


async def test_addresses_come_from_the_node_and_go_back():
    ends = []
    async with open_bus() as world, trio.open_nursery() as nursery:
        allocation = await open_allocation(world)
        nursery.start_soon(call, ends, allocation.parts.allocate, "hyperty", 2)
        await world.settle()
        await allocation.answer(Code.OK, A, B)
        await world.settle()
        nursery.start_soon(call, ends, allocation.parts.free, (A,))
        await world.settle()
        await allocation.answer()
    assert ends == [(A, B), None]
    assert allocation.requests[-1].message.body == {"childrenResources": [A]}


@pytest.mark.parametrize(
    ("code", "addresses", "error"),
    [(403, (), AllocationError), (200, (), BadMessageError), (200, (A, B), BadMessageError)],
)
async def test_any_other_answer_is_an_error(code, addresses, error):
    ends = []
    async with open_bus() as world, trio.open_nursery() as nursery:
        allocation = await open_allocation(world)
        nursery.start_soon(call, ends, allocation.parts.allocate, "hyperty", 1)
        await world.settle()
        await allocation.answer(code, *addresses)
    assert ends == [error]


async def test_a_refused_return_of_addresses_is_an_error():
    ends = []
    async with open_bus() as world, trio.open_nursery() as nursery:
        allocation = await open_allocation(world)
        nursery.start_soon(call, ends, allocation.parts.free, (A,))
        await world.settle()
        await allocation.answer(403)
    assert ends == [AllocationError]


async def test_addresses_go_back_though_the_node_refuses_others():
    ends = []
    async with open_bus() as world, trio.open_nursery() as nursery:
        allocation = await open_allocation(world)
        addresses = tuple(f"{A}/{number}" for number in range(MAX_LIST + 1))
        nursery.start_soon(call, ends, allocation.parts.free, addresses)
        for code in (403, 200):
            await world.settle()
            await allocation.answer(code)
    bodies = [one.message.body["childrenResources"] for one in allocation.requests]
    assert ends == [AllocationError]
    assert [len(body) for body in bodies] == [MAX_LIST, 1]


async def test_a_node_that_does_not_answer_is_not_waited_for_without_end(autojump_clock):
    ends = []
    async with open_bus() as world:
        allocation = await open_allocation(world)
        with trio.fail_after(60):
            await call(ends, allocation.parts.allocate, "hyperty", 1)
            await call(ends, allocation.parts.free, (A,))
    assert ends == [AllocationError, AllocationError]


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


async def test_an_address_that_comes_with_the_cancellation_is_given_or_goes_back():
    ends = []
    async with open_bus() as world:
        allocation = await open_allocation(world)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, ends, allocation.parts.address_for, PURPOSE, None)
            await world.settle()
            await allocation.answer(Code.OK, A)
            nursery.cancel_scope.cancel()
        await world.settle()
        is_freed = MessageType.DELETE in allocation.types()
    assert is_freed != bool(ends)


async def test_a_kept_address_is_given_to_the_first_of_two_tasks_only():
    ends = []
    async with open_bus() as world, trio.open_nursery() as nursery:
        allocation = await open_allocation(world)
        allocation.parts.keep(A, PURPOSE)
        for _ in range(2):
            nursery.start_soon(call, ends, allocation.parts.address_for, PURPOSE, None)
        await world.settle()
        await allocation.answer(Code.OK, B)
    assert [(one.address, one.is_new) for one in ends] == [(A, False), (B, True)]


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


async def test_the_address_of_the_allocation_takes_no_requests(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        to = f"{domain['alice'].runtime.url}/address-allocation"
        for member in (domain["alice"], domain["bob"]):
            for kind in (MessageType.READ, MessageType.SUBSCRIBE, MessageType.DELETE):
                answer = await member.hyperty.ask(to, kind, {"resource": to})
                assert answer.code == Code.MALFORMED
