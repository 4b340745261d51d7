"""The routes of a node to other domains: host of their table and of their sandboxes (MN-19)."""

from contextlib import suppress
from functools import partial
from typing import TypeAlias, assert_never, final

import attrs
import trio
from typing_extensions import override

from actors.kit.counters import Counters, Gauge, Tally
from actors.kit.errors import ActorStoppedError
from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Actor, ActorRef
from actors.kit.supervision.monitor import Monitor
from actors.kit.supervision.supervisor import (
    ChildSpec,
    Restart,
    Strategy,
    Supervisor,
    open_supervisor,
)
from actors.kit.trace import Tracer
from actors.node.config import ForeignPlan
from actors.node.messages import BusMessage, Emitted, ForeignReady, FromForeign, PathsForgotten
from actors.node.trace import ComponentTrace
from actors.pipe.host import HandInResult, HostTools, StubHost
from actors.pipe.plan import SandboxPlan
from fsm.catalogue.foreign import (
    Answer,
    Banish,
    Deliver,
    Effect,
    End,
    ForeignCore,
    Input,
    Leave,
    Open,
    Pass,
    Refuse,
    Renew,
    SandboxFull,
    SandboxGone,
    SandboxInput,
    SandboxPosted,
    SandboxReady,
    SandboxSession,
    SandboxStatus,
    SandboxUnreachable,
    Send,
    Tick,
)
from fsm.effects import Dropped
from fsm.engine import Step
from fsm.machines.stub_connection import State
from fsm.session.node_session_io import OutboundMessage
from specs.addresses.address import message_node
from specs.message import Message, refuse
from specs.trace import Op
from transports.codec import encode
from transports.link import Network

__all__ = ["ForeignHost", "ForeignParts"]


@final
class ForeignStubHost(StubHost[OutboundMessage]):
    """Reports one sandbox to the owner of the table, and delivers messages to its stub."""

    def __init__(self, plan: SandboxPlan, tools: HostTools, owner: ActorRef[SandboxInput]) -> None:
        super().__init__(plan, tools)
        self._owner = owner

    @override
    async def handle(self, message: OutboundMessage) -> None:
        match self.hand(message.line):
            case HandInResult.FULL | HandInResult.TOO_LARGE:
                await self._report(SandboxFull(self.plan.url, message.message))
            case HandInResult.GONE:
                await self._report(SandboxUnreachable(self.plan.url, message.message))
            case HandInResult.TAKEN:
                pass

    @override
    async def ready(self) -> None:
        await self._report(SandboxReady(self.plan.url))

    @override
    async def posted(self, message: Message) -> None:
        await self._report(SandboxPosted(self.plan.url, message))

    @override
    async def asked(self, message: Message) -> None:
        # Its answer comes as an entry, like any other.
        await self._report(SandboxPosted(self.plan.url, message))

    @override
    async def lost(self, message: Message) -> None:
        await self._report(SandboxFull(self.plan.url, message))

    @override
    async def moved(self, step: Step) -> None:
        await self._report(SandboxStatus(self.plan.url, State(step.new), step.why))

    @override
    async def kept(self, token: str) -> None:
        await self._report(SandboxSession(self.plan.url, token))

    @override
    def ended(self, why: str) -> None:
        self.finish()

    @override
    async def stop(self) -> None:
        self.rest()
        await self._report(SandboxGone(self.plan.url, self.why))

    async def _report(self, happened: SandboxInput) -> None:
        # An owner that is gone wants no news.
        with suppress(ActorStoppedError):
            await self._owner.tell(happened)


_Message: TypeAlias = Send | Banish | SandboxInput


@final
@attrs.frozen
class ForeignParts:
    """The parts of the routes to other domains."""

    node: str
    plan: ForeignPlan
    network: Network
    bus: ActorRef[BusMessage]
    tracer: Tracer
    counters: Counters
    monitor: Monitor
    ids: IdSource

    @property
    def trace(self) -> ComponentTrace:
        """The trace records of this part."""
        return ComponentTrace(self.tracer, "foreign", self.counters)


