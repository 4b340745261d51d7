"""Routes of a node to other domains: stubs in sandboxes, and subscriptions at other nodes (MN-19).

The node's configuration or the catalogue of a domain describes the stub for that domain. The stub
is the one that ships with the node, or code that the domain has published. Both run in a sandbox
process (MN-20).

A path is an address, such as that of a data object, to which a runtime subscribes at its own node
(C-49). If another domain's node owns the address, this node subscribes there, once for all its
runtimes. The runtime gets its answer after the other node has answered. When no local subscription
is left, this node unsubscribes at the other node. If the other node has lost the session, this node
subscribes again to all addresses.
"""

from collections import deque
from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from functools import partial
from typing import Final

import attrs
import trio
from typing_extensions import override

from actors.kit.counters import Gauge, Tally
from actors.kit.errors import ActorStoppedError
from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor, ActorRef
from actors.kit.supervision.supervisor import (
    ChildSpec,
    Restart,
    Strategy,
    Supervisor,
    open_supervisor,
)
from actors.node import messages
from actors.node.config import ForeignPlan
from actors.node.described_stubs import DescribedStubs, ForeignStub
from actors.node.host import NodeHost
from actors.node.session.exchange import Exchange
from actors.pipe.host import HandInResult, HostTools, StubHost
from actors.pipe.plan import SandboxPlan, nothing
from fsm.catalogue.foreign import ForeignCore, ForeignPort
from fsm.effects import CoreHost, Refused, deferred
from fsm.engine import Step
from fsm.limits.shares import user_of
from fsm.machines.stub_connection import State
from fsm.session.node_session_io import OutboundMessage
from specs.addresses.address import domain_of, is_node, message_node, subscription_manager
from specs.bodies.link import Path
from specs.limits.foreign_code import FOREIGN_YIELD
from specs.limits.protocol import MAX_LIST, REPLY_TIMEOUT, STUB_QUEUE
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import LAST_SUCCESS, Code, DropReason, Ground
from specs.trace import Op
from transports.bodies import write_body
from transports.codec import encode


class ForeignStubHost(StubHost[OutboundMessage]):
    """Host of the sandbox of one stub: reports its events to `ForeignHost`, and gives it messages.

    Args:
        hosts: The running hosts of the owner, by the address of the stub; includes this host.
    """

    def __init__(
        self,
        plan: SandboxPlan,
        tools: HostTools,
        owner: ActorRef[messages.ForeignCall],
        hosts: dict[str, ActorRef[OutboundMessage]],
    ) -> None:
        super().__init__(plan, tools)
        self._owner = owner
        self._hosts = hosts

    @override
    async def start(self) -> None:
        self._hosts[self.plan.url] = self.me
        await super().start()

    @override
    async def handle(self, message: OutboundMessage) -> None:
        match self.hand(message.message, message.line):
            case HandInResult.FULL | HandInResult.TOO_LARGE:
                await self.on_lost(message.message)
            case HandInResult.GONE:
                url = self.plan.url
                await self._report(lambda core, _: core.sandbox_unreachable(url, message.message))
            case HandInResult.TAKEN:
                pass

    @override
    async def on_ready(self) -> None:
        url = self.plan.url
        await self._report(lambda core, now: core.sandbox_ready(url, now))

    @override
    async def on_post(self, message: Message) -> None:
        url = self.plan.url
        await self._report(lambda core, now: core.sandbox_posted(url, message, now))

    @override
    async def on_request(self, message: Message) -> None:
        # The answer to a request arrives like any other message.
        await self.on_post(message)

    @override
    async def on_lost(self, message: Message) -> None:
        url = self.plan.url
        await self._report(lambda core, _: core.sandbox_full(url, message))

    @override
    async def on_step(self, step: Step) -> None:
        url, state = self.plan.url, State(step.new)
        await self._report(lambda core, _: core.sandbox_status(url, state, step.why))

    @override
    async def on_token(self, token: str, *, is_anew: bool) -> None:
        url = self.plan.url
        await self._report(lambda core, _: core.sandbox_session(url, token, is_anew=is_anew))

    @override
    def on_end(self, why: str) -> None:
        self.finish()

    @override
    async def stop(self) -> None:
        self.rest()
        url, why = self.plan.url, self.why

        def remove_stub(core: ForeignCore, now: float) -> None:
            self._hosts.pop(url, None)
            self.tools.counters.count(Tally.STUBS_GONE)
            core.sandbox_gone(url, why, now)

        await self._report(remove_stub)

    async def _report(self, call: messages.ForeignCall) -> None:
        # An owner that has stopped needs no reports.
        with suppress(ActorStoppedError):
            await self._owner.tell(call)


