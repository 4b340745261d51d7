"""The registry as an actor: what it says of its searches, and when it is stopped (I-R7)."""

from types import SimpleNamespace

import attrs
import pytest
import trio.testing

from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Delivery
from actors.kit.supervision.supervisor import ChildSpec
from actors.runtime.hop_trace import HopTrace
from actors.runtime.registry.registrations import RuntimeStatus
from actors.runtime.registry.registry import Registry
from actors.runtime.stubs.catalogue import StubKind
from fsm.p2p.link_policy import WHENEVER_POSSIBLE
from fsm.registry.changes import ChangesPort
from fsm.registry.resolve.links import ResolveConfig
from fsm.registry.resolve.searches import RoutesPort
from specs.bodies.registry import Record
from specs.message import Message, MessageType
from specs.reply_code import Code
from specs.trace import Op
from tests.support.runtime.runtime_parts import UA, R, open_bus

HB, RB = "hyperty://b.ex/hb", "hyperty-runtime://b.ex/rb"


async def nothing_to_renew(domain):
    await trio.lowlevel.checkpoint()
    assert domain


@attrs.frozen
class Loaded:
    """Keeps what is to be loaded."""

    urls: list

    def load(self, url, descriptor, config, kind=StubKind.NODE):
        assert (config.domain, kind) == ("b.ex", StubKind.NODE)
        self.urls.append(url)


async def started(world, loaded):
    port, ids = world.port(f"{R}/registry"), IdSource()
    runtime = SimpleNamespace(
        bus=world.bus,
        loader=Loaded(loaded),
        config=SimpleNamespace(ids=ids),
        status=RuntimeStatus(R, port, ids, is_published=False),
        restore_paths=nothing_to_renew,
    )
    config = ResolveConfig(R, "a.ex", WHENEVER_POSSIBLE)
    hops = HopTrace(world.tracer, "registry", world.counters)
    registry = Registry(config, runtime, port, hops)
    await world.supervisor.start_child(ChildSpec("own registry", lambda: registry))
    return registry


def searches(world):
    reported = {}
    for fact in world.tracer.facts:
        if fact.op is Op.STEP and fact.machine == "resolve_job":
            reported.setdefault(fact.key, []).append(fact.new)
    return reported


async def test_a_record_that_is_watched_is_read_again_when_its_node_has_lost_its_state():
    async with open_bus() as world:
        registry = await started(world, [])
        watched = {"resources": [f"{HB}/registration"]}
        registry._core.add_local(UA)
        registry._watches.request(Message(1, MessageType.SUBSCRIBE, UA, f"{R}/registry", watched))
        registry._core.record_read(HB, Record(HB, RB), 0.0)
        assert registry._core._records.is_known(HB, 0.0)
        registry._renew_paths("b.ex")
        assert not registry._core._records.is_known(HB, 0.0)


async def test_rows_are_for_the_parts_of_the_own_runtime():
    async with open_bus() as world:
        registry = await started(world, [])
        answers = []
        registry._port = SimpleNamespace(send=answers.append)
        for sender in (HB, UA):
            asked = Message(1, MessageType.READ, sender, registry.name, {"resource": RB})
            await registry.handle(Delivery(asked, registry.name))
        assert [answer.code for answer in answers] == [Code.FORBIDDEN, Code.NOT_FOUND]


@pytest.mark.parametrize("port", [RoutesPort, ChangesPort])
def test_a_host_does_all_that_its_cores_want(port):
    """A method that is not overridden would do nothing, without a word."""
    wanted = {name for name in vars(port) if not name.startswith("_")}
    assert wanted <= vars(Registry).keys()
