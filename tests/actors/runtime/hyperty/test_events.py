"""Events from hyperty to hyperty: in a runtime, by the node, by a link, to other domains."""

from contextlib import AsyncExitStack, asynccontextmanager

import attrs
import pytest
import trio

import actors
from specs.addresses.address import inbox_of, is_inbox
from specs.limits.protocol import BODY_BYTES, EVENTS_WAITING
from specs.message import Message, MessageType
from tests.actors.runtime.hyperty.listener_apart import Ear
from tests.support.trace.memory import MemoryTracer
from transports.memory import MemoryNetwork


@attrs.frozen
class Note:
    """An event of a class."""

    text: str


async def until(holds):
    with trio.fail_after(20):
        while not holds():  # noqa: ASYNC110 - as a program would
            await trio.sleep(0.01)


def values(ear):
    return [value for _, value, _ in ear.heard]


@asynccontextmanager
async def place(**more):
    """One node, and two runtimes with a hyperty each; the ears themselves come along."""
    network, tracer = MemoryNetwork(), MemoryTracer()
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(
            actors.open_node("a.example", network=network, trace=tracer)
        )
        found = []
        for name in ("alice", "bob"):
            config = actors.RuntimeConfig(domain="a.example", name=name, node=node.url, **more)
            opened = actors.open_runtime(config, network=network, trace=tracer)
            runtime, ear = await stack.enter_async_context(opened), Ear()
            found += [runtime, ear, await runtime.deploy(lambda ear=ear: ear, name)]
        yield node, *found


async def test_an_event_has_no_answer(autojump_clock):
    """MSG-01, MSG-10: to one in the same runtime, to oneself, and by the node; in order."""
    async with place() as (_, here, _, one, _, there, two):
        neighbour = Ear()
        near = await here.deploy(lambda: neighbour, "near")
        for number in range(20):
            await one.send(two.url, number)
            await one.send(near.url, [number])
        await one.send(inbox_of(two.url), Note("hello"))
        await until(lambda: len(there.heard) == 21 and len(neighbour.heard) == 20)
        assert values(there) == [*range(20), {"text": "hello"}]
        assert values(neighbour) == [[number] for number in range(20)]
        sender, _, identity = there.heard[0]
        assert (sender, identity.runtime) == (one.url, here.url)
        await one.send(one.url, "to itself")
        assert here.drops().counts == {}


async def test_an_event_is_answered_by_an_event(autojump_clock):
    async with place() as (_, _, first, one, _, second, two):
        await one.send(two.url, {"to": one.url, "number": 4})
        await until(lambda: first.heard)
        assert values(first) == [{"heard": 4}]
        assert second.heard[0][0] == one.url


async def test_events_go_by_a_direct_link(autojump_clock):
    async with place(kinds=(actors.Kind.TCP,)) as (node, here, _, one, _, second, two):
        await one.request(two.url)
        with trio.fail_after(20):
            while [link.status.value for link in await here.links()] != ["live"]:  # noqa: ASYNC110
                await trio.sleep(0.1)
        routed = node.drops().counts
        await one.send(two.url, "directly")
        await until(lambda: second.heard)
        message = second.heard[0]
        assert message[:2] == (one.url, "directly")
        assert (message[2].runtime, node.drops().counts) == (here.url, routed)


async def test_events_go_to_other_domains(autojump_clock):
    network = MemoryNetwork()
    async with (
        actors.open_node("a.example", network=network) as node_a,
        actors.open_node("b.example", network=network) as node_b,
        actors.open_runtime(
            actors.RuntimeConfig(
                domain="a.example",
                name="ra",
                node=node_a.url,
                nodes={"b.example": node_b.url},
            ),
            network=network,
        ) as here,
        actors.open_runtime("b.example", "rb", node=node_b.url, network=network) as there,
    ):
        ear = Ear()
        one, two = await here.deploy(Ear), await there.deploy(lambda: ear, "ear")
        await one.send(two.url, 1)
        await until(lambda: ear.heard)
        assert ear.heard[0][:2] == (one.url, 1)


@pytest.mark.timeout(240)
async def test_a_hyperty_in_a_sandbox_hears_and_sends():
    async with place() as (_, here, first, one, there, _, _):
        apart = await there.deploy_apart(Ear)
        await one.send(apart.url, {"to": one.url, "number": 5})
        await until(lambda: first.heard)
        assert first.heard[0][:2] == (apart.url, {"heard": 5})
        assert here.drops().counts == {}


