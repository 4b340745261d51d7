"""The routes of a node to other domains: their table, their sandboxes, and paths there (MN-19).

A domain that the configuration does not name is described by its catalogue, if the node has
catalogues: the stub that ships with the node, pointed at the domain's node, or code of the domain.
Both run in a sandbox process (MN-20).

A runtime in the trapezoid sets its path at its own node (C-49). The first path to a resource of
another domain is set at that domain's node too, on behalf of this node; later ones only
here. When the last path here is removed, it is removed there. The answer to the runtime waits
for the other node's answer. When a node has lost the session, all paths are set again.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
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
from actors.node.components import LocalService
from actors.node.config import NOWHERE, ForeignPlan
from actors.node.described_stubs import DescribedStubs, ForeignStub
from actors.node.host import NodeHost
from actors.node.session.exchange import Exchange
from actors.node.session.foreign_routes import Paths
from actors.node.tables import Tables
from actors.pipe.host import HandInResult, HostTools, StubHost
from actors.pipe.plan import SandboxPlan, nothing
from fsm.catalogue.foreign import ForeignCore, ForeignPort
from fsm.effects import Refused
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
from transports.bodies import read_body, write_body
from transports.codec import encode


class ForeignStubHost(StubHost[OutboundMessage]):
    """Reports one sandbox to the owner of the table, and delivers messages to its stub.

    Args:
        forget: Called in the owner's task when the sandbox has ended.
    """

    def __init__(
        self,
        plan: SandboxPlan,
        tools: HostTools,
        owner: ActorRef[messages.ForeignCall],
        forget: Callable[[str], None],
    ) -> None:
        super().__init__(plan, tools)
        self._owner = owner
        self._forget = forget

    @override
    async def handle(self, message: OutboundMessage) -> None:
        match self.hand(message.message, message.line):
            case HandInResult.FULL | HandInResult.TOO_LARGE:
                await self.lost(message.message)
            case HandInResult.GONE:
                url = self.plan.url
                await self._report(lambda core, _: core.sandbox_unreachable(url, message.message))
            case HandInResult.TAKEN:
                pass

    @override
    async def ready(self) -> None:
        url = self.plan.url
        await self._report(lambda core, now: core.sandbox_ready(url, now))

    @override
    async def posted(self, message: Message) -> None:
        url = self.plan.url
        await self._report(lambda core, now: core.sandbox_posted(url, message, now))

    @override
    async def asked(self, message: Message) -> None:
        # Its answer comes as an entry, like any other.
        await self.posted(message)

    @override
    async def lost(self, message: Message) -> None:
        url = self.plan.url
        await self._report(lambda core, _: core.sandbox_full(url, message))

    @override
    async def moved(self, step: Step) -> None:
        url, state = self.plan.url, State(step.new)
        await self._report(lambda core, _: core.sandbox_status(url, state, step.why))

    @override
    async def kept(self, token: str, *, is_anew: bool) -> None:
        url = self.plan.url
        await self._report(lambda core, _: core.sandbox_session(url, token, is_anew=is_anew))

    @override
    def ended(self, why: str) -> None:
        self.finish()

    @override
    async def stop(self) -> None:
        self.rest()
        url, why = self.plan.url, self.why

        def gone(core: ForeignCore, now: float) -> None:
            self._forget(url)
            core.sandbox_gone(url, why, now)

        await self._report(gone)

    async def _report(self, call: messages.ForeignCall) -> None:
        # An owner that is gone wants no news.
        with suppress(ActorStoppedError):
            await self._owner.tell(call)


_log = get_logger("actors.node")


class ForeignHost(Actor[messages.ForeignCall], ForeignPort):
    """Opens a sandbox for the stub of each domain that is wanted, and carries messages.

    What the table wants done waits until the call of it has returned, and is done in order.
    """

    def __init__(self, host: NodeHost, plan: ForeignPlan) -> None:
        self._host = host
        self._plan = plan
        self._trace = host.trace("foreign")
        own = host.addresses
        self._core = ForeignCore(own.node, plan.reach(own.domain), self, plan.idle)
        self._wanted: deque[Callable[[], Awaitable[object]]] = deque()
        self._stubs = None if plan.catalogues is None else DescribedStubs(plan.catalogues)
        self._fetches: dict[str, trio.CancelScope] = {}
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
        await self._host.bus.tell(lambda node: node.connect_abroad(self.me))

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
        await self._do_wanted()

    @override
    def deadline(self) -> float:
        return self._core.deadline()

    @override
    async def timed_out(self) -> None:
        self._core.tick(trio.current_time())
        await self._do_wanted()

    async def _do_wanted(self) -> None:
        while self._wanted:
            await self._wanted.popleft()()

    @override
    async def closing(self) -> None:
        """Let every stub close its session, and every sandbox end."""
        self._shall_leave.set()
        await self._has_left.wait()

    @override
    async def stop(self) -> None:
        # Only steps are traced: there is nobody to tell the rest.
        self._core.leave()
        for stub in list(self._hosts):
            self._core.sandbox_gone(stub, "the node is going down", trio.current_time())

    # ---- what the table wants done

    @override
    def step(self, step: Step) -> None:
        self._trace.step(step)

    @override
    def open(self, stub: str, domain: str, token: str | None) -> None:
        self._wanted.append(partial(self._open, stub, domain, token))

    @override
    def deliver(self, stub: str, entry: OutboundMessage) -> None:
        self._wanted.append(partial(self._hand, stub, entry))

    @override
    def end(self, stub: str, why: str) -> None:
        self._wanted.append(partial(self._end, stub))

    @override
    def pass_on(self, domain: str, stub: str, message: Message) -> None:
        self._tell(lambda node: node.take_foreign(message, message_node(domain), stub))

    @override
    def renew(self, domain: str) -> None:
        self._tell(lambda node: node.renew_paths(message_node(domain)))

    def _tell(self, message: messages.BusMessage) -> None:
        self._wanted.append(partial(self._host.bus.tell, message))

    @override
    def drop(self, message: Message, reason: DropReason) -> None:
        self._wanted.append(partial(self._drop, message, reason))

    @override
    def refuse(self, message: Message, code: Code, why: str, retry_after: float | None) -> None:
        self._wanted.append(partial(self._refuse, message, code, why, retry_after))

    @override
    def answer(self, stub: str, message: Message, code: Code, why: str) -> None:
        self._wanted.append(partial(self._answer, stub, message, code, why))

    async def _drop(self, message: Message, reason: DropReason) -> None:
        self._trace.drop(message, reason)

    async def _refuse(
        self, message: Message, code: Code, why: str, retry_after: float | None
    ) -> None:
        answer = refuse(message, code, why, retry_after)
        self._trace.refused(message, "", code, why, Ground.ROUTE)
        self._trace.hop(Op.SYNTH, answer)
        await self._host.send(answer)

    async def _answer(self, stub: str, message: Message, code: Code, why: str) -> None:
        answer = refuse(message, code, why)
        self._trace.deny(message, code, why)
        self._trace.refused(message, stub, code, why, Ground.OWNERSHIP)
        await self._hand(stub, OutboundMessage(answer, encode(answer)))

    # ---- sandboxes

    async def _open(self, stub: str, domain: str, token: str | None) -> None:
        endpoint = self._plan.domains.get(domain)
        if endpoint is not None:
            foreign_stub = ForeignStub((endpoint.url,), self._host.network, login=endpoint.login)
            await self._run(stub, domain, token, foreign_stub)
        elif self._stubs is not None:
            scope = self._fetches[stub] = trio.CancelScope()
            self.spawn(self._fetch, stub, domain, token, self._stubs, scope)

    async def _fetch(
        self,
        stub: str,
        domain: str,
        token: str | None,
        stubs: DescribedStubs,
        scope: trio.CancelScope,
    ) -> None:
        """Fetch the stub of a domain, for as long as its deployment may take."""
        outcome: ForeignStub | str = "it took too long"
        with scope:
            outcome = await stubs.find(domain, self._host.network)

        def fetched(core: ForeignCore, now: float) -> None:
            del self._fetches[stub]
            if isinstance(outcome, str):
                _log.warning("no stub of another domain", domain=domain, why=outcome)
                core.sandbox_gone(stub, outcome, now)
            else:
                login = self._plan.logins.get(domain, nothing)
                run = partial(self._run, stub, domain, token, attrs.evolve(outcome, login=login))
                self._wanted.append(run)

        with suppress(ActorStoppedError):
            await self.me.tell(fetched)

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
        keep = partial(ForeignStubHost, plan, tools, self.me, self._forget)
        spec = ChildSpec(url, keep, Restart.TEMPORARY)
        if self._sandboxes is not None:
            self._host.counters.count(Tally.STUBS_OPENED)
            self._hosts[url] = await self._sandboxes.start_child(spec)

    def _forget(self, stub: str) -> None:
        self._hosts.pop(stub, None)
        self._host.counters.count(Tally.STUBS_GONE)

    async def _hand(self, stub: str, entry: OutboundMessage) -> None:
        host = self._hosts.get(stub)
        if host is None or not host.try_tell(entry):
            self._core.sandbox_unreachable(stub, entry.message)

    async def _end(self, stub: str) -> None:
        if stub in self._fetches:
            self._fetches[stub].cancel()
        elif self._sandboxes is not None:
            self.spawn(self._sandboxes.stop_child, stub)


_AWAY: Final = "too many paths to other domains are being set up"
_SILENT: Final = Refused(Code.BACKEND_TIMEOUT, "the object's node did not answer in time")


@attrs.frozen
class _Asked:
    """A path that another node was asked for.

    Attributes:
        request: Of the requester that set it here; None: this node set it again.
        give_up: Takes the path away here, if it is refused there.
        until: When the other node has had time enough to answer.
    """

    manager: str
    resources: tuple[str, ...]
    request: Message | None = None
    by: str = ""
    give_up: Callable[[], object] | None = None
    user: str = ""
    until: float = attrs.field(factory=lambda: trio.current_time() + REPLY_TIMEOUT)


class Onward(Paths):
    """Subscriptions of this node at others; part of the bus's task."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._node = exchange.tables.addresses
        self._held: dict[str, set[str]] = {}
        self._asked: dict[int, _Asked] = {}

    def wanted(self, resources: Iterable[str], by: str) -> dict[str, tuple[str, ...]]:
        """Return what has to be asked for, by node: not what is known to be set there.

        What is asked for is asked once more, so that no requester is notified of a path that is
        refused in the end.

        Args:
            resources: The paths.
            by: Address of the subscribing runtime.
        """
        wanted: dict[str, tuple[str, ...]] = {}
        pending = {one for asked in self._asked.values() for one in asked.resources}
        for resource in resources:
            owner = self._exchange.tables.routing.owner_of(resource)
            if owner is None or owner == by or not is_node(owner):
                continue
            if resource in pending or resource not in self._held.get(owner, ()):
                wanted[owner] = (*wanted.get(owner, ()), resource)
        return wanted

    def subscribe(
        self, request: Message, by: str, resources: tuple[str, ...], give_up: Callable[[], object]
    ) -> Message | None:
        """Set at other nodes what they have to fan out.

        Args:
            request: The subscription of a local runtime.
            by: Address of the subscribing runtime.
            resources: The paths.
            give_up: Is called if the attempt ends.

        Returns:
            The answer; None: it follows when the other node has answered.
        """
        self._give_up_late()
        wanted = self.wanted(resources, by)
        if not wanted:
            return reply_to(request, Code.OK)
        if len(wanted) > 1:
            give_up()
            return refuse(request, Code.MALFORMED, "one request names objects of one domain")
        user = user_of(request, self._node.domain)
        mine = sum(one.user == user for one in self._asked.values())
        if max(len(self._asked), 2 * mine) >= STUB_QUEUE:
            give_up()
            return refuse(request, Code.UNAVAILABLE, _AWAY)
        ((peer, missing),) = wanted.items()
        self._ask(peer, _Asked(_manager(peer), missing, request, by, give_up, user))
        return None

    @override
    def answered(self, answer: Message) -> bool:
        asked = self._asked.get(answer.id)
        if asked is None or not answer.is_final or answer.from_ != asked.manager:
            return False
        del self._asked[answer.id]
        refused = None if answer.code <= LAST_SUCCESS else _refusal(answer)
        if refused is not None:
            self._forget(asked.resources)
        self._decided(asked, refused)
        return True

    def _decided(self, asked: _Asked, refused: Refused | None) -> None:
        """Keep a path or remove it, and answer the requester that set it."""
        if refused is not None and asked.give_up is not None:
            asked.give_up()
        if asked.request is not None:
            self._exchange.send(asked.by, _reply(asked.request, refused))

    def _give_up_late(self) -> None:
        """Await nothing of a node that does not answer: it would fill the place of others.

        It may have set the path all the same; `settle` takes it back.
        """
        now = trio.current_time()
        late = [number for number, asked in self._asked.items() if asked.until <= now]
        for number in late:
            self._decided(self._asked.pop(number), _SILENT)

    def _forget(self, resources: Iterable[str]) -> None:
        for held in self._held.values():
            held.difference_update(resources)

    @override
    def settle(self) -> None:
        if not self._exchange.tables.has_lost_paths():
            return
        subscriptions = self._exchange.tables.subscriptions
        for peer, held in self._held.items():
            left = sorted(
                one
                for one in held
                if not subscriptions.subscribers(one) and not subscriptions.held(one)
            )
            if left:
                held.difference_update(left)
                number = self._exchange.next_id(self._node.paths)
                self._say(peer, MessageType.UNSUBSCRIBE, tuple(left), number)

    @override
    def renew(self, peer: str) -> None:
        held = sorted(self._held.get(peer, ()))
        for start in range(0, len(held), MAX_LIST):
            self._ask(peer, _Asked(_manager(peer), tuple(held[start : start + MAX_LIST])))

    def _ask(self, peer: str, asked: _Asked) -> None:
        self._held.setdefault(peer, set()).update(asked.resources)
        number = self._exchange.next_id(self._node.paths)
        self._asked[number] = asked
        self._say(peer, MessageType.SUBSCRIBE, asked.resources, number)

    def _say(self, peer: str, kind: MessageType, resources: tuple[str, ...], number: int) -> None:
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


class OnwardPathService(LocalService):
    """The subscription manager of a node that has routes to other domains."""

    def __init__(self, service: LocalService, onward: Onward, tables: Tables) -> None:
        self._service = service
        self._onward = onward
        self._tables = tables

    @override
    def receive(self, message: Message, by: str) -> Message | None:
        known = self._tables.subscriptions.resources_of(by)
        answer = self._service.receive(message, by)
        is_set = answer is not None and answer.code <= LAST_SUCCESS
        if message.type is not MessageType.SUBSCRIBE or not is_set or is_node(by):
            return answer
        resources = read_body(message, Path).resources
        fresh = tuple(one for one in resources if one not in known)
        give_up = partial(self._tables.subscriptions.unsubscribe, by, fresh)
        return self._onward.subscribe(message, by, resources, give_up)


def path_service(service: LocalService, exchange: Exchange, plan: ForeignPlan) -> LocalService:
    """Return the subscription manager: with routes to other domains it subscribes onward.

    Args:
        service: Subscription manager of the node.
        exchange: Exchange of the node.
        plan: The plan.
    """
    if plan is NOWHERE:
        return service
    onward = Onward(exchange)
    exchange.foreign.paths = onward
    return OnwardPathService(service, onward, exchange.tables)
