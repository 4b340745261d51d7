"""Compositions of the search for a route: registry lookups, and the deployment of a node's stub.

Participants: `fsm.registry.resolve.resolve` with its searches and its table of node stubs, a loader
with its `stub_deployment`, the domain registry that is asked for records, and the catalogue from
which the stub's descriptor is fetched. Faults and events: any message between runtime, registry and
catalogue is lost or comes twice; the stub cannot be loaded, fails, or crashes while it runs; the
record exists, or not; the local messages come late. All requests must be answered.

In `RELEASE` the stub is released when it is idle, while messages come (PFY-03, STB-15), and the bus
has a cached route, which expires.
"""

import math
from typing import Final, final

from typing_extensions import override

from fsm.effects import Intent
from fsm.engine import Entity
from fsm.explore import composition as plan
from fsm.explore.composition import Condition, Event, Medium, UnsafeError, both_ways
from fsm.machines.stub_connection import State as Connection
from fsm.machines.stub_deployment import STUB_DEPLOYMENT, State, Trigger
from fsm.p2p.link_policy import LinkPolicy, P2pUse
from fsm.registry.resolve.links import ResolveConfig
from fsm.registry.resolve.resolve import ResolveCore
from fsm.registry.resolve.searches import RoutesPort, StubPlan
from specs.reply_code import Code

REGISTRY: Final = "registry"
LOADER: Final = "loader"
ASKERS: Final = ("asker 1", "asker 2")
DOMAIN: Final = "domain registry"
CATALOGUE: Final = "catalogue"
BUS: Final = "bus"

_RUNTIME: Final = "hyperty-runtime://a.ex/ra"
_TARGET: Final = "hyperty://b.ex/hb"
_BOUNDS: Final = plan.Bounds(losses=1, duplicates=1, channel=2)


class Asker(plan.Host):
    """Sender that asks the registry for a route.

    Attributes:
        asked: Number of its requests that are not answered.
    """

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.asked = 0

    def begin(self) -> None:
        self.asked += 1
        self.send(REGISTRY, "ask", _TARGET, Intent.REACH)

    def answer(self, _: str) -> None:
        self.asked = 0


class Routes(plan.Host, RoutesPort):
    """Registry of a runtime, which finds routes."""

    config = ResolveConfig(_RUNTIME, "a.ex", LinkPolicy(P2pUse.WHENEVER_POSSIBLE))

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.core = ResolveCore(self.config, self)

    @override
    def deploy(self, url: str, plan: StubPlan) -> None:
        self.send(LOADER, "load", url)

    @override
    def undeploy(self, url: str) -> None:
        self.send(LOADER, "unload", url)


class SearchRoutes(Routes):
    """Registry of a runtime, which also searches for direct links."""

    @override
    def route(self, to: str, intent: Intent, url: str, until: float, why: str) -> None:
        self._answer("a route")

    @override
    def no_route(
        self, to: str, intent: Intent, code: Code, why: str, retry_after: float | None = None
    ) -> None:
        self._answer("no route")

    @override
    def read_record(self, entity: str) -> None:
        self.send(DOMAIN, "fetch", entity)

    def _answer(self, outcome: str) -> None:
        for asker in ASKERS:
            self.send(asker, "answer", outcome)


class NodeRoutes(Routes):
    """Registry of a runtime without records and links; it releases idle stubs."""

    config = ResolveConfig(_RUNTIME, "a.ex", stub_idle=20.0)

    @override
    def route(self, to: str, intent: Intent, url: str, until: float, why: str) -> None:
        self.send(BUS, "set_route", url)

    @override
    def no_route(
        self, to: str, intent: Intent, code: Code, why: str, retry_after: float | None = None
    ) -> None:
        self.send(BUS, "set_route", None)

    @override
    def forget_routes(self) -> None:
        self.send(BUS, "forget_route")

    @override
    def release(self, url: str, domain: str, number: int) -> None:
        self.send(BUS, "release", url, number)

    def confirm_release(self, url: str, number: int) -> None:
        self.core.stub_released(url, number, self.now, is_free=True)


class Loader(plan.Host):
    """Loader of stubs, with the stub that is running.

    Attributes:
        running: The stub that is deployed.
    """

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.running: str | None = None
        self._deploying: Entity | None = None
        self._until = math.inf

    @property
    def is_deploying(self) -> bool:
        return self._deploying is not None

    @override
    def deadline(self) -> float:
        return self._until

    @override
    def time_over(self) -> None:
        self.take_descriptor("it took too long")

    def load(self, url: str) -> None:
        if self._deploying is not None or self.running is not None:
            raise UnsafeError("a second stub of one domain is deployed (RES-13)")
        self._deploying = Entity(STUB_DEPLOYMENT, url)
        self.step(self._deploying.step(Trigger.LOAD))
        self._until = self.now + self._deploying.patience
        self.send(CATALOGUE, "fetch", url)

    def unload(self, url: str) -> None:
        if self.running == url:
            self.running = None

    def take_descriptor(self, refusal: str) -> None:
        """End the deployment: the descriptor of the stub came, or the reason why it did not."""
        deploying = self._deploying
        if deploying is None:
            return
        self.step(deploying.step(Trigger.LOAD_FAILED if refusal else Trigger.LOADED, refusal))
        self._deploying, self._until = None, math.inf
        if deploying.state is State.DEPLOYED:
            self.running = deploying.key
            self.send(REGISTRY, "stub_deployed", deploying.key)
        else:
            self.send(REGISTRY, "stub_failed", deploying.key, refusal)

    def crash(self) -> None:
        self.send(REGISTRY, "stub_gone", self.running)
        self.running = None

    def report(self, state: Connection) -> None:
        self.send(REGISTRY, "node_status", self.running, state.value, None, "")


