"""The P2P stubs: a requester links this runtime to another one, a handler accepts links.

All inputs come by the stub's one mailbox: deliveries of the bus, and reports of its own tasks
(listeners, dials, links). Requests are posted and not awaited; their answers come back as
deliveries, so that the order of the messages of a link is kept. The tasks of one end of a link
listen and dial until the end is withdrawn or offers anew; new tasks with new candidates follow.
"""

import math
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Final, TypeAlias, final

import attrs
import trio
from typing_extensions import override

from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.actor import Actor, Delivery, Purpose
from actors.runtime.p2p.handshake import machine_secret
from actors.runtime.p2p.link import P2PLink
from actors.runtime.p2p.signalling import EndHost, resent_object
from actors.runtime.stubs.catalogue import StubKind
from actors.runtime.stubs.stub import StubContext, StubFactory
from actors.runtime.stubs.wire import StubOptionError
from fsm.effects import is_p2p_part
from fsm.engine import Entity
from fsm.machines.stub_connection import STUB_CONNECTION, Trigger
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.link_end import FIRST, HandlerQuota, LinkTerms, Role
from fsm.p2p.link_policy import P2pUse
from specs.addresses.address import is_below, runtime_of, status_of
from specs.bodies.link import Command, Path
from specs.bodies.object import Invitation, ObjectName
from specs.bodies.session import Status
from specs.bodies.word import StubMethod
from specs.errors import BadMessageError, SpecError
from specs.jsonvalue import Json, JsonObject
from specs.message import Message, MessageType, reply_to
from specs.reply_code import Code, DropReason
from specs.trace import Op
from transports.bodies import read_body, write_body
from transports.link import Kind as LinkKind

P2PMessage: TypeAlias = Delivery | Callable[[], Awaitable[None]]
"""A message for the stub, or a call that a task of the stub asks it to make."""


