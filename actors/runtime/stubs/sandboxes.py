"""The sandboxes of a runtime: opened, filled, and closed again, for the loader."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias, final

import attrs

from actors.kit.actor import Actor, ActorRef
from actors.kit.counters import Counters
from actors.kit.delivery import Delivery
from actors.kit.supervisor import ChildSpec, Intensity, Restart, Supervisor
from actors.kit.tracer import Tracer
from actors.runtime.bus.messages import BusMessage, MiniBusMessage, Origin
from actors.runtime.bus.mini_bus import MiniBus, MiniBusPort
from actors.runtime.bus.ports import CorePort, HypertyPort, SandboxPort
from actors.runtime.hop_trace import Hops
from actors.runtime.stubs.sandbox import Hosted, MiniBusWanted, Sandbox, SandboxMessage

__all__ = ["Component", "ComponentMaker", "Sandboxes"]

ComponentMaker: TypeAlias = Callable[[MiniBusPort], Actor[Delivery]]
"""Builds a component around its port, anew for each of its lives."""


@final
@attrs.frozen(slots=True)
class Component:
    """What runs alone in a sandbox.

    Attributes:
        url: Its address; the name of its sandbox, too.
        origin: What it is to the Message BUS.
        make: Builds it.
        intensity: How many crashes are borne before the sandbox ends.
    """

    url: str
    origin: Origin
    make: ComponentMaker
    intensity: Intensity


@final
class Sandboxes:
    """Starts sandboxes under one supervisor; a crash in one is no matter of another."""

    def __init__(
        self,
        supervisor: Supervisor,
        bus: ActorRef[BusMessage],
        port: CorePort,
        tracer: Tracer,
        counters: Counters,
    ) -> None:
        self._supervisor = supervisor
        self._bus = bus
        self._port = port
        self._tracer = tracer
        self._counters = counters

    async def open(self, component: Component) -> ActorRef[SandboxMessage]:
        """Start a sandbox with its component; what its start raises comes out here.

        The component may submit, and is reached, before it has started. On any
        failure, cancellation included, the caller closes what is there.
        """
        make = partial(
            Sandbox,
            partial(self._mini_bus, component.url),
            component.intensity,
            self._supervisor.dead_letters,
            self._supervisor.monitor,
        )
        spec = ChildSpec(component.url, make, Restart.TEMPORARY)
        sandbox = await self._supervisor.start_child(spec)
        mini_bus = await sandbox.ask(MiniBusWanted)
        await self._port.admit(component.url, component.origin, mini_bus)
        build = partial(self._build, component, mini_bus)
        await sandbox.ask(partial(Hosted, component.url, build))
        return sandbox

    async def close(self, url: str) -> None:
        """Take the component off the bus, then stop its sandbox; repeated is fine."""
        await self._port.expel(url)
        await self._supervisor.stop_child(url)

    def _mini_bus(self, url: str) -> MiniBus:
        hops = Hops(self._tracer, f"minibus:{url}", self._counters)
        return MiniBus(self._bus.try_tell, hops)

    def _build(self, component: Component, mini_bus: ActorRef[MiniBusMessage]) -> Actor[Delivery]:
        port = HypertyPort if component.origin is Origin.LOCAL else SandboxPort
        return component.make(port(component.url, self._bus, mini_bus))
