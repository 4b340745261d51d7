"""A search for a route: records are read, a node's stub is deployed, all requests are answered.

Participants: `fsm.registry.resolve.resolve` with its searches and its table of node stubs, a loader
with its `stub_deployment`, the domain registry that is asked for records, and the catalogue that
the stub's descriptor is fetched from. What may happen: any message between runtime, registry and
catalogue is lost or comes twice; the stub cannot be loaded, fails, or crashes when it runs; the
record is there, or not; the local messages come late.
"""

import math
from collections.abc import Hashable
from functools import partial
from typing import Final, final

import attrs
from typing_extensions import override

from fsm.effects import Intent
from fsm.engine import Entity, Step
from fsm.machines.stub_connection import State as Connection
from fsm.machines.stub_deployment import STUB_DEPLOYMENT, State, Trigger
from fsm.p2p.dialling import LinkPolicy, P2pUse
from fsm.product.composition import (
    Bounds,
    Channel,
    Composition,
    End,
    Event,
    Host,
    Medium,
    Never,
    Place,
    Plan,
    Situation,
    UnsafeError,
)
from fsm.registry.resolve.link_entry import ResolveConfig
from fsm.registry.resolve.port import RoutesPort, StubPlan
from fsm.registry.resolve.resolve import ResolveCore
from specs.reply_code import Code

REGISTRY: Final = "registry"
LOADER: Final = "loader"
ASKERS: Final = ("asker 1", "asker 2")
DOMAIN: Final = "domain registry"
CATALOGUE: Final = "catalogue"

_RUNTIME: Final = "hyperty-runtime://a.ex/ra"
_TARGET: Final = "hyperty://b.ex/hb"
"""Both ask for a route to it."""
_POLICY: Final = LinkPolicy(P2pUse.WHENEVER_POSSIBLE)


@final
class AskerPlace(Host):
    """The senders that wait for a route.

    Attributes:
        name: As channels call it.
        asked: How often it has asked and was not answered.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.asked = 0

    @override
    def take(self, happened: Hashable) -> None:
        if happened == "ask":
            self.asked += 1
            self.send(f"{self.name} to registry", ("ask", _TARGET, Intent.REACH))
            return
        self.asked = 0


class RoutesPlace(Host, RoutesPort):
    """The registry of a runtime; a message to it is an input of the core, with arguments."""

    def __init__(self, config: ResolveConfig) -> None:
        super().__init__()
        self.core = ResolveCore(config, self)

    @override
    def deadline(self) -> float:
        return self.core.deadline()

    @override
    def time_over(self) -> None:
        self.core.time_over(self.now)

    @override
    def take(self, happened: Hashable) -> None:
        match happened:
            case ("ask", str(to), Intent() as intent):
                self.core.ask(to, intent, self.now)
            case ("stub_deployed", str(stub)):
                self.core.stub_deployed(stub, self.now)
            case ("stub_failed", str(stub), str(why)):
                self.core.stub_failed(stub, why, self.now)
            case ("stub_gone", str(stub)):
                self.core.stub_gone(stub, self.now)
            case ("node_status", str(stub), str(value)):
                self.core.node_status(stub, value, None, "", self.now)
            case ("record_read", str(entity)):
                self.core.record_read(entity, None, self.now)
            case ("stub_released", str(stub), int(number)):
                self.core.stub_released(stub, number, self.now, is_free=True)
            case _:
                raise TypeError(happened)

    @override
    def step(self, step: Step) -> None:
        self.moved([step])

    @override
    def deploy(self, url: str, plan: StubPlan) -> None:
        self.send("registry to loader", Load(url))

    @override
    def undeploy(self, url: str) -> None:
        self.send("registry to loader", Unload(url))


@final
class RegistryPlace(RoutesPlace):
    """The registry of the runtime, which looks for links, too."""

    def __init__(self) -> None:
        super().__init__(ResolveConfig(_RUNTIME, "a.ex", _POLICY))

    @override
    def route(self, to: str, intent: Intent, url: str, until: float, why: str) -> None:
        self._report("a route")

    @override
    def no_route(
        self, to: str, intent: Intent, code: Code, why: str, retry_after: float | None = None
    ) -> None:
        self._report("no route")

    @override
    def read_record(self, entity: str) -> None:
        self.send("registry to domain registry", entity)

    def _report(self, what: str) -> None:
        for asker in ASKERS:
            self.send(f"registry to {asker}", what)


@final
@attrs.frozen(slots=True)
class Load:
    """Deploy a stub."""

    url: str


@final
@attrs.frozen(slots=True)
class Unload:
    """Undeploy a stub."""

    url: str


@final
class LoaderPlace(Host):
    """The loader of stubs, and the stub that runs.

    Attributes:
        running: The stub that is deployed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.running: str | None = None
        self._deploying: Entity | None = None
        self._until = math.inf

    @property
    def is_deploying(self) -> bool:
        """True if a stub is being deployed."""
        return self._deploying is not None

    @override
    def deadline(self) -> float:
        return self._until

    @override
    def time_over(self) -> None:
        self._loaded("it took too long")

    @override
    def take(self, happened: Hashable) -> None:
        match happened:
            case Load(url):
                if self._deploying is not None or self.running is not None:
                    raise UnsafeError("a second stub of one domain is deployed (RES-13)")
                self._deploying = Entity(STUB_DEPLOYMENT, url)
                self._step(Trigger.LOAD)
                self._until = self.now + self._deploying.patience
                self.send("loader to catalogue", url)
            case Unload(url):
                if self.running == url:
                    self.running = None
            case "descriptor" | "no descriptor":
                if self._deploying is not None:
                    self._loaded("" if happened == "descriptor" else "no descriptor")
            case "live" | "failed" | "crash":
                self._runs(happened)
            case _:
                raise TypeError(happened)

    def _runs(self, happened: str) -> None:
        """Take what becomes of the stub that runs."""
        stub = self.running
        if stub is None:
            return
        if happened == "crash":
            self.running = None
            self._up("stub_gone", stub)
        else:
            state = Connection.LIVE if happened == "live" else Connection.FAILED
            self._up("node_status", stub, state.value)

    def _step(self, trigger: Trigger, why: str = "") -> None:
        if self._deploying is not None:
            self.moved([self._deploying.step(trigger, why)])

    def _loaded(self, why: str) -> None:
        deploying = self._deploying
        if deploying is None:
            return
        self._step(Trigger.LOAD_FAILED if why else Trigger.LOADED, why)
        is_up = deploying.state is State.DEPLOYED
        self._deploying, self._until = None, math.inf
        if is_up:
            self.running = deploying.key
            self._up("stub_deployed", deploying.key)
        else:
            self._up("stub_failed", deploying.key, why)

    def _up(self, *report: str) -> None:
        self.send("loader to registry", report)