class P2PStub(Actor[P2PMessage]):
    """A stub with any number of ends of P2P links.

    Attributes:
        context: The context of the stub.
        policy: Decides which candidates to dial and to offer.
        ends: The ends, by name.
        watched: The end that observes an object, by the address of the changes of the object.
        kinds_left_out: Kinds of candidates that cannot be opened here.
    """

    def __init__(self, context: StubContext) -> None:
        kinds = tuple(kind.value for kind in context.config.kinds)
        self.context = context
        self.policy = DialPolicy(kinds, machine_secret(), context.config.links)
        self.ends: dict[str, EndHost] = {}
        self.watched: dict[str, EndHost] = {}
        self.kinds_left_out = set[LinkKind]()
        self._asked: dict[int, tuple[EndHost, Callable[[Message], None]]] = {}
        self._withdrawing = 0
        self._is_clean = trio.Event()
        self._unwritten: set[P2PLink] = set()

    # --- hooks of subclasses --------------------------------------------------------------

    @abstractmethod
    def end_for(self, delivery: Delivery) -> str:
        """Return the name of the link end that transmits a message which the stub only forwards."""

    # These raise BadMessageError for a malformed body; the error becomes the answer.

    @abstractmethod
    async def take_invitation(self, message: Message) -> None:
        """Handle the invitation of a peer to its object (M-34)."""

    @abstractmethod
    async def take_command(self, message: Message) -> None:
        """Handle a command of the registry (M-11, M-12)."""

    async def listen_for_link(self, message: Message) -> None:
        """Add the listener of a link, if it is one of this stub (M-05)."""
        await self.answer(message, Code.NOT_FOUND, "this stub does not do this")

    async def end_removed(self, name: str) -> None:
        """Remove everything about an end of a link that has ended."""
        del self.ends[name]

    # --- in -------------------------------------------------------------------------------

    @override
    async def handle(self, message: P2PMessage) -> None:
        if isinstance(message, Delivery):
            await self._take_delivery(message)
        else:
            await message()

    @override
    async def drained(self) -> None:
        for link in self._unwritten:
            link.flush()
        self._unwritten.clear()

    @override
    def deadline(self) -> float:
        return min((end.deadline() for end in self.ends.values()), default=math.inf)

    @override
    async def timed_out(self) -> None:
        now = trio.current_time()
        for end in [end for end in self.ends.values() if end.deadline() <= now]:
            end.time_over()
            await end.perform()

    async def _take_delivery(self, delivery: Delivery) -> None:
        message = delivery.message
        watcher, is_own = self._watcher(message), message.to == self.context.url
        if watcher is not None:
            if is_own:
                await self.answer(message, Code.OK)
            watcher.take_change(message)
            await watcher.perform()
        elif is_own:
            await self._take_message(delivery)
        else:
            await self._send(delivery)

    def _watcher(self, message: Message) -> EndHost | None:
        """Return the link end that observes the Connection object of a change."""
        if message.is_response:
            return None
        resent = resent_object(message, self.context.config.runtime)
        return self.watched.get(message.to if resent is None else f"{resent}/changes")

    async def _take_message(self, delivery: Delivery) -> None:
        message, objection = delivery.message, _objection(delivery)
        if message.is_response:
            await self._take_answer(message)
        elif objection is not None:
            await self.answer(message, Code.FORBIDDEN, objection)
        elif message.is_request:
            try:
                await self._take_request(message)
            except BadMessageError as exc:
                await self.answer(message, exc.code, exc.reason)

    async def _take_request(self, message: Message) -> None:
        match message.type:
            case MessageType.CREATE:
                await self.take_invitation(message)
            case MessageType.EXECUTE:
                await self.take_command(message)
            case MessageType.SUBSCRIBE:
                await self.listen_for_link(message)
            case _:
                await self.answer(message, Code.NOT_FOUND, "this stub does not do this")

    async def _take_answer(self, answer: Message) -> None:
        question = self._asked.pop(answer.id, None) if answer.is_final else None
        if question is not None:
            end, take = question
            take(answer)
            await end.perform()

    # --- for the ends ---------------------------------------------------------------------

    @final
    async def ask(self, end: EndHost, request: Message, take: Callable[[Message], None]) -> None:
        """Send a request of a link end, and pass the answer to it.

        Args:
            end: The end.
            request: The request.
            take: Takes the final answer.
        """
        self._asked[request.id] = end, take
        await self.context.bus.post(request)

    @final
    async def ask_withdrawal(self, end: EndHost, request: Message) -> None:
        """Send a request of a link end that is leaving, without waiting for it."""
        self._withdrawing += 1
        await self.ask(end, request, self._end_withdrawal)

    def _end_withdrawal(self, _answer: Message) -> None:
        self._withdrawing -= 1
        if not self._withdrawing:
            self._is_clean.set()
            self._is_clean = trio.Event()

    @final
    async def answer(self, request: Message, code: Code, why: str = "") -> None:
        """Answer a request to the stub.

        Args:
            request: The request.
            code: Reply code.
            why: The reason.
        """
        answer = reply_to(request, code, {"description": why} if why else None)
        await self.context.bus.post(answer)

    @final
    async def answer_when_clean(self, request: Message, code: Code, why: str = "") -> None:
        """Answer once the sync manager has removed all withdrawn objects."""
        while self._withdrawing:
            await self._is_clean.wait()
        await self.answer(request, code, why)

    # --- messages of others ---------------------------------------------------------------

    async def _send(self, delivery: Delivery) -> None:
        message, name = delivery.message, self.end_for(delivery)
        end = self.ends.get(name)
        if name in message.via and delivery.purpose is Purpose.SEND:
            own, reason = self.context.url, DropReason.LOOP
            self.context.counters.drop(reason, message, own)
            self.context.tracer.message(own, Op.DROP, message, reason=reason.value)
        elif end is not None and end.link is not None:
            self._unwritten.add(end.link)
            await end.link.take(delivery)
        elif delivery.purpose is not Purpose.ANNOUNCE:
            await self.context.bus.hand_back((message,), name)

    # --- the end --------------------------------------------------------------------------

    @override
    async def closing(self) -> None:
        with suppress(ActorStoppedError):
            for end in list(self.ends.values()):
                end.core.disconnect("the stub is removed")
                await end.perform()

    @override
    async def stop(self) -> None:
        # After a crash, the entities only reach their ends.
        for end in self.ends.values():
            end.crash()
            await end.close_unused()


def _objection(delivery: Delivery) -> str | None:
    """Return why a stub refuses an invitation of another runtime; None: it accepts.

    An invitation must come by the node, which has checked its sender (P2P-29).
    """
    message = delivery.message
    if not delivery.is_foreign or not message.is_request:
        return None
    is_by_link = is_p2p_part(message.via[-1]) if message.via else False
    return "an invitation comes by the node, and by no link" if is_by_link else None