@final
class ForeignHost(Actor[_Message]):
    """Opens a sandbox for the stub of each domain that is wanted, and carries messages."""

    def __init__(self, parts: ForeignParts) -> None:
        self._parts = parts
        self._trace = parts.trace
        self._core = ForeignCore(parts.node, parts.plan.domains)
        self._hosts: dict[str, ActorRef[OutboundMessage]] = {}
        self._sandboxes: Supervisor | None = None
        self._is_open = trio.Event()
        self._shall_leave = trio.Event()
        self._has_left = trio.Event()

    @override
    async def start(self) -> None:
        self._parts.counters.watch(Gauge.STUBS, self._hosts.__len__)
        self.spawn(self._keep_sandboxes)
        await self._is_open.wait()
        await self._parts.bus.tell(ForeignReady(self.me))

    async def _keep_sandboxes(self) -> None:
        async with open_supervisor(
            "sandboxes", Strategy.PEERS, monitor=self._parts.monitor
        ) as self._sandboxes:
            self._is_open.set()
            await self._shall_leave.wait()
        self._has_left.set()

    @override
    async def handle(self, message: _Message) -> None:
        if isinstance(message, SandboxGone):
            self._hosts.pop(message.stub, None)
            self._parts.counters.count(Tally.STUBS_GONE)
        await self._feed(message)

    @override
    def deadline(self) -> float:
        return self._core.deadline()

    @override
    async def timed_out(self) -> None:
        await self._feed(Tick())

    @override
    async def closing(self) -> None:
        """Let every stub close its session, and every sandbox end."""
        self._shall_leave.set()
        await self._has_left.wait()

    @override
    async def stop(self) -> None:
        last: list[Input] = [Leave()]
        last += [SandboxGone(stub, "the node is going down") for stub in self._hosts]
        for happened in last:
            for effect in self._core.feed(happened, trio.current_time()):
                if isinstance(effect, Step):
                    self._trace.step(effect)

    async def _feed(self, happened: Input) -> None:
        for effect in self._core.feed(happened, trio.current_time()):
            await self._perform(effect)

    async def _perform(self, effect: Effect) -> None:
        match effect:
            case Step():
                self._trace.step(effect)
            case Open():
                await self._open(effect)
            case Deliver(stub, entry):
                await self._hand(stub, entry)
            case End(stub):
                self.spawn(self._end, stub)
            case Dropped(message, reason):
                self._trace.drop(message, reason)
            case _:
                await self._speak(effect)

    async def _speak(self, effect: Pass | Refuse | Answer | Renew) -> None:
        match effect:
            case Renew(domain):
                await self._parts.bus.tell(PathsForgotten(message_node(domain)))
            case Pass(domain, stub, message):
                await self._parts.bus.tell(FromForeign(message_node(domain), stub, message))
            case Refuse(message, code, why):
                answer = refuse(message, code, why)
                self._trace.hop(Op.SYNTH, answer)
                await self._parts.bus.tell(Emitted(answer))
            case Answer(stub, message, code, why):
                answer = refuse(message, code, why)
                self._trace.deny(message, code, why)
                await self._hand(stub, OutboundMessage(answer, encode(answer)))
            case _:
                assert_never(effect)

    async def _open(self, wanted: Open) -> None:
        endpoint = self._parts.plan.domains[wanted.domain]
        plan = SandboxPlan(
            url=wanted.stub,
            runtime=self._parts.node,
            domain=wanted.domain,
            endpoints=(endpoint.url,),
            session=wanted.token,
            ids=self._parts.ids.next(wanted.stub),
            hops=self._parts.tracer.hops,
        )
        tools = HostTools(
            self._parts.plan.spawn,
            self._parts.network,
            self._parts.tracer,
            self._parts.counters,
            endpoint.login,
        )
        keep = partial(ForeignStubHost, plan, tools, self.me)
        spec = ChildSpec(wanted.stub, keep, Restart.TEMPORARY)
        if self._sandboxes is not None:
            self._parts.counters.count(Tally.STUBS_OPENED)
            self._hosts[wanted.stub] = await self._sandboxes.start_child(spec)

    async def _hand(self, stub: str, entry: OutboundMessage) -> None:
        host = self._hosts.get(stub)
        if host is None or not host.try_tell(entry):
            await self._feed(SandboxUnreachable(stub, entry.message))

    async def _end(self, stub: str) -> None:
        if self._sandboxes is not None:
            await self._sandboxes.stop_child(stub)