@final
class Domain(plan.Host):
    """Domain registry, which has no record."""

    def fetch(self, entity: str) -> None:
        self.send(REGISTRY, "record_read", entity, None)


class Catalogue(plan.Host):
    """Catalogue that serves the descriptor of the stub."""

    def fetch(self, _: str) -> None:
        self.send(LOADER, "take_descriptor", "")


class Bus(plan.Host):
    """Message BUS, which sends a message by its cached route, or asks the registry for a route.

    Attributes:
        route: The cached route, a stub.
        waits: Whether a message waits for its route.
    """

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.route: str | None = None
        self.waits = False

    def message(self) -> None:
        self.waits = True
        self.send(REGISTRY, "ask", _TARGET, Intent.NODE)

    def set_route(self, url: str | None) -> None:
        self.route, self.waits = url, False

    def forget_route(self) -> None:
        self.route = None

    def release(self, url: str, number: int) -> None:
        if self.route == url:
            self.route = None
        self.send(REGISTRY, "confirm_release", url, number)


def _runs(loader: Loader) -> bool:
    return loader.running is not None


def _is_in_step(registry: Routes, loader: Loader) -> bool:
    """Return whether the registry's table has exactly the stub that is running."""
    return list(registry.core.node_stubs()) == [
        each for each in [loader.running] if each is not None
    ]


def _has_answered_all(first: Asker, second: Asker, registry: SearchRoutes, loader: Loader) -> bool:
    """Return whether all requests are answered, and every search has ended."""
    is_over = not (registry.core.searches or loader.is_deploying)
    return not (first.asked or second.asked) and is_over and _is_in_step(registry, loader)


_ABSENT: Final = plan.Call("take_descriptor", ("no descriptor",))
_NO_DESCRIPTOR: Final = Event(
    "there is no descriptor", LOADER, _ABSENT, lambda loader: loader.is_deploying, is_fault=True
)
_FAILED: Final = plan.Call("report", (Connection.FAILED,))
_LIVE: Final = Event("the stub is live", LOADER, plan.Call("report", (Connection.LIVE,)), _runs)

RESOLVE: Final = plan.Composition(
    name="resolve",
    places={
        **dict.fromkeys(ASKERS, Asker),
        REGISTRY: SearchRoutes,
        LOADER: Loader,
        DOMAIN: Domain,
        CATALOGUE: Catalogue,
    },
    channels=(
        *both_ways(ASKERS[0], REGISTRY, Medium.LOCAL),
        *both_ways(ASKERS[1], REGISTRY, Medium.LOCAL),
        *both_ways(REGISTRY, LOADER, Medium.LOCAL),
        *both_ways(REGISTRY, DOMAIN),
        *both_ways(LOADER, CATALOGUE),
    ),
    events=(
        *(Event(f"{name} asks", name, "begin") for name in ASKERS),
        _NO_DESCRIPTOR,
        _LIVE,
        Event("the stub fails", LOADER, _FAILED, _runs, is_fault=True),
        Event("the stub crashes", LOADER, "crash", _runs, is_fault=True),
    ),
    never=(
        Condition(
            "A stub is deployed without end (I-S2).",
            (LOADER,),
            lambda loader: loader.is_deploying and loader.deadline() == math.inf,
        ),
    ),
    ends=(Condition("all requests are answered", (*ASKERS, REGISTRY, LOADER), _has_answered_all),),
    bounds=_BOUNDS,
    horizon=60.0,
)
"""Composition: a search for a route reads records and deploys a node's stub."""

RELEASE: Final = plan.Composition(
    name="release",
    places={BUS: Bus, REGISTRY: NodeRoutes, LOADER: Loader, CATALOGUE: Catalogue},
    channels=(
        *both_ways(BUS, REGISTRY, Medium.LOCAL),
        *both_ways(REGISTRY, LOADER, Medium.LOCAL),
        *both_ways(LOADER, CATALOGUE, Medium.LOCAL),
    ),
    events=(
        Event("a message comes", BUS, "message", lambda bus: not (bus.route or bus.waits), 3),
        Event("the known route is too old", BUS, "forget_route", lambda bus: bool(bus.route), 2),
        _NO_DESCRIPTOR,
        _LIVE,
    ),
    never=(
        Condition(
            "A message goes by a stub that was released (PFY-03).",
            (BUS, REGISTRY),
            lambda bus, registry: bus.route not in {None, *registry.core.node_stubs()},
        ),
    ),
    ends=(
        Condition(
            "routes lead to the stub that runs",
            (BUS, REGISTRY, LOADER),
            lambda bus, registry, loader: (
                bus.route in {None, loader.running}
                and _is_in_step(registry, loader)
                and not bus.waits
            ),
        ),
    ),
    bounds=_BOUNDS,
    horizon=60.0,
)
"""Composition: an idle stub is released while messages come; all are local, so none is lost."""