_log = get_logger("actors.node")


class ForeignHost(Actor[messages.ForeignCall], CoreHost, ForeignPort):
    """Start a sandboxed stub for each domain to which messages are sent, and relay messages."""

    def __init__(self, host: NodeHost, plan: ForeignPlan) -> None:
        self._host = host
        self._plan = plan
        self._trace = host.trace("foreign")
        own = host.addresses
        self._core = ForeignCore(own.node, plan.reach(own.domain), self, plan.idle)
        self.due = deque()
        self._stubs = None if plan.catalogues is None else DescribedStubs(plan.catalogues)
        self._starting: dict[str, trio.CancelScope] = {}
        self._hosts: dict[str, ActorRef[OutboundMessage]] = {}
        self._sandboxes: Supervisor | None = None
        self._is_open = trio.Event()
        self._shall_leave = trio.Event()
        self._has_left = trio.Event()

    @override
    async def start(self) -> None:
        self._host.counters.watch(Gauge.STUBS, self._hosts.__len__)
        self.spawn(self._keep_sandboxes)
        await self._is_open.wait()
        self._host.bus.connect_abroad(self.me)

    async def _keep_sandboxes(self) -> None:
        async with open_supervisor(
            "sandboxes", Strategy.PEERS, monitor=self._host.monitor
        ) as self._sandboxes:
            self._is_open.set()
            await self._shall_leave.wait()
        self._has_left.set()

    @override
    async def handle(self, message: messages.ForeignCall) -> None:
        message(self._core, trio.current_time())
        self.perform()

    @override
    def deadline(self) -> float:
        return self._core.deadline()

    @override
    async def timed_out(self) -> None:
        self._core.tick(trio.current_time())
        self.perform()

    @override
    async def closing(self) -> None:
        """Close the session of every stub, and end every sandbox."""
        self._shall_leave.set()
        await self._has_left.wait()

    @override
    async def stop(self) -> None:
        # Trace the last steps only; the parts that would hear of the end have stopped.
        self._core.leave()
        for stub in list(self._hosts):
            self._core.sandbox_gone(stub, "the node is going down", trio.current_time())

    # ---- commands of the table

    @override
    def step(self, step: Step) -> None:
        self._trace.step(step)

    @override
    @deferred
    def open(self, stub: str, domain: str, token: str | None) -> None:
        scope = self._starting[stub] = trio.CancelScope()
        self.spawn(self._start, stub, domain, token, scope)

    @override
    @deferred
    def deliver(self, stub: str, entry: OutboundMessage) -> None:
        host = self._hosts.get(stub)
        if host is None or not host.try_tell(entry):
            self._core.sandbox_unreachable(stub, entry.message)
            self.perform()

    @override
    @deferred
    def end(self, stub: str, why: str) -> None:
        if stub in self._starting:
            self._starting[stub].cancel()
        elif self._sandboxes is not None:
            self.spawn(self._sandboxes.stop_child, stub)

    @override
    @deferred
    def pass_on(self, domain: str, stub: str, message: Message) -> None:
        bus = self._host.bus
        bus.call(bus.take_foreign, message, message_node(domain), stub)

    @override
    @deferred
    def renew(self, domain: str) -> None:
        bus = self._host.bus
        bus.call(bus.renew_paths, message_node(domain))

    @override
    @deferred
    def drop(self, message: Message, reason: DropReason) -> None:
        self._trace.drop(message, reason)

    @override
    @deferred
    def refuse(self, message: Message, code: Code, why: str, retry_after: float | None) -> None:
        answer = refuse(message, code, why, retry_after)
        self._trace.record_refusal(message, "", code, why, Ground.ROUTE)
        self._trace.hop(Op.SYNTH, answer)
        self._host.send(answer)

    @override
    @deferred
    def answer(self, stub: str, message: Message, code: Code, why: str) -> None:
        answer = refuse(message, code, why)
        self._trace.deny(message, code, why)
        self._trace.record_refusal(message, stub, code, why, Ground.OWNERSHIP)
        self.deliver(stub, OutboundMessage(answer, encode(answer)))
        self.perform()

    # ---- sandboxes

    async def _start(
        self, url: str, domain: str, token: str | None, scope: trio.CancelScope
    ) -> None:
        """Find the stub of a domain and run its sandbox; one time limit applies to both."""
        stub: ForeignStub | str | None = None
        why: str | None = "it took too long"
        with scope:
            endpoint = self._plan.domains.get(domain)
            if endpoint is not None:
                stub = ForeignStub((endpoint.url,), self._host.network, login=endpoint.login)
            elif self._stubs is not None:
                stub = await self._stubs.find(domain, self._host.network)
                if isinstance(stub, ForeignStub):
                    stub = attrs.evolve(stub, login=self._plan.logins.get(domain, nothing))
            if isinstance(stub, ForeignStub):
                await self._run(url, domain, token, stub)
                why = None
            else:
                why = stub
        del self._starting[url]
        if why is not None:
            _log.warning("no stub of another domain", domain=domain, why=why)
            self._core.sandbox_gone(url, why, trio.current_time())
            self.perform()

    async def _run(self, url: str, domain: str, token: str | None, stub: ForeignStub) -> None:
        plan = SandboxPlan(
            url=url,
            runtime=self._host.addresses.node,
            domain=domain,
            contents=stub.contents,
            endpoints=stub.endpoints,
            session=token,
            ids=self._host.ids.next(url),
            hops=self._host.tracer.hops,
        )
        tools = HostTools(
            self._plan.spawn,
            stub.network,
            self._host.tracer,
            self._host.counters,
            stub.login,
            stub.archive,
            patience=FOREIGN_YIELD,
        )
        keep = partial(ForeignStubHost, plan, tools, self.me, self._hosts)
        if self._sandboxes is not None:
            self._host.counters.count(Tally.STUBS_OPENED)
            await self._sandboxes.start_child(ChildSpec(url, keep, Restart.TEMPORARY))


