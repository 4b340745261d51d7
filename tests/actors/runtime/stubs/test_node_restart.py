"""A node that comes back without memory: runtimes claim what was theirs (STB-09, C-44)."""

from contextlib import AsyncExitStack, asynccontextmanager

import attrs
import pytest
import trio

from actors.kit.ids import IdSource
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.node.login.provider import Login
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.stubs.credentials import NO_CREDENTIALS, Credentials
from fsm.judge.trace_line import Verdict
from specs.addresses.address import domain_registry
from specs.limits.node import RETURN_TIME
from specs.limits.protocol import RETRY_AFTER
from specs.message import MessageType
from specs.trace import Kind
from tests.support.runtime.domain import Echo, Member, counted_bytes, judged
from tests.support.trace.awaitable_tracer import AwaitableTracer
from transports.link import Kind as Carrier
from transports.memory import MemoryNetwork

NODE = "ws://127.0.0.1:4000/link"
HANDLERS_PLACE = "127.0.0.1:40001"
"""Where the second to listen for P2P links listens."""


@attrs.define
class Place:
    """A node that can be stopped and started, and two runtimes."""

    login: Login | None = None
    credentials: Credentials = NO_CREDENTIALS
    network: MemoryNetwork = attrs.field(factory=MemoryNetwork)
    nursery: trio.Nursery | None = None
    node: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    tracer: AwaitableTracer = attrs.field(factory=AwaitableTracer)
    members: list[Member] = attrs.field(factory=list)

    async def start_node(self) -> None:
        self.node, self.tracer = trio.CancelScope(), AwaitableTracer()
        await self.nursery.start(self._run_node)

    async def _run_node(self, task_status) -> None:
        ids = IdSource(int(trio.current_time() * 1000))
        config = NodeConfig(domain="a.ex", listen="127.0.0.1:4000", ids=ids, login=self.login)
        with self.node:
            async with open_node(config, self.network, self.tracer):
                task_status.started()
                await trio.sleep_forever()

    async def restart_node(self, pause: float) -> None:
        self.node.cancel()
        await trio.sleep(pause)
        await self.start_node()

    async def join(self, stack: AsyncExitStack, name: str, kinds: tuple[Carrier, ...]) -> None:
        tracer, hyperty = AwaitableTracer(), Echo()
        entropy = counted_bytes(1 + len(self.members))
        config = RuntimeConfig(
            domain="a.ex", name=name, node=NODE, kinds=kinds, entropy=entropy,
            credentials=self.credentials,
        )  # fmt: skip
        runtime = await stack.enter_async_context(open_runtime(config, self.network, tracer))
        address = await runtime.deploy(name, lambda: hyperty)
        self.members.append(Member(runtime, tracer, hyperty, address))


@asynccontextmanager
async def open_place(*kinds, **more):
    place = Place(**more)
    async with trio.open_nursery() as place.nursery:
        await place.start_node()
        async with AsyncExitStack() as stack:
            await place.join(stack, "ra", kinds)
            await place.join(stack, "rb", kinds)
            yield place
        place.node.cancel()


# With this entropy an attempt is made at 0.3, 0.9, 2.2, 4.7 seconds and then every 5.04.
@pytest.mark.parametrize(
    ("pause", "first"),
    [
        pytest.param(0.5, {200, 503}, id="back between two attempts"),
        pytest.param(61, {200, 503}, id="back long after the attempts worth waiting for"),
        pytest.param(55.3, {503}, id="asked within half a second of an attempt in vain"),
    ],
)
async def test_after_a_restart_of_the_node_all_is_answered_and_soon_with_200(
    pause, first, autojump_clock
):
    async with open_place() as place:
        one, other = place.members
        assert (await one.ask(other, 1)).code == 200
        await place.restart_node(pause)
        assert (await one.ask(other, 2)).code in first
        await trio.sleep(10)
        assert (await one.ask(other, 3)).code == 200
        assert (await other.ask(one, 4)).code == 200
    assert {judged(member).verdict for member in place.members} == {Verdict.CONFORMANT}


async def test_after_a_restart_records_are_live_and_go_with_their_runtime(autojump_clock):
    async with open_place() as place:
        await place.restart_node(1)
        await trio.sleep(10)
        await place.members[0].runtime.undeploy(place.members[0].address)
    last = {(f.machine, f.key): f.new for f in place.tracer.facts if f.k is Kind.STATE}
    for member in place.members:
        assert last["registration", member.address] == "disconnected"
        assert last["address", member.address] == "released"


async def test_a_link_made_before_the_restart_still_finds_help_after_a_cut(autojump_clock):
    """The requester cannot dial: it pleads, over paths that the new node must know."""
    async with open_place(Carrier.TCP) as place:
        one, other = place.members
        place.network.refuse(HANDLERS_PLACE)
        await one.ask(other, 1)
        await one.wait_for("live", other)
        await other.wait_for("live", one)
        await place.restart_node(1)
        await trio.sleep(10)
        for wire in place.network.open_wires(Carrier.TCP):
            wire.cut()
        await trio.sleep(0.1)
        await one.wait_for("live", other)
        assert [entry.link[-1] for entry in await one.runtime.links()] == ["1"]
        assert (await one.ask(other, 2)).via[0].endswith("/conn/1")
    assert {judged(member).verdict for member in place.members} == {Verdict.CONFORMANT}


async def test_a_stub_in_place_of_one_that_crashed_renews_before_it_sends(
    autojump_clock, monkeypatch
):
    """STB-09: its runtime has claimed what the node has forgotten before the first request goes."""
    async with open_place() as place:
        one, other = place.members
        dial, dialled = place.network.dial, []

        async def crash(*args):
            dialled.append(args)
            if len(dialled) <= len(place.members):
                raise RuntimeError("no error of a network")
            return await dial(*args)

        monkeypatch.setattr(place.network, "dial", crash)
        await place.restart_node(1)
        assert len(dialled) == len(place.members)
        assert (await one.ask(other, 1)).code == 404  # it has not come back yet
        assert (await other.ask(one, 2)).code == 200
        assert (await one.ask(other, 3)).code == 200


async def test_what_a_restarted_node_does_not_know_may_come_back_for_a_while(autojump_clock):
    """MN-08: 503 with `retryAfter` in the first seconds, 404 before the restart and after them."""
    async with open_place() as place:
        one, other = place.members
        absent = attrs.evolve(other, address="hyperty://a.ex/absent")
        assert (await one.ask(absent, 1)).code == 404
        await place.restart_node(1)
        answer = await one.ask(absent, 2)
        assert (answer.code, answer.body["retryAfter"]) == (503, RETRY_AFTER)
        assert (await search(one)).code == 503
        await trio.sleep(RETURN_TIME)
        assert (await one.ask(absent, 3)).code == 404
        assert (await search(one)).code == 404


async def search(member):
    body = {"resource": "/hyperty/name/absent"}
    registry = domain_registry("a.ex")
    return await member.runtime.order("discovery", MessageType.READ, registry, body)