class P2PRequester(P2PStub):
    """Stub that sets up direct links to other runtimes on request (STB-01, P2P-04, SC-16).

    Its only end has the name of the stub.

    Raises:
        SpecError: The configuration names no peer.
    """

    def __init__(self, context: StubContext) -> None:
        super().__init__(context)
        remote, handler = context.config.remote_runtime, context.config.p2p_handler
        if remote is None or handler is None or not is_below(handler, remote):
            raise SpecError("a P2P requester needs a remote runtime and a handler stub of it")
        terms = LinkTerms(context.config.runtime, remote, context.url, handler)
        self._end = self.ends[context.url] = EndHost(self, terms, Role.REQUESTER)

    @override
    async def start(self) -> None:
        await self._end.start()

    @override
    def end_for(self, delivery: Delivery) -> str:
        return self.context.url

    @override
    async def take_invitation(self, message: Message) -> None:
        invitation = read_body(message, Invitation)
        self._end.invitation = message
        url = message.from_.removesuffix("/subscription")
        self._end.core.peer_invited(url, invitation.source)
        await self._end.perform()

    @override
    async def take_command(self, message: Message) -> None:
        command = read_body(message, Command)
        number = FIRST if command.negotiation is None else command.negotiation
        method, core = StubMethod(command.method), self._end.core
        if method is StubMethod.RENEWED:
            await self.answer(message, Code.MALFORMED, "a requester has no session to renew")
            return
        self._end.command = message
        match method:
            case StubMethod.CONNECT:
                core.connect(trio.current_time())
            case StubMethod.DISCONNECT:
                core.disconnect("disconnect asked")
            case StubMethod.YIELD:
                core.yield_to_peer(number)
            case StubMethod.RESUME:
                core.resume(number)
        await self._end.perform()


class P2PHandler(P2PStub):
    """Stub that accepts direct links that other runtimes request (STB-01, P2P-01, SC-17).

    It has an end for each link, named PC.
    """

    def __init__(self, context: StubContext) -> None:
        super().__init__(context)
        self._quota = HandlerQuota()
        self._last_number = 0
        # Make the certificate at the start, and not while a link is being set up.
        context.guard().certificate()
        self._self = Entity(STUB_CONNECTION, context.url)

    @override
    async def start(self) -> None:
        # The handler itself stays in the state created: only its links have connections (SC-04).
        await self._step(Trigger.CONSTRUCTED)

    @override
    async def closing(self) -> None:
        await super().closing()
        with suppress(ActorStoppedError):
            await self._step(Trigger.CONNECT_IMPOSSIBLE, "the stub is removed")

    @override
    async def stop(self) -> None:
        await super().stop()
        if self._self.allows(Trigger.CONNECT_IMPOSSIBLE):
            step = self._self.step(Trigger.CONNECT_IMPOSSIBLE, "the stub is gone")
            self.context.tracer.step(self.context.url, step)

    async def _step(self, trigger: Trigger, why: str = "") -> None:
        """Make a transition of the stub's own state machine, and publish its new status (I-S4)."""
        step, url = self._self.step(trigger, why), self.context.url
        self.context.tracer.step(url, step)
        number, body = self.context.ids.next(url), write_body(Status(step.new))
        await self.context.bus.post(Message(number, MessageType.UPDATE, url, status_of(url), body))

    @override
    def end_for(self, delivery: Delivery) -> str:
        return delivery.route

    @override
    async def take_invitation(self, message: Message) -> None:
        """Accept an invitation, and first close an older link of the same runtime."""
        invitation = read_body(message, Invitation)
        remote = invitation.value.get("runtime")
        requester = invitation.source
        if not isinstance(remote, str) or not is_below(requester, remote):
            raise BadMessageError("the requester is no stub of the runtime it names")
        own = self.context.config.runtime
        if runtime_of(requester) == own:
            raise BadMessageError("a runtime needs no link to itself")
        if self.context.config.links.of(remote) is P2pUse.NEVER:
            await self.answer(message, Code.FORBIDDEN, "no direct links are wanted from there")
            return
        linked = {end.remote for end in self.ends.values()}
        refusal = self._quota.refusal(remote, linked, trio.current_time())
        if refusal is not None:
            await self.answer(message, Code.UNAVAILABLE, refusal)
            return
        await self._disconnect({remote}, "the requester asks for a new link")
        self._last_number += 1
        name = f"{self.context.url}/conn/{self._last_number}"
        offer = message.from_.removesuffix("/subscription")
        end = EndHost(self, LinkTerms(own, remote, name, requester), Role.HANDLER, offer)
        end.invitation = message
        self.ends[name] = end
        await end.start()

    @override
    async def listen_for_link(self, message: Message) -> None:
        resources = read_body(message, Path).resources
        if not self.ends.keys() >= set(resources):
            await self.answer(message, Code.NOT_FOUND, "there is no such link")
            return
        for link in resources:
            await self.context.bus.add_listener(link, self.me)
        await self.answer(message, Code.OK)

    @override
    async def take_command(self, message: Message) -> None:
        command = read_body(message, Command)
        if command.method != StubMethod.DISCONNECT:
            raise BadMessageError("the only command of a handler is to disconnect")
        named = command.params if command.link is None else (command.link,)
        await self._disconnect(set(named), "disconnect asked")
        self.spawn(self.answer_when_clean, message, Code.OK)

    async def _disconnect(self, names: set[str], why: str) -> None:
        """Close links.

        Args:
            names: Addresses of links, or of runtimes for all their links; empty: all links.
            why: Half a sentence for people.
        """
        for end in list(self.ends.values()):
            if not names or names & {end.name, end.remote}:
                end.core.disconnect(why)
                await end.perform()

    @override
    async def end_removed(self, name: str) -> None:
        """Notify the registry that a link has ended for good (I-P19)."""
        await self.context.bus.remove_listener(name, self.me)
        url, registry = self.context.url, f"{self.context.config.runtime}/registry"
        number, body = self.context.ids.next(url), write_body(ObjectName(name))
        await self.context.bus.post(Message(number, MessageType.DELETE, url, registry, body))
        await super().end_removed(name)


