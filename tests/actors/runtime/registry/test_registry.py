"""The registry as an actor: what it says of its searches, and when it is stopped (I-R7)."""

from functools import partial

import pytest
import trio.testing

from actors.kit.ids import IdSource
from actors.kit.supervision.supervisor import ChildSpec
from actors.runtime.hop_trace import HopTrace
from actors.runtime.registry.registry import Registry, RegistryChanges, RegistryParts
from actors.runtime.registry.status import RuntimeStatus
from fsm.effects import Intent
from fsm.p2p.dialling import WHENEVER_POSSIBLE
from fsm.registry.changes import ChangesPort
from fsm.registry.resolve.link_entry import ResolveConfig
from fsm.registry.resolve.port import RoutesPort
from specs.limits.protocol import MAILBOX
from specs.trace import Op
from tests.support.runtime.runtime_parts import Listener, R, open_bus

HB = "hyperty://b.ex/hb"


async def nothing_to_renew(domain):
    await trio.lowlevel.checkpoint()
    assert domain


class BusyLoader(Listener):
    """Keeps what it is given, after a while."""

    def __init__(self, loaded):
        super().__init__(loaded)
        self.goes_on = trio.Event()

    async def handle(self, message):
        await self.goes_on.wait()
        await super().handle(message)


async def started(world, loaded, loader=None):
    spec = ChildSpec("loader", partial(Listener, loaded) if loader is None else lambda: loader)
    loader = await world.supervisor.start_child(spec)
    port, ids = world.port(f"{R}/registry"), IdSource()
    parts = RegistryParts(
        port=port,
        bus=world.bus,
        loader=loader,
        ids=ids,
        status=RuntimeStatus(R, port, ids, is_published=False),
        hops=HopTrace(world.tracer, "registry", world.counters),
        paths_lost=nothing_to_renew,
    )
    config = ResolveConfig(R, "a.ex", WHENEVER_POSSIBLE)
    registry = Registry(config, parts)
    await world.supervisor.start_child(ChildSpec("own registry", lambda: registry))
    return registry


def searches(world):
    reported = {}
    for fact in world.tracer.facts:
        if fact.op is Op.STEP and fact.machine == "resolve_job":
            reported.setdefault(fact.key, []).append(fact.new)
    return reported


async def test_a_search_is_traced_step_by_step(autojump_clock):
    loaded = []
    async with open_bus() as world:
        registry = await started(world, loaded)
        assert registry.try_ask(HB, Intent.KNOWN, None)
        await world.settle()
        assert searches(world) == {"node|b.ex": ["lookup", "wait"]}
        await registry.stub_deployed(loaded[0].url)
        await world.settle()
        assert searches(world) == {"node|b.ex": ["lookup", "wait", "bound"]}


async def test_a_registry_that_is_stopped_ends_what_it_looks_for(autojump_clock):
    async with open_bus() as world:
        registry = await started(world, [])
        assert registry.try_ask(HB, Intent.REACH, None)
        await world.settle()
    assert searches(world) == {
        "node|b.ex": ["lookup", "wait", "failed"],
        f"link|{HB}": ["lookup", "query", "failed"],
    }


async def test_orders_to_a_loader_without_room_wait_in_order(autojump_clock):
    """RES-14: whoever waits for a stub is answered, and no order overtakes an older one."""
    loaded = []
    busy = BusyLoader(loaded)
    async with open_bus() as world:
        registry = await started(world, loaded, busy)
        domains = [f"d{number}.ex" for number in range(MAILBOX + 10)]
        for number, domain in enumerate(domains):
            assert registry.try_ask(f"hyperty://{domain}/h", Intent.NODE, None)
            if number < MAILBOX:
                await world.settle()
        await world.settle()
        assert loaded == []
        busy.goes_on.set()
        await world.settle()
        assert [one.config.domain for one in loaded] == domains


@pytest.mark.parametrize(("port", "host"), [(RoutesPort, Registry), (ChangesPort, RegistryChanges)])
def test_a_host_does_all_that_its_cores_want(port, host):
    """A method that is not overridden would do nothing, without a word."""
    wanted = {name for name in vars(port) if not name.startswith("_")}
    assert wanted <= vars(host).keys()