async def test_a_dropped_event_is_counted_with_its_reason(autojump_clock):
    """Where it is dropped: at the node, at the sender, or at the receiver."""
    async with place() as (node, here, _, one, there, ear, two):

        def dropped(where, to):
            return [drop.reason for drop in where.drops().last if drop.to == inbox_of(to)]

        near, far = await here.deploy(Ear), await there.deploy(Ear)
        for gone, where in ((near, here), (far, node)):
            await gone.undeploy()
            await one.send(gone.url, 1)
            await until(lambda where=where, to=gone.url: dropped(where, to))
            assert dropped(where, gone.url) == [actors.DropReason.NO_TARGET]
        # It has lost its address: nothing is sent in its name.
        await near.send(two.url, 1)
        await until(lambda: actors.DropReason.UNKNOWN_SOURCE in here.drops().counts)
        await one.send(two.url, "fail")
        await until(lambda: two.errors == 1)
        await one.send(two.url, "later")
        await until(lambda: ear.heard)
        assert (values(ear), two.state) == (["later"], "running")


async def test_events_leave_room_for_requests(autojump_clock):
    """A hyperty that hears nothing for now still gets requests; what has no room is counted."""

    class Slow(actors.Hyperty):
        def __init__(self):
            self.heard = 0
            self.goes_on = trio.Event()

        async def on_event(self, message):
            await self.goes_on.wait()
            self.heard += 1

        async def on_request(self, message):
            return self.heard

    async with place() as (_, here, _, one, _, _, _):
        slow = Slow()
        other = await here.deploy(lambda: slow, "slow")
        for number in range(EVENTS_WAITING + 100):
            await one.send(other.url, number)
        await until(lambda: here.drops().counts.get(actors.DropReason.OVERFLOW) == 99)
        async with trio.open_nursery() as nursery:
            answers = []

            async def ask():
                answers.append((await one.request(other.url)).value)

            nursery.start_soon(ask)
            await trio.sleep(1)
            slow.goes_on.set()
        assert answers == [EVENTS_WAITING + 1]


class Deaf(actors.Policy):
    """Permits requests only."""

    def refusal(self, message, by):
        return "no events" if message.is_event and is_inbox(message.to) else None


async def test_a_policy_denies_events(autojump_clock):
    async with place(policy=Deaf()) as (_, here, _, one, _, ear, two):
        await one.send(two.url, 1)
        await until(lambda: here.drops().counts)
        assert here.drops().counts == {actors.DropReason.DENIED: 1}
        assert (await one.request(two.url)).code == 400
        assert ear.heard == []


async def test_what_cannot_be_sent_is_an_error(autojump_clock):
    async with place() as (_, here, _, one, _, ear, two):
        with pytest.raises(actors.NotJsonError):
            await one.send(two.url, {1})
        with pytest.raises(actors.ProtoflyError, match=f"the body is larger than {BODY_BYTES}"):
            await one.send(two.url, ["x" * 1000] * 70)
        with pytest.raises(actors.ProtoflyError, match="is no address"):
            await one.send("nowhere")
        with pytest.raises(ValueError, match="events are sent to hyperties"):
            await one.send("comm://a.example/1")
        with pytest.raises(TypeError, match="to must be text"):
            await one.send(5)
        assert (here.drops().counts, ear.heard) == ({}, [])


async def test_events_conform(protofly_domain, protofly_trace, autojump_clock):
    async with protofly_domain("ra", "rb") as domain:
        ear = Ear()
        one, two = await domain["ra"].deploy(Ear), await domain["rb"].deploy(lambda: ear, "ear")
        await one.send(two.url, 1)
        await until(lambda: ear.heard)
    protofly_trace.assert_conformant()


async def test_nobody_else_gets_the_events_of_a_hyperty(autojump_clock):
    """A subscription of its inbox is refused."""
    async with place() as (_, _here, spy, one, _, ear, two):
        manager = "domain://msg-node.a.example/sm"
        answer = await one.ask(manager, "subscribe", {"resources": [inbox_of(two.url)]})
        assert answer.code == 403
        await one.send(two.url, "secret")
        await until(lambda: ear.heard)
        assert spy.heard == []


@pytest.mark.parametrize(
    ("type_", "to", "is_event"),
    [
        ("create", "hyperty://a.ex/1/events", True),
        ("update", "hyperty://a.ex/1/events", True),
        ("read", "hyperty://a.ex/1/events", False),
        ("create", "hyperty://a.ex/1", False),
        ("create", "hyperty://a.ex/events", True),
        ("create", "comm://a.ex/1/children/events", False),
        ("response", "hyperty://a.ex/1/events", False),
    ],
)
def test_only_what_goes_to_an_inbox_is_an_event(type_, to, is_event):
    message = Message(1, MessageType(type_), "hyperty://a.ex/2", to)
    assert message.is_event is is_event
