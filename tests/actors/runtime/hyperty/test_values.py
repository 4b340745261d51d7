"""What an application says is the same by every delivery: refused alike, copied, and equal."""

from contextlib import AsyncExitStack, asynccontextmanager

import attrs
import pytest

import actors
from fsm.p2p.link_policy import LinkPolicy, P2pUse, P2pWait
from fsm.sync.value.value import same
from tests.actors.runtime.hyperty.mirror import BAD, CODES, GOOD, LARGEST, Mirror
from transports.memory import MemoryNetwork

pytestmark = pytest.mark.timeout(240)

AWAITED = LinkPolicy(P2pUse.WHENEVER_POSSIBLE, wait=P2pWait.AWAIT)


@attrs.frozen
class Pair:
    """A hyperty that asks, and the address of another."""

    asks: object
    url: str


def configured(name, node, **wanted):
    return actors.RuntimeConfig(
        domain="a.example", name=name, node=node.url, largest_body=LARGEST, **wanted
    )


@asynccontextmanager
async def local(stack, network=None):
    node = await stack.enter_async_context(actors.open_node("a.example", network=network))
    runtime = await stack.enter_async_context(
        actors.open_runtime(configured("ra", node), network=network)
    )
    yield Pair(await runtime.deploy(Mirror), (await runtime.deploy(Mirror)).url)


@asynccontextmanager
async def by_node(stack, network=None, **wanted):
    node = await stack.enter_async_context(actors.open_node("a.example", network=network))
    here, there = [
        await stack.enter_async_context(
            actors.open_runtime(configured(name, node, **wanted), network=network)
        )
        for name in ("ra", "rb")
    ]
    pair = Pair(await here.deploy(Mirror), (await there.deploy(Mirror)).url)
    assert (await pair.asks.request(pair.url, "first")).code == 200
    assert [link.status.value for link in await here.links()] == ["live"] * bool(wanted)
    yield pair


@asynccontextmanager
async def apart(stack):
    node = await stack.enter_async_context(actors.open_node("a.example"))
    runtime = await stack.enter_async_context(actors.open_runtime(configured("ra", node)))
    yield Pair(await runtime.deploy(Mirror), (await runtime.deploy_apart(Mirror)).url)


DELIVERIES = {
    "within a runtime": local,
    "by a node in memory": lambda stack: by_node(stack, MemoryNetwork()),
    "by a node": by_node,
    "by a direct link": lambda stack: by_node(stack, kinds=(actors.Kind.UNIX,), links=AWAITED),
    "into a process": apart,
}


@asynccontextmanager
async def opened(name):
    async with AsyncExitStack() as stack, DELIVERIES[name](stack) as pair:
        yield pair


@pytest.mark.parametrize("delivery", DELIVERIES)
async def test_an_answer_value_has_the_same_outcome_by_each_delivery(delivery):
    """MSG-04, MSG-06: at once, whatever it is; never by the silence of a timeout."""
    async with opened(delivery) as pair:
        answers = {name: await pair.asks.request(pair.url, {"give": name}) for name in CODES}
        assert {name: answer.code for name, answer in answers.items()} == CODES
        for name, value in GOOD.items():
            assert same(answers[name].body["value"], value), name
        for name in BAD:
            assert "error " in answers[name].body["description"]
        number = await pair.asks.request(pair.url, {"number": 0})
        assert number.body["value"] >= len(CODES)


@pytest.mark.parametrize("delivery", DELIVERIES)
async def test_mutable_values_are_not_shared(delivery):
    """BUS-15."""
    async with opened(delivery) as pair:
        first = {"spoil": ["mine"]}
        answer = await pair.asks.request(pair.url, first)
        assert first == {"spoil": ["mine"]}
        assert answer.body["value"] == ["mine", "spoilt"]
        answer.body["value"].append("by who asked")
        first["spoil"].append("later")
        second = await pair.asks.request(pair.url, {"spoil": ["yours"]})
        assert second.body["value"] == ["yours", "spoilt"]
        assert answer.body["value"] == ["mine", "spoilt", "by who asked"]
        kept = (await pair.asks.request(pair.url, {"kept": 0})).body["value"]
        assert kept == [["mine", "spoilt", "spoilt"], ["yours", "spoilt"]]
        kept.clear()
        assert len((await pair.asks.request(pair.url, {"kept": 0})).body["value"]) == 2


# ---- writes


@asynccontextmanager
async def reported(value=None):
    network = MemoryNetwork()
    async with (
        actors.open_node("a.example", network=network) as node,
        actors.open_runtime("a.example", "ra", node=node.url, network=network) as runtime,
        await runtime.deploy(Mirror) as host,
        host.report("ctxt", value or {"a": 1}, public=True) as thing,
    ):
        yield runtime, host, thing


async def test_the_value_of_an_observer_is_not_the_reporters_object(autojump_clock):
    """Also where all are in one runtime, by the answers of its own parts."""
    given_value = {"list": [1], "own": [2]}
    async with reported(given_value) as (runtime, _, thing):
        given_value["list"].append("reporter")
        reader = await runtime.deploy(Mirror)
        for _ in range(2):
            read = await reader.ask(thing.url, actors.MessageType.READ, {})
            assert read.body["value"]["data"] == {"list": [1], "own": [2]}
            read.body["value"]["data"]["list"].append("reader")
        async with reader.observe(thing.url) as copy:
            for number in range(2):
                await thing.add("list", {"n": number})
                state = await copy.wait_for(lambda value, at=number: len(value["list"]) == at + 2)
                with pytest.raises(TypeError):
                    state.value["list"].append("observer")
        assert thing.data.list == [1, {"n": 0}, {"n": 1}]


async def test_a_child_is_not_its_creators_value(autojump_clock):
    async with reported() as (runtime, _, thing):
        guest, value = await runtime.deploy(Mirror), ["here"]
        async with guest.observe(thing.url) as copy:
            child = await copy.children.create(value)
            value.append("more")
            assert child.value == thing.children[child.id].value == ["here"]


async def test_a_form_that_no_wire_takes_is_refused_within_a_runtime_too(autojump_clock):
    """MSG-01: 400, as a node answers it."""
    async with opened("by a node in memory") as far, opened("within a runtime") as near:
        for pair in (near, far):
            answer = await pair.asks.ask(pair.url, actors.MessageType.CREATE, {"code": 200})
            assert answer.code == 400
            renamed = await pair.asks.ask(pair.url, actors.MessageType.CREATE, {"Value": 1})
            assert renamed.body["value"] == 1
