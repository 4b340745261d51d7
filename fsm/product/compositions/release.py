"""A stub of another domain is released when it is idle, while messages come (PFY-03, STB-15).

Participants: `fsm.registry.resolve.resolve` with its table of node stubs, a loader that runs the
stub, and the bus with its cached route. Events: messages at any time, an expired route, a stub that
cannot be loaded, and late local messages.
"""

from collections.abc import Hashable
from functools import partial
from typing import Final, final

from typing_extensions import override

from fsm.effects import Intent
from fsm.product.composition import (
    Bounds,
    Channel,
    Composition,
    End,
    Event,
    Haste,
    Host,
    Medium,
    Never,
    Place,
    Plan,
    Situation,
)
from fsm.product.compositions.resolve import (
    CATALOGUE,
    LOADER,
    REGISTRY,
    AnswerPlace,
    LoaderPlace,
    RoutesPlace,
)
from fsm.registry.resolve.link_entry import ResolveConfig
from specs.reply_code import Code

BUS: Final = "bus"
_IDLE: Final = 20.0
_TARGET: Final = "hyperty://b.ex/hb"


@final
class BusPlace(Host):
    """The bus: it sends a message by its cached route, or asks the registry for one.

    Attributes:
        route: The cached route, a stub.
        waits: Whether a message waits for its route.
    """

    def __init__(self) -> None:
        super().__init__()
        self.route: str | None = None
        self.waits = False

    @override
    def take(self, happened: Hashable) -> None:
        match happened:
            case "message":
                self.waits = True
                self.send("bus to registry", ("ask", _TARGET, Intent.NODE))
            case "too old":
                self.route = None
            case ("route", str(url)):
                self.route, self.waits = url, False
            case ("no route",):
                self.route, self.waits = None, False
            case ("routes changed",):
                self.route = None
            case ("release", str(url), int(number)):
                if self.route == url:
                    self.route = None
                self.send("bus to registry", ("stub_released", url, number))
            case _:
                raise TypeError(happened)


@final
class StubsPlace(RoutesPlace):
    """The registry of the runtime, without records and links."""

    def __init__(self) -> None:
        super().__init__(ResolveConfig("hyperty-runtime://a.ex/ra", "a.ex", stub_idle=_IDLE))

    @override
    def route(self, to: str, intent: Intent, url: str, until: float, why: str) -> None:
        self.send("registry to bus", ("route", url))

    @override
    def no_route(
        self, to: str, intent: Intent, code: Code, why: str, retry_after: float | None = None
    ) -> None:
        self.send("registry to bus", ("no route",))

    @override
    def forget_routes(self) -> None:
        self.send("registry to bus", ("routes changed",))

    @override
    def release(self, url: str, domain: str, number: int) -> None:
        self.send("registry to bus", ("release", url, number))


def _loader(now: Situation) -> LoaderPlace:
    return now.at(LOADER, LoaderPlace)


def _is_settled(now: Situation) -> bool:
    """Return whether the bus knows only the running stub, and no message waits."""
    bus, running = now.at(BUS, BusPlace), _loader(now).running
    stubs = now.at(REGISTRY, StubsPlace).core.node_stubs()
    is_same = list(stubs) == [one for one in [running] if one is not None]
    return bus.route in {None, running} and is_same and not bus.waits


def _has_route(now: Situation) -> bool:
    return now.at(BUS, BusPlace).route is not None


def _is_asked_anew(now: Situation) -> bool:
    bus = now.at(BUS, BusPlace)
    return bus.route is None and not bus.waits


def _goes_nowhere(now: Situation) -> bool:
    route = now.at(BUS, BusPlace).route
    return route is not None and route not in now.at(REGISTRY, StubsPlace).core.node_stubs()


def _runs(now: Situation) -> bool:
    return _loader(now).running is not None


def _compose(bounds: Bounds) -> Composition:
    return Composition(
        name="release",
        about="An idle stub is released while messages come, and another is deployed.",
        places=(
            Place(BUS, BusPlace),
            Place(REGISTRY, StubsPlace),
            Place(LOADER, LoaderPlace),
            Place(CATALOGUE, partial(AnswerPlace, CATALOGUE, "catalogue to loader")),
        ),
        channels=(
            Channel("bus to registry", BUS, REGISTRY, Medium.LOCAL),
            Channel("registry to bus", REGISTRY, BUS, Medium.LOCAL),
            Channel("registry to loader", REGISTRY, LOADER, Medium.LOCAL),
            Channel("loader to registry", LOADER, REGISTRY, Medium.LOCAL),
            Channel("loader to catalogue", LOADER, CATALOGUE, Medium.LOCAL),
            Channel("catalogue to loader", CATALOGUE, LOADER, Medium.LOCAL),
        ),
        events=(
            Event("a message comes", BUS, "message", when=_is_asked_anew, budget=3),
            Event("the known route is too old", BUS, "too old", when=_has_route, budget=2),
            Event(
                "there is no descriptor",
                LOADER,
                "no descriptor",
                when=lambda now: _loader(now).is_deploying,
                is_fault=True,
            ),
            Event("the stub is live", LOADER, "live", when=_runs),
        ),
        never=(
            Never(
                "A message goes by a stub that was released.",
                "PFY-03",
                (BUS, REGISTRY),
                _goes_nowhere,
            ),
        ),
        ends=(End("routes lead to the stub that runs", (BUS, REGISTRY, LOADER), _is_settled),),
        bounds=bounds,
        horizon=60.0,
        haste=Haste.NONE,
    )


RELEASE: Final = Plan("release", _compose, Bounds(losses=1, duplicates=1, channel=2))
"""The composition; all its messages are local, so none is lost."""
