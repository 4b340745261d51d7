"""Parts of a runtime for tests of one of them: a bus with a scripted registry, listeners."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeAlias

import attrs
import trio
import trio.testing
from typing_extensions import override

from actors.kit.counters import Counters
from actors.kit.supervision.actor import Actor, ActorRef, BackgroundTasks, Delivery
from actors.kit.supervision.supervisor import ChildSpec, Supervisor, open_supervisor
from actors.runtime.bus.interceptor import Interceptor
from actors.runtime.bus.message_bus import MessageBus
from actors.runtime.bus.messages import Origin
from actors.runtime.bus.ports import CorePort
from actors.runtime.hop_trace import HopTrace
from actors.runtime.own_sender import OwnSender
from actors.runtime.policy import Policy
from fsm.effects import Intent, LinkHint
from specs.message import Message, MessageType
from tests.support.trace.memory import MemoryTracer

R = "hyperty-runtime://a.ex/ra"
UA = f"{R}/ua"


class Listener(Actor[Delivery]):
    """Keeps what it is given."""

    def __init__(self, heard: list[Delivery]) -> None:
        self._heard = heard

    @override
    async def handle(self, message: Delivery) -> None:
        self._heard.append(message)


Asked: TypeAlias = tuple[object, ...]
"""A question to the registry: its name, and arguments."""


class ScriptedRegistry:
    """Keeps what the bus asks it; the test answers."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    def try_ask(self, to: str, intent: Intent, hint: LinkHint | None) -> bool:
        self.asked.append(("route", to, intent) if hint is None else ("route", to, intent, hint))
        return True

    def try_ask_owner(self, entity: str, remote: str) -> bool:
        self.asked.append(("owner", entity, remote))
        return True

    def try_report_forged(self, link: str) -> bool:
        self.asked.append(("forged", link))
        return True


class LoaderRegistry:
    """Keeps what the loader reports, beside the status events of stubs and hyperties."""

    def __init__(self, listener: ActorRef[Delivery], reported: list[object]) -> None:
        self.listener, self._reported = listener, reported

    async def stub_deployed(self, url: str) -> None:
        self._reported.append(("deployed", url))

    async def stub_failed(self, url: str, why: str, *, is_absent: bool) -> None:
        self._reported.append(("failed", url, why, is_absent))

    async def stub_gone(self, url: str) -> None:
        self._reported.append(("gone", url))

    async def remove_local(self, url: str) -> None:
        self._reported.append(("ended", url))


@attrs.define
class BusWorld:
    """A Message BUS and all around it.

    Attributes:
        asked: What the registry was asked.
    """

    bus: MessageBus
    supervisor: Supervisor
    tracer: MemoryTracer
    counters: Counters
    asked: list[Asked]
    agent: CorePort
    tasks: BackgroundTasks

    def hops(self, actor: str) -> HopTrace:
        return HopTrace(self.tracer, actor, self.counters)

    def port(self, url: str) -> CorePort:
        return CorePort(url, self.bus)

    async def component(self, url: str, origin: Origin = Origin.LOCAL) -> list[Delivery]:
        """Add a component that keeps what it hears."""
        heard: list[Delivery] = []
        ref = await self.supervisor.start_child(ChildSpec(url, partial(Listener, heard)))
        self.agent.admit(url, origin, ref)
        return heard

    async def settle(self) -> None:
        await trio.testing.wait_all_tasks_blocked()

    def heard_by(self, heard: list[Delivery]) -> list[Message]:
        return [delivery.message for delivery in heard]


class PermitAll(Policy):
    """Lets every message pass."""

    def refusal(self, message: Message, by: str) -> str | None:
        return None


@asynccontextmanager
async def open_bus(
    policy: Policy | None = None, interceptors: tuple[Interceptor, ...] = ()
) -> AsyncIterator[BusWorld]:
    """Run a Message BUS with a registry that is the test itself."""
    tracer, counters = MemoryTracer(), Counters()
    registry = ScriptedRegistry()
    make: Callable[[], MessageBus] = partial(
        MessageBus, OwnSender.of(R), policy or PermitAll(), tracer, counters, interceptors
    )
    async with open_supervisor("test") as supervisor:
        bus = make()
        await supervisor.start_child(ChildSpec("bus", lambda: bus))
        tasks = BackgroundTasks()
        await supervisor.start_child(ChildSpec("background", lambda: tasks))
        bus.join(registry)
        agent = CorePort(UA, bus)
        yield BusWorld(bus, supervisor, tracer, counters, registry.asked, agent, tasks)


class Refusing(Policy):
    """Refuses every create that goes to one address, once it is told which."""

    def __init__(self) -> None:
        self.to = ""

    @override
    def refusal(self, message: Message, by: str) -> str | None:
        is_it = message.to == self.to and message.type is MessageType.CREATE
        return "not now" if is_it else None
