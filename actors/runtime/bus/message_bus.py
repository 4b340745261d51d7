"""The Message BUS: router of one runtime, between its sandboxes and its stubs.

Submitting components wait while its mailbox is full, and that is the backpressure; it
waits for no component itself.

Messages in the mailboxes of actors that are gone (OBS-06).
"""

from typing import Final, assert_never, final

import trio
from typing_extensions import override

from actors.kit.counters import Counters
from actors.kit.supervision.actor import Actor, ActorRef
from actors.kit.supervision.delivery import DeadLetters, Delivery, Purpose
from actors.kit.trace import Tracer
from actors.runtime.bus.delivery import LinkListener
from actors.runtime.bus.fair_queue import FairQueue
from actors.runtime.bus.forwarding import Forwarding
from actors.runtime.bus.messages import (
    Announced,
    Anonymised,
    BusMessage,
    CaughtUp,
    ChildrenLed,
    Expelled,
    Followed,
    FollowingMessage,
    ForwardAdded,
    ForwardRemoved,
    Granted,
    HandedBack,
    HandedOn,
    HeardBy,
    KeptIn,
    LinkMessage,
    ListenerAdded,
    ListenerRemoved,
    Lost,
    Named,
    RegistryJoined,
    ReleaseAsked,
    Revoked,
    Room,
    RoutingMessage,
    SentOut,
    Submitted,
    Unfollowed,
)
from actors.runtime.bus.pipeline import NO_INTERCEPTORS, Interceptor
from actors.runtime.hop_trace import HopTrace
from actors.runtime.own_sender import OwnSender
from actors.runtime.policy import Judge
from fsm.bus.forward_rules import ForwardRefusedError
from fsm.registry.resolve.resolve_io import (
    NoRoute,
    OwnerDoubted,
    OwnerKnown,
    PeerGone,
    PeerKnown,
    Route,
    RoutesChanged,
)
from specs.reply_code import Code, DropReason

__all__ = ["DeadMail", "MessageBus"]


@final
class DeadMail(DeadLetters):
    """Counts them all; requests among them are answered 503 by the Message BUS.

    When that is gone, too, its end answers the requester; each message is a drop.
    """

    def __init__(self) -> None:
        self._bus: ActorRef[BusMessage] | None = None
        self._counters = Counters()

    def attach(self, bus: ActorRef[BusMessage], counters: Counters) -> None:
        """Set the answering address and the counters.

        Args:
            bus: Message bus of the node.
            counters: Counters of the process.
        """
        self._bus = bus
        self._counters = counters

    @override
    def lost(self, actor: str, message: object) -> None:
        self._counters.dead_letter(actor)
        match message:
            case Delivery(inner):
                lost = Lost(message, Code.UNAVAILABLE, "the receiver is gone")
                if self._bus is None or not self._bus.try_tell(lost):
                    self._counters.drop(DropReason.NO_TARGET, inner, actor)
            case Submitted(inner) | Lost(Delivery(inner)):
                self._counters.drop(DropReason.NO_TARGET, inner, actor)
            case _:
                pass


_NAME: Final = "bus"


