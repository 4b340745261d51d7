"""Ports: the objects through which components send and receive at the Message BUS.

Methods raise ActorStoppedError if the runtime has closed.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import trio
from typing_extensions import override

from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.actor import ActorRef, Delivery, Reply
from actors.runtime.bus.messages import (
    InFlight,
    LinkListener,
    Listener,
    Origin,
    Permits,
    Turn,
    answer_in_turn,
)
from actors.runtime.bus.mini_bus import MiniBus, MiniBusPort, Progress
from fsm.bus.listeners import ForwardRule
from fsm.bus.sending_order import ChildPath
from fsm.bus.transactions import ASKED_ONCE, Terms
from fsm.effects import Intent
from fsm.p2p.transfer import Behind
from specs.message import Message

if TYPE_CHECKING:
    from actors.runtime.bus.message_bus import MessageBus

_BATCH: Final = 64
"""Number of messages that a hyperty or stub posts before other tasks run."""


class _Port(MiniBusPort):
    """The operations of every port: post, request, and return undeliverable messages."""

    _mailbox: ActorRef[Turn] | None = None

    def __init__(self, url: str, bus: "MessageBus") -> None:
        self.url = url
        self._bus = bus

    @override
    async def post(self, message: Message, by: str | None = None) -> None:
        self._bus.submit(InFlight(message, by or self.url))

    @override
    def try_answer(self, answer: Message) -> bool:
        try:
            self._bus.submit(InFlight(answer, self.url))
        except ActorStoppedError:
            return False
        return True

    @override
    async def request(self, message: Message, progress: Progress | None = None) -> Message:
        return await self.insist(message, 1, progress)

    @override
    async def insist(
        self, message: Message, attempts: int, progress: Progress | None = None
    ) -> Message:
        # Refusals come without waiting: a loop of refused requests can be cancelled here.
        await trio.lowlevel.checkpoint_if_cancelled()
        reply = self._ask(message, attempts, progress=progress)
        return await self._bus.replies.wait_for(reply)

    def _ask(
        self,
        message: Message,
        attempts: int = 1,
        permit: Permits | None = None,
        intent: Intent | None = None,
        progress: Progress | None = None,
    ) -> Reply[Message]:
        reply: Reply[Message] = Reply()
        mailbox = self._mailbox
        take_answer = reply.send if mailbox is None else partial(answer_in_turn, reply, mailbox)
        terms = Terms(attempts=attempts) if attempts > 1 else ASKED_ONCE
        self._bus.submit(
            InFlight(message, self.url, take_answer, terms, permit, intent, progress=progress)
        )
        return reply

    @override
    async def hand_back(self, messages: Sequence[Message], by: str | None = None) -> None:
        with self._bus as bus:
            bus.hand_back(tuple(messages), by or self.url, trio.current_time())

    @override
    async def room(self, count: int, *, is_first: bool = False) -> None:
        with self._bus as bus:
            bus.outbound.room(self.url, count, trio.current_time(), is_first=is_first)

    @override
    async def announce(self, behind: Behind, by: str) -> None:
        with self._bus as bus:
            bus.take_announcement(behind, by, trio.current_time())


class SandboxPort(_Port):
    """The port of a component in a sandbox; the MiniBUS of the sandbox has its listeners."""

    def __init__(self, url: str, bus: "MessageBus", mini_bus: MiniBus) -> None:
        super().__init__(url, bus)
        self._mini_bus = mini_bus
        self._posted = 0

    @override
    async def add_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        self._bus.overflow(self._mini_bus.add(address, ref, self.url))

    @override
    async def remove_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        self._mini_bus.remove(address, ref, self.url)

    @override
    async def post(self, message: Message, by: str | None = None) -> None:
        self._posted += 1
        is_turn = self._posted % _BATCH == 0
        if is_turn and not message.is_response:
            # An answer must be sent, also by a task that is being cancelled.
            await trio.lowlevel.checkpoint_if_cancelled()
        await self._put(InFlight(message, by or self.url))
        if is_turn:
            # After the submission: a message with a permit goes before all later ones (I-T7).
            await trio.lowlevel.cancel_shielded_checkpoint()

    async def _put(self, flight: InFlight) -> None:
        self._bus.submit(flight)


class HypertyPort(SandboxPort):
    """The port of a hyperty: it shares the bus fairly with other hyperties (R11)."""

    def __init__(self, url: str, bus: "MessageBus", mini_bus: MiniBus) -> None:
        super().__init__(url, bus, mini_bus)
        self._permits = Permits()

    @override
    async def insist(
        self, message: Message, attempts: int, progress: Progress | None = None
    ) -> Message:
        await trio.lowlevel.checkpoint_if_cancelled()
        if not self._permits.enter_nowait():
            await self._permits.enter()
        reply = self._ask(message, attempts, self._permits, progress=progress)
        return await self._bus.replies.wait_for(reply)

    @override
    async def _put(self, flight: InFlight) -> None:
        # An answer needs no permit: the number of answers is limited by that of the requests.
        if not flight.message.is_response:
            await self._permits.enter()
            flight.permit = self._permits
        self._bus.submit(flight)


class CorePort(_Port):
    """The port of a core component; the Message BUS has its listeners."""

    def take_turns(self, mailbox: ActorRef[Turn]) -> None:
        """Deliver answers to the tasks of an actor by its mailbox, behind earlier messages."""
        self._mailbox = mailbox

    def send(self, message: Message) -> None:
        """Post a message, without waiting."""
        self._bus.submit(InFlight(message, self.url))

    def open_address(self, address: str, ref: ActorRef[Delivery]) -> None:
        """Permit the component to send from an address, and deliver messages to that address."""
        self._bus.grant(self.url, address, Origin.LOCAL)
        self.listen(address, ref)

    def close_address(self, address: str, ref: ActorRef[Delivery]) -> None:
        """Undo `open_address`. Idempotent."""
        self.unlisten(address, ref)
        self.revoke(address, self.url)

    @override
    async def add_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        self.open_address(address, ref)

    @override
    async def remove_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        self.close_address(address, ref)

    def listen(self, address: str, ref: Listener) -> None:
        """Add a receiver of messages to an address (BUS-02)."""
        with self._bus as bus:
            bus.hops.rows(bus.routing.add(address, ref, self.url))

    def unlisten(self, address: str, ref: Listener | None) -> None:
        """Remove a receiver of an address; None: all receivers. Idempotent."""
        with self._bus as bus:
            bus.hops.rows(bus.routing.remove(address, ref, self.url))

    def follow(self, address: str, component: str) -> None:
        """Add the receivers of a component as receivers of an address (SYN-06)."""
        with self._bus as bus:
            for listener in bus.routing.find(component):
                bus.hops.rows(bus.routing.add(address, listener, self.url))

    def unfollow(self, address: str, component: str) -> None:
        """Undo `follow`. Idempotent."""
        with self._bus as bus:
            for listener in bus.routing.find(component):
                bus.hops.rows(bus.routing.remove(address, listener, self.url))

    def unfollow_all(self, address: str) -> None:
        self.unlisten(address, None)

    def add_link(self, address: str, link: str) -> None:
        """Send copies of the messages to an address by a link (P2P-25)."""
        with self._bus as bus:
            for stub in bus.routing.find(link):
                branch = bus.outbound.branch(address, stub, link, trio.current_time())
                bus.hops.rows(bus.routing.add(address, branch, self.url))

    def remove_link(self, address: str, link: str) -> None:
        """Undo `add_link`. Idempotent."""
        with self._bus as bus:
            for row in bus.routing.find(address):
                if isinstance(row, LinkListener) and row.link == link:
                    bus.hops.rows(bus.routing.remove(address, row, self.url))

    async def request_direct(self, message: Message) -> Message:
        """Request by the live link only; 503 if there is none or it ends first (P2P-30)."""
        await trio.lowlevel.checkpoint_if_cancelled()
        reply = self._ask(message, intent=Intent.DIRECT)
        return await self._bus.replies.wait_for(reply)

    def set_event_link(self, address: str, link: str | None) -> None:
        """Accept events of an address by this direct link only; None: from no link."""
        with self._bus as bus:
            bus.allow_events(address, link)

    def set_child_path(self, address: str, path: ChildPath) -> None:
        """Set the route of the changes of children that local components write (P2P-30)."""
        with self._bus as bus:
            bus.set_child_path(address, path, trio.current_time())

    async def caught_up(self, address: str, link: str) -> None:
        """Wait until the events that were sent by the node, before those by a link, have come."""
        reply: Reply[None] = Reply()
        with self._bus as bus:
            bus.catch_up(address, link, reply, trio.current_time())
        await self._bus.replies.wait_for(reply)

    def publish(
        self, message: Message, runtimes: frozenset[str], direct: frozenset[str] = frozenset()
    ) -> None:
        """Publish a message to all observers, here and elsewhere (BUS-09).

        Answers are delivered to the listener of its `from`: one for each runtime, which `source`
        names (C-81), or one of a router, which names none and ends the request for all. Observers
        behind a link with a listener (`add_link`) get the message by the link only.

        Args:
            message: The message; its `to` is an address of the object.
            runtimes: Runtimes whose answers are awaited.
            direct: Those of the runtimes that a direct link reaches.
        """
        # Only by the node: a link may still lead to an earlier reporter of the object.
        terms = Terms(runtimes, direct=direct)
        self._bus.submit(InFlight(message, self.url, terms=terms, intent=Intent.NODE))

    def deliver(self, message: Message, component: str) -> None:
        """Deliver a message to a component other than its receiver, which acts for the receiver."""
        with self._bus as bus:
            bus.deliver(message, component, trio.current_time())

    @asynccontextmanager
    async def forwarding(self, rule: ForwardRule) -> AsyncIterator[None]:
        """Copy messages by a rule while the context is open (BUS-08, BUS-10)."""
        with self._bus as bus:
            bus.add_rule(rule, self.url)
        try:
            yield
        finally:
            with suppress(ActorStoppedError), self._bus as bus:
                bus.remove_rule(rule, self.url)

    def grant(self, address: str, component: str) -> None:
        self._bus.grant(component, address, Origin.LOCAL)

    def revoke(self, address: str, component: str) -> None:
        """Revoke the permission of `grant`. Idempotent."""
        with self._bus as bus:
            bus.admission.revoke(component, address)

    def admit(self, owner: str, origin: Origin, listener: Listener) -> None:
        self._bus.grant(owner, owner, origin)
        self.listen(owner, listener)

    def anonymise(self, stub: str) -> None:
        """Remove the identities of senders from all messages to a stub (REG-15)."""
        with self._bus as bus:
            bus.outbound.anonymous.add(stub)

    def expel(self, owner: str) -> None:
        """Remove a component from the listeners of all addresses. Idempotent."""
        with self._bus as bus:
            bus.outbound.anonymous.discard(owner)
            for listener in bus.routing.find(owner):
                bus.hops.rows(bus.routing.remove_listener(listener, self.url))
                bus.outbound.stub_left(owner, trio.current_time())