_AWAY: Final = f"at most {STUB_QUEUE} requests wait for paths elsewhere, half as many of one user"
_SILENT: Final = Refused(Code.BACKEND_TIMEOUT, "the object's node did not answer in time")


@attrs.frozen
class _PathRequest:
    """Subscription request to another domain's node that has not been answered yet.

    Attributes:
        request: Request of the runtime that subscribed here; None: this node subscribes again.
        give_up: Removes the subscription here if the other node refuses it.
        until: Time by which the other node has to answer, in seconds of the Trio clock.
    """

    manager: str
    resources: tuple[str, ...]
    request: Message | None = None
    by: str = ""
    give_up: Callable[[], object] | None = None
    user: str = ""
    until: float = attrs.field(factory=lambda: trio.current_time() + REPLY_TIMEOUT)


class Onward:
    """Subscribe at the nodes of other domains on behalf of local runtimes; the bus calls it."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._node = exchange.tables.addresses
        self._held: dict[str, set[str]] = {}
        self._asked: dict[int, _PathRequest] = {}

    def missing_paths(self, resources: Iterable[str], by: str) -> dict[str, tuple[str, ...]]:
        """Return the addresses to subscribe to at other nodes, grouped by node.

        An address whose request is still unanswered is requested again. So no runtime hears of
        success before the other node has decided.

        Args:
            resources: The addresses to which the runtime subscribes.
            by: Address of the subscribing runtime.
        """
        wanted: dict[str, tuple[str, ...]] = {}
        pending = {each for path_request in self._asked.values() for each in path_request.resources}
        for resource in resources:
            owner = self._exchange.tables.routing.owner_of(resource)
            if owner is None or owner == by or not is_node(owner):
                continue
            if resource in pending or resource not in self._held.get(owner, ()):
                wanted[owner] = (*wanted.get(owner, ()), resource)
        return wanted

    def subscribe(
        self, request: Message, by: str, resources: tuple[str, ...], known: Container[str]
    ) -> Message | None:
        """Subscribe at the node that owns the addresses of a local subscription, if this is needed.

        Args:
            request: The subscription of a local runtime, which is set here.
            by: Address of the subscribing runtime.
            resources: The addresses to which the runtime subscribes.
            known: Addresses to which the runtime was subscribed before.

        Returns:
            The answer; None: it follows when the other node has answered.
        """
        fresh = tuple(resource for resource in resources if resource not in known)
        give_up = partial(self._exchange.tables.subscriptions.unsubscribe, by, fresh)
        self._expire_requests()
        wanted = self.missing_paths(resources, by)
        if not wanted:
            return reply_to(request, Code.OK)
        if len(wanted) > 1:
            give_up()
            return refuse(request, Code.MALFORMED, "one request names objects of one domain")
        user = user_of(request, self._node.domain)
        user_requests = sum(each.user == user for each in self._asked.values())
        if max(len(self._asked), 2 * user_requests) >= STUB_QUEUE:
            give_up()
            return refuse(request, Code.UNAVAILABLE, _AWAY)
        ((peer, missing),) = wanted.items()
        self._ask(peer, _PathRequest(_manager(peer), missing, request, by, give_up, user))
        return None

    def take_answer(self, answer: Message) -> bool:
        """Handle the answer to a subscription at another node; return False for other messages."""
        path_request = self._asked.get(answer.id)
        if path_request is None or not answer.is_final or answer.from_ != path_request.manager:
            return False
        del self._asked[answer.id]
        refused = None if answer.code <= LAST_SUCCESS else _refusal(answer)
        if refused is not None:
            self._forget(path_request.resources)
        self._settle_path(path_request, refused)
        return True

    def _settle_path(self, path_request: _PathRequest, refused: Refused | None) -> None:
        """Answer the runtime that subscribed; undo its subscription if the other node refused."""
        if refused is not None and path_request.give_up is not None:
            path_request.give_up()
        if path_request.request is not None:
            self._exchange.send(path_request.by, _reply(path_request.request, refused))

    def _expire_requests(self) -> None:
        """Refuse subscriptions that the other node has not answered in time; they count in a limit.

        The other node may have set the path all the same; `settle` removes it there.
        """
        now = trio.current_time()
        expired = [number for number, request in self._asked.items() if request.until <= now]
        for number in expired:
            self._settle_path(self._asked.pop(number), _SILENT)

    def _forget(self, resources: Iterable[str]) -> None:
        for held in self._held.values():
            held.difference_update(resources)

    def settle(self) -> None:
        """Unsubscribe at other nodes from addresses that no local runtime subscribes to now."""
        if not self._exchange.tables.has_lost_paths():
            return
        subscriptions = self._exchange.tables.subscriptions
        for peer, held in self._held.items():
            unused = sorted(
                each
                for each in held
                if not subscriptions.subscribers(each) and not subscriptions.held(each)
            )
            if unused:
                held.difference_update(unused)
                number = self._exchange.next_id(self._node.paths)
                self._send(peer, MessageType.UNSUBSCRIBE, tuple(unused), number)

    def renew(self, peer: str) -> None:
        """Subscribe again at another domain's node that may have lost the subscriptions."""
        held = sorted(self._held.get(peer, ()))
        for start in range(0, len(held), MAX_LIST):
            self._ask(peer, _PathRequest(_manager(peer), tuple(held[start : start + MAX_LIST])))

    def _ask(self, peer: str, path_request: _PathRequest) -> None:
        self._held.setdefault(peer, set()).update(path_request.resources)
        number = self._exchange.next_id(self._node.paths)
        self._asked[number] = path_request
        self._send(peer, MessageType.SUBSCRIBE, path_request.resources, number)

    def _send(self, peer: str, kind: MessageType, resources: tuple[str, ...], number: int) -> None:
        sender = self._node.paths
        body = write_body(Path(resources, sender))
        self._exchange.send(peer, Message(number, kind, sender, _manager(peer), body))


def _manager(peer: str) -> str:
    return subscription_manager(domain_of(peer))


def _reply(request: Message, refused: Refused | None) -> Message:
    if refused is None:
        return reply_to(request, Code.OK)
    return refuse(request, refused.code, refused.why)


def _refusal(answer: Message) -> Refused:
    why = answer.body.get("description")
    text = why if isinstance(why, str) else "the object's node gave no reason"
    code = Code(answer.code) if answer.code in set(Code) else Code.BAD_BACKEND
    return Refused(code, text)