@final
class AnswerPlace(Host):
    """The domain registry, or the catalogue: it answers what it is asked."""

    def __init__(self, name: str, back: str) -> None:
        super().__init__()
        self._name = name
        self._back = back

    @override
    def take(self, happened: Hashable) -> None:
        if self._name == CATALOGUE:
            self.send(self._back, "descriptor")
        else:
            self.send(self._back, ("record_read", str(happened)))


def _loader(now: Situation) -> LoaderPlace:
    return now.at(LOADER, LoaderPlace)


def _runs(now: Situation) -> bool:
    return _loader(now).running is not None


def _asker(now: Situation, name: str) -> AskerPlace:
    return now.at(name, AskerPlace)


def _searches(now: Situation) -> int:
    return now.at(REGISTRY, RegistryPlace).core.searches


def _is_settled(now: Situation) -> bool:
    """Return whether all requests are answered, and no search is left that nothing ends."""
    is_answered = all(not _asker(now, name).asked for name in ASKERS)
    stubs = now.at(REGISTRY, RegistryPlace).core.node_stubs()
    is_same = list(stubs) == [one for one in [_loader(now).running] if one is not None]
    return is_answered and is_same and not _searches(now) and not _loader(now).is_deploying


def _compose(bounds: Bounds) -> Composition:
    local = [(f"{asker} to registry", asker, REGISTRY) for asker in ASKERS] + [
        (f"registry to {asker}", REGISTRY, asker) for asker in ASKERS
    ]
    return Composition(
        name="resolve",
        about="A route is looked for: records are read, and a node's stub is deployed.",
        places=(
            *(Place(name, partial(AskerPlace, name)) for name in ASKERS),
            Place(REGISTRY, RegistryPlace),
            Place(LOADER, LoaderPlace),
            Place(DOMAIN, partial(AnswerPlace, DOMAIN, "domain registry to registry")),
            Place(CATALOGUE, partial(AnswerPlace, CATALOGUE, "catalogue to loader")),
        ),
        channels=(
            *(Channel(name, source, target, Medium.LOCAL) for name, source, target in local),
            Channel("registry to loader", REGISTRY, LOADER, Medium.LOCAL),
            Channel("loader to registry", LOADER, REGISTRY, Medium.LOCAL),
            Channel("registry to domain registry", REGISTRY, DOMAIN),
            Channel("domain registry to registry", DOMAIN, REGISTRY),
            Channel("loader to catalogue", LOADER, CATALOGUE),
            Channel("catalogue to loader", CATALOGUE, LOADER),
        ),
        events=(
            *(Event(f"{name} asks", name, "ask") for name in ASKERS),
            Event(
                "there is no descriptor",
                LOADER,
                "no descriptor",
                when=lambda now: _loader(now).is_deploying,
                is_fault=True,
            ),
            Event("the stub is live", LOADER, "live", when=_runs),
            Event("the stub fails", LOADER, "failed", when=_runs, is_fault=True),
            Event("the stub crashes", LOADER, "crash", when=_runs, is_fault=True),
        ),
        never=(
            Never(
                "A stub is deployed without end.",
                "I-S2",
                (LOADER,),
                lambda now: _loader(now).is_deploying and _loader(now).deadline() == math.inf,
            ),
        ),
        ends=(End("all requests are answered", (*ASKERS, REGISTRY, LOADER), _is_settled),),
        bounds=bounds,
        horizon=60.0,
    )


RESOLVE: Final = Plan("resolve", _compose, Bounds(losses=1, duplicates=1, channel=2))
"""With one message lost, and one that comes twice."""