@final
class MessageBus(Actor[BusMessage]):
    """Hosts the cores that forward messages."""

    def __init__(
        self,
        own: OwnSender,
        policy: Judge,
        tracer: Tracer,
        counters: Counters,
        interceptors: tuple[Interceptor, ...] = NO_INTERCEPTORS,
    ) -> None:
        self._hops = HopTrace(tracer, _NAME, counters)
        self._turns = FairQueue()
        self._forwarding = Forwarding(own, policy, self._hops, self._turns, interceptors)

    @override
    async def handle(self, message: BusMessage) -> None:
        match message:
            case Submitted():
                self._forwarding.submit(message, trio.current_time())
            case HandedBack() | HandedOn() | Lost():
                self._hand(message)
            case Announced() | CaughtUp():
                self._follow_path(message)
            case Room(stub, count, is_first):
                now = trio.current_time()
                self._forwarding.outbound.room(stub, count, now, is_first=is_first)
            case Route() | NoRoute() | RoutesChanged():
                self._route(message)
            case PeerKnown() | PeerGone() | OwnerKnown() | OwnerDoubted():
                self._forwarding.proofs.proven(message, trio.current_time())
            case RegistryJoined() | ReleaseAsked() | ForwardAdded():
                self._serve(message)
            case _:
                self._write(message)
        self._forwarding.admission.settle()

    def _release(self, stub: str, domain: str) -> bool:
        """Forget the routes by a stub, unless a request or a subscription depends on it."""
        is_free = not self._forwarding.answers.depends_on(stub, domain)
        if is_free:
            self._forwarding.outbound.routes.forget_stub(stub)
        return is_free

    def _route(self, message: Route | NoRoute | RoutesChanged) -> None:
        match message:
            case Route():
                self._forwarding.routed(message, trio.current_time())
            case NoRoute():
                self._forwarding.outbound.no_route(message, trio.current_time())
            case RoutesChanged():
                self._forwarding.outbound.routes.forget()
            case _:
                assert_never(message)

    def _hand(self, message: HandedBack | HandedOn | Lost) -> None:
        now = trio.current_time()
        match message:
            case HandedBack(messages, by):
                self._forwarding.hand_back(messages, by, now)
            case HandedOn(passed, component):
                self._forwarding.hand_on(passed, component, now)
            case Lost(delivery) if delivery.purpose is Purpose.ANNOUNCE:
                pass
            case Lost():
                self._forwarding.lost(message, now)
            case _:
                assert_never(message)

    def _follow_path(self, message: Announced | CaughtUp) -> None:
        now = trio.current_time()
        match message:
            case Announced():
                self._forwarding.announced(message, now)
            case CaughtUp(address, link, done):
                self._forwarding.arrivals.catch_up(address, link, done, now)
            case _:
                assert_never(message)

    def _serve(self, message: RegistryJoined | ReleaseAsked | ForwardAdded) -> None:
        match message:
            case RegistryJoined(registry, done):
                self._forwarding.outbound.registry = registry
                done.send(None)
            case ReleaseAsked(stub, domain, freed):
                freed.send(self._release(stub, domain))
            case ForwardAdded(rule, writer, added):
                try:
                    self._forwarding.copies.add(rule, writer)
                except ForwardRefusedError as error:
                    added.fail(error)
                else:
                    added.send(None)
            case _:
                assert_never(message)

    def _write(self, message: RoutingMessage) -> None:
        routing = self._forwarding.routing
        match message:
            case Granted() | Revoked() | Named() | Anonymised():
                self._write_component(message)
            case ForwardRemoved(rule, writer):
                self._forwarding.copies.remove(rule, writer)
            case ListenerAdded(address, listener, writer):
                self._hops.rows(routing.add(address, listener, writer))
            case ListenerRemoved(address, listener, writer):
                self._hops.rows(routing.remove(address, listener, writer))
            case SentOut() | KeptIn() | HeardBy() | ChildrenLed():
                self._write_link(message)
            case _:
                self._write_following(message)
        message.done.send(None)

    def _write_component(self, message: Granted | Revoked | Named | Anonymised) -> None:
        admission = self._forwarding.admission
        match message:
            case Granted(owner, address, origin):
                admission.grant(owner, address, origin)
            case Revoked(owner, address):
                admission.revoke(owner, address)
            case Named(component, name):
                admission.name(component, name)
            case Anonymised(stub):
                self._forwarding.outbound.anonymous.add(stub)
            case _:
                assert_never(message)

    def _write_link(self, message: LinkMessage) -> None:
        """Have what is sent to an address go out by a link, too, or no longer."""
        routing, address = self._forwarding.routing, message.address
        match message:
            case SentOut():
                self._branch(message)
            case KeptIn(_, link, writer):
                for row in routing.find(address):
                    if isinstance(row, LinkListener) and row.link == link:
                        self._hops.rows(routing.remove(address, row, writer))
            case HeardBy(_, link):
                self._forwarding.admission.allow_events(address, link)
                if link is not None:
                    self._forwarding.arrivals.expects(address, link)
            case ChildrenLed(_, path):
                self._forwarding.lead_children(address, path, trio.current_time())
            case _:
                assert_never(message)

    def _branch(self, message: SentOut) -> None:
        routing, address, link = self._forwarding.routing, message.address, message.link
        for stub in routing.find(link):
            now = trio.current_time()
            branch = self._forwarding.outbound.branch(address, stub, link, now)
            self._hops.rows(routing.add(address, branch, message.writer))

    def _write_following(self, message: FollowingMessage) -> None:
        routing = self._forwarding.routing
        if isinstance(message, Expelled):
            self._forwarding.outbound.anonymous.discard(message.component)
        for listener in routing.find(message.component):
            match message:
                case Followed(address, _, writer):
                    self._hops.rows(routing.add(address, listener, writer))
                case Unfollowed(address, _, writer):
                    self._hops.rows(routing.remove(address, listener, writer))
                case Expelled(component, writer):
                    self._hops.rows(routing.remove_listener(listener, writer))
                    self._forwarding.outbound.stub_left(component, trio.current_time())
                case _:
                    assert_never(message)

    @override
    def deadline(self) -> float:
        return min(self._forwarding.deadline(), self._turns.deadline())

    @override
    async def timed_out(self) -> None:
        now = trio.current_time()
        self._turns.tick(now)
        self._forwarding.tick(now)
        self._forwarding.admission.settle()

    @override
    async def stop(self) -> None:
        self._forwarding.leave()
