"""A sandbox: one MiniBUS and one component, under a supervisor of their own (BUS-15).

A failure stays inside: a component that crashes too often ends its sandbox, and nothing else.
`Sandboxes` opens and closes the sandboxes of a runtime, for the loader.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias, final

import attrs
import trio
from typing_extensions import override

from actors.kit.counters import Counters
from actors.kit.supervision.actor import Actor, ActorRef, DeadLetters, Delivery, Reply
from actors.kit.supervision.supervisor import (
    ChildSpec,
    Crash,
    Intensity,
    Monitor,
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
"""A stub is never restarted: its address names one life (STB-15)."""


@final
@attrs.frozen(slots=True)
class StartComponent:
    """Start the component; the reply fails with what its `start` raises.

    Attributes:
        name: Name of the component.
        make: Builds it, for each of its lives.
        reply: Answered when it has started.
    """

    name: str
    make: Callable[[], Actor[Delivery]]
    reply: Reply[None]


@final
class Sandbox(Actor[StartComponent]):
    """Holds the supervisor of one sandbox open."""

    def __init__(
        self,
        mini_bus: MiniBus,
        bus: MessageBus,
        intensity: Intensity,
        dead_letters: DeadLetters,
        monitor: Monitor,
    ) -> None:
        self._mini_bus = mini_bus
        self._bus = bus
        self._intensity = intensity
        self._dead_letters = dead_letters
        self._monitor = monitor
        self._supervisor: Supervisor | None = None
        self._ready = trio.Event()
        self._leaving = trio.Event()
        self._left = trio.Event()

    @override
    async def start(self) -> None:
        self.spawn(self._supervise)
        await self._ready.wait()

    async def _supervise(self) -> None:
        try:
            async with open_supervisor(
                self.name,
                Strategy.ONE_FOR_ONE,
                self._intensity,
                self._dead_letters,
                self._monitor,
            ) as supervisor:
                self._supervisor = supervisor
                self._ready.set()
                await self._leaving.wait()
        finally:
            for delivery in self._mini_bus.close():
                self._dead_letters.lost(self._mini_bus.name, delivery)
            self._left.set()

    @override
    async def handle(self, message: StartComponent) -> None:
        if self._supervisor is not None:
            self.spawn(self._host, message, self._supervisor)

    async def _host(self, wanted: StartComponent, supervisor: Supervisor) -> None:
        spec = ChildSpec(wanted.name, wanted.make, Restart.PERMANENT)
        with Crash() as crash:
            ref = await supervisor.start_child(spec)
        if crash.error is not None:
            wanted.reply.fail(crash.error)
            return
        self._bus.overflow(self._mini_bus.add(ANY, ref, "loader"))
        wanted.reply.send(None)

    @override
    async def closing(self) -> None:
        self._leaving.set()
        await self._left.wait()


ComponentMaker: TypeAlias = Callable[[MiniBusPort], Actor[Delivery]]
"""Builds a component around its port, anew for each of its lives."""


@final
@attrs.frozen(slots=True)
class Component:
    """The one component of a sandbox.

    Attributes:
        url: Its address, which is also the name of its sandbox.
        origin: The kind of component that it is to the Message BUS.
        make: Builds it.
        intensity: How many crashes it may have before the sandbox ends.
    """

    url: str
    origin: Origin
    make: ComponentMaker
    intensity: Intensity


@final
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

    async def open(self, component: Component) -> ActorRef[StartComponent]:
        """Start a sandbox with its component, and return its reference.

        The component may send, and gets messages, before its `start` has returned.

        If cancelled, and after any error, parts may be there: the caller calls `close`.

        Raises:
            NameTakenError: There is a sandbox of this name.
            ActorStoppedError: The runtime closes.
            Exception: What making or starting the component raised.
        """
        name = f"minibus:{component.url}"
        mini_bus = MiniBus(name, HopTrace(self._tracer, name, self._counters), self._bus.hops)
        make = partial(
            Sandbox,
            mini_bus,
            self._bus,
            component.intensity,
            self._supervisor.dead_letters,
            self._supervisor.monitor,
        )
        spec = ChildSpec(component.url, make, Restart.TEMPORARY)
        sandbox = await self._supervisor.start_child(spec)
        self._port.admit(component.url, component.origin, mini_bus)
        if component.origin is Origin.LOCAL:
            self._port.listen(inbox_of(component.url), mini_bus)
        build = partial(self._build, component, mini_bus)
        await sandbox.ask(partial(StartComponent, component.url, build))
        return sandbox

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

    def _build(self, component: Component, mini_bus: MiniBus) -> Actor[Delivery]:
        port = HypertyPort if component.origin is Origin.LOCAL else SandboxPort
        return component.make(port(component.url, self._bus, mini_bus))
