"""A sandbox: one MiniBUS and one component, with a supervisor of their own (BUS-15).

A failure stays inside: a component that crashes too often ends its sandbox, and nothing else.
`Sandboxes` opens and closes the sandboxes of a runtime, for the loader.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, Never, TypeAlias

import attrs
import trio
from typing_extensions import override

from actors.kit.counters import Counters
from actors.kit.supervision.actor import Actor, ActorRef, Delivery
from actors.kit.supervision.supervisor import (
    ChildSpec,
    Intensity,
    Restart,
    Strategy,
    Supervisor,
    open_supervisor,
)
from actors.kit.trace import Tracer
from actors.runtime.bus.message_bus import MessageBus
from actors.runtime.bus.messages import Origin
from actors.runtime.bus.mini_bus import MiniBus, MiniBusPort
from actors.runtime.bus.ports import CorePort, HypertyPort, SandboxPort
from actors.runtime.hop_trace import HopTrace
from fsm.bus.listeners import ANY
from specs.addresses.address import inbox_of

STUB_INTENSITY: Final = Intensity(restarts=0)
"""Restart limit of stubs: a stub never restarts, as its address names one instance (STB-15)."""


ComponentMaker: TypeAlias = Callable[[MiniBusPort], Actor[Delivery]]
"""Function that makes a component around its port, again after each restart."""


@attrs.frozen(slots=True)
class Component:
    """The component of a sandbox, and how it is made.

    Attributes:
        url: Its address, which is also the name of its sandbox.
        origin: The kind of component for the Message BUS.
        make: Builds the component.
        intensity: Limit of crashes before the sandbox ends.
    """

    url: str
    origin: Origin
    make: ComponentMaker
    intensity: Intensity


class Sandbox(Actor[Never]):
    """Runs the supervisor of one sandbox; its start includes that of the component.

    Args:
        component: The component.
        mini_bus: The MiniBUS of the sandbox.
        bus: The Message BUS.
        port: Admits components to the Message BUS.
        parent: The supervisor of all sandboxes.
    """

    def __init__(
        self,
        component: Component,
        mini_bus: MiniBus,
        bus: MessageBus,
        port: CorePort,
        parent: Supervisor,
    ) -> None:
        self._component = component
        self._mini_bus = mini_bus
        self._bus = bus
        self._port = port
        self._parent = parent
        self._ready = trio.Event()
        self._leaving = trio.Event()
        self._left = trio.Event()

    @override
    async def start(self) -> None:
        self.spawn(self._supervise)
        await self._ready.wait()
        component, mini_bus = self._component, self._mini_bus
        self._port.admit(component.url, component.origin, mini_bus)
        if component.origin is Origin.LOCAL:
            self._port.listen(inbox_of(component.url), mini_bus)
        kind = HypertyPort if component.origin is Origin.LOCAL else SandboxPort
        make = partial(component.make, kind(component.url, self._bus, mini_bus))
        ref = await self._supervisor.start_child(ChildSpec(component.url, make, Restart.PERMANENT))
        self._bus.overflow(mini_bus.add(ANY, ref, "loader"))

    async def _supervise(self) -> None:
        lost = self._parent.dead_letters
        try:
            async with open_supervisor(
                self.name,
                Strategy.ONE_FOR_ONE,
                self._component.intensity,
                lost,
                self._parent.monitor,
            ) as self._supervisor:
                self._ready.set()
                await self._leaving.wait()
        finally:
            for delivery in self._mini_bus.close():
                lost(self._mini_bus.name, delivery)
            self._left.set()

    @override
    async def handle(self, message: Never) -> None:
        """Do nothing: a sandbox gets no messages."""

    @override
    async def closing(self) -> None:
        self._leaving.set()
        await self._left.wait()


class Sandboxes:
    """Opens and closes sandboxes under one supervisor; a crash in one does not affect others."""

    def __init__(
        self,
        supervisor: Supervisor,
        bus: MessageBus,
        port: CorePort,
        tracer: Tracer,
        counters: Counters,
    ) -> None:
        self._supervisor = supervisor
        self._bus = bus
        self._port = port
        self._tracer = tracer
        self._counters = counters

    async def open(self, component: Component) -> ActorRef[Never]:
        """Start a sandbox with its component, and return a reference to the component.

        The component may send, and gets messages, before its `start` has returned.

        If cancelled, and after any error, parts may be there: the caller calls `close`.

        Raises:
            NameTakenError: There is a sandbox of this name.
            ActorStoppedError: The runtime closes.
            Exception: What making or starting the component raised.
        """
        name = f"minibus:{component.url}"
        mini_bus = MiniBus(name, HopTrace(self._tracer, name, self._counters), self._bus.hops)
        make = partial(Sandbox, component, mini_bus, self._bus, self._port, self._supervisor)
        return await self._supervisor.start_child(ChildSpec(component.url, make, Restart.TEMPORARY))

    async def close(self, url: str) -> None:
        """End deliveries to the component, and stop its sandbox. Idempotent.

        The component may send until it has stopped: it answers what it works on (503).

        If cancelled, the sandbox is stopped by force, and the component may still be allowed to
        send; a second call ends that.

        Raises:
            ActorStoppedError: The runtime closes.
        """
        self._port.expel(url)
        await self._supervisor.stop_child(url)
        self._port.revoke(url, url)