# The stubs of direct links as profiles of a catalogue name them (CAT-10, P2P-01, P2P-04). They are
# code of this runtime only: a direct link is proven by the runtime's key, listens on its network
# and dials what peers offer. Code from elsewhere gets none of these (STB-12).

LINK_STUBS: Final[Mapping[str, StubKind]] = MappingProxyType(
    {"p2p-handler": StubKind.P2P_HANDLER, "p2p-requester": StubKind.P2P_REQUESTER}
)
"""The purposes of the stubs of direct links, by their names in profiles of descriptors."""

LINK_MAKERS: Final[Mapping[StubKind, StubFactory]] = MappingProxyType(
    {StubKind.P2P_HANDLER: P2PHandler, StubKind.P2P_REQUESTER: P2PRequester}
)
"""Factories of the stubs of direct links, by purpose."""

_KINDS: Final = "kinds"


def link_stub(name: str, options: JsonObject) -> StubFactory:
    """Return the maker of a stub of direct links, as a profile describes it.

    The option `kinds` lists the transports that the stub may use, of those that this runtime uses
    anyway; without it the stub uses all of them.

    Args:
        name: The name of the stub in a profile.
        options: The options of the profile.

    Raises:
        StubOptionError: An option, or its value, is not known.
    """
    kinds, make = _kinds(name, options), LINK_MAKERS[LINK_STUBS[name]]
    if kinds is None:
        return make

    def activate(context: StubContext) -> Actor[Delivery]:
        """Create the stub; the loader calls this function of a stub's module.

        Raises:
            StubOptionError: The profile leaves the stub no transport.
        """
        common = tuple(kind for kind in context.config.kinds if kind in kinds)
        if not common:
            why = f"this runtime uses none of {', '.join(sorted(kinds))} for direct links"
            raise StubOptionError(name, _KINDS, why)
        return make(attrs.evolve(context, config=attrs.evolve(context.config, kinds=common)))

    return activate


def _kinds(name: str, options: JsonObject) -> frozenset[LinkKind] | None:
    for option in options:
        if option != _KINDS:
            raise StubOptionError(name, option, f"there is no option {option!r}; there is 'kinds'")
    listed = options.get(_KINDS)
    if listed is None:
        return None
    if not isinstance(listed, list) or not listed or not all(_is_kind(each) for each in listed):
        why = f"the option 'kinds' is no list of {', '.join(LinkKind)}"
        raise StubOptionError(name, _KINDS, why)
    return frozenset(LinkKind(each) for each in listed if isinstance(each, str))


def _is_kind(value: Json) -> bool:
    return isinstance(value, str) and value in list(LinkKind)
