"""A sandbox: one MiniBUS and one component, under a supervisor of their own (BUS-15).

What goes on inside goes no further: a component that crashes too often ends its
sandbox, and nothing else.
"""

from collections.abc import Callable
from typing import Final, TypeAlias, assert_never, final

import attrs
import trio
from typing_extensions import override

from actors.kit.actor import Actor, ActorRef, Reply
from actors.kit.crash import Crash
from actors.kit.dead_letters import DeadLetters
from actors.kit.delivery import Delivery
from actors.kit.monitor import Monitor
from actors.kit.supervisor import (
    ChildSpec,
    Intensity,
    Restart,
    Strategy,
    Supervisor,
    open_supervisor,
)
from actors.runtime.bus.messages import ListenerAdded, MiniBusMessage
from actors.runtime.bus.mini_bus import MiniBus
from fsm.bus.listeners import ANY

__all__ = ["STUB_INTENSITY", "Hosted", "MiniBusWanted", "Sandbox", "SandboxMessage"]

STUB_INTENSITY: Final = Intensity(restarts=0)
"""A stub is never restarted: its address names one life (STB-15)."""


@final
@attrs.frozen(slots=True)
class MiniBusWanted:
    """Tell the MiniBUS of the sandbox."""

    reply: Reply[ActorRef[MiniBusMessage]]


@final
@attrs.frozen(slots=True)
class Hosted:
    """Start the component; what its `start` raises comes back.

    Attributes:
        make: Builds it, for each of its lives.
    """

    name: str
    make: Callable[[], Actor[Delivery]]
    reply: Reply[None]


SandboxMessage: TypeAlias = MiniBusWanted | Hosted


@final
class Sandbox(Actor[SandboxMessage]):
    """Holds the supervisor open for as long as it lives."""

    def __init__(
        self,
        make_bus: Callable[[], MiniBus],
        intensity: Intensity,
        dead_letters: DeadLetters,
        monitor: Monitor,
    ) -> None:
        self._make_bus = make_bus
        self._intensity = intensity
        self._dead_letters = dead_letters
        self._monitor = monitor
        self._supervisor: Supervisor | None = None
        self._mini_bus: ActorRef[MiniBusMessage] | None = None
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
                spec = ChildSpec(f"minibus:{self.name}", self._make_bus)
                self._mini_bus = await supervisor.start_child(spec)
                self._ready.set()
                await self._leaving.wait()
        finally:
            self._left.set()

    @override
    async def handle(self, message: SandboxMessage) -> None:
        if self._supervisor is None or self._mini_bus is None:
            return
        match message:
            case MiniBusWanted(reply):
                reply.send(self._mini_bus)
            case Hosted():
                self.spawn(self._host, message, self._supervisor, self._mini_bus)
            case _:
                assert_never(message)

    @staticmethod
    async def _host(
        hosted: Hosted, supervisor: Supervisor, mini_bus: ActorRef[MiniBusMessage]
    ) -> None:
        spec = ChildSpec(hosted.name, hosted.make, Restart.PERMANENT)
        with Crash() as crash:
            ref = await supervisor.start_child(spec)
        if crash.error is not None:
            hosted.reply.fail(crash.error)
            return
        await mini_bus.ask(lambda done: ListenerAdded(ANY, ref, "loader", done))
        hosted.reply.send(None)

    @override
    async def farewell(self) -> None:
        self._leaving.set()
        await self._left.wait()
