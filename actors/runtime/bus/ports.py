"""The ports by which components reach the Message BUS.

Each async method waits for the Message BUS. It raises ActorStoppedError if the runtime has closed.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import final

import trio
from typing_extensions import override

from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.delivery import Delivery
from actors.runtime.bus.fair_queue import OwnPlace, Permits
from actors.runtime.bus.messages import (
    Announced,
    Anonymised,
    BusMessage,
    CaughtUp,
    ChildrenLed,
    Expelled,
    Followed,
    ForwardAdded,
    ForwardRemoved,
    Granted,
    HandedBack,
    HandedOn,
    HeardBy,
    KeptIn,
    ListenerAdded,
    ListenerRemoved,
    MiniBusMessage,
    Origin,
    Revoked,
    Room,
    SentOut,
    Submitted,
    Unfollowed,
)
from actors.runtime.bus.mini_bus import MiniBusPort
from fsm.bus.child_paths import ChildPath
from fsm.bus.forward_rules import ForwardRule
from fsm.bus.transactions import ASKED_ONCE, Terms
from fsm.intent import Intent
from fsm.p2p.transfer import Behind
from specs.message import Message

__all__ = ["CorePort", "HypertyPort", "SandboxPort"]


def _asked(attempts: int) -> Terms:
    return ASKED_ONCE if attempts == 1 else Terms(attempts=attempts)


class _Port(MiniBusPort):
    """The operations of every component: post, request, hand back."""

    def __init__(self, url: str, bus: ActorRef[BusMessage]) -> None:
        self.url = url
        self._bus = bus

    @override
    async def post(self, message: Message, by: str | None = None) -> None:
        await self._bus.tell(Submitted(message, by or self.url))

    @override
    def try_answer(self, answer: Message) -> bool:
        return self._bus.try_tell(Submitted(answer, self.url))

    @override
    async def request(self, message: Message) -> Message:
        return await self.insist(message, 1)

    @override
    async def insist(self, message: Message, attempts: int) -> Message:
        by, terms = self.url, _asked(attempts)
        return await self._bus.ask(lambda reply: Submitted(message, by, reply, terms))

    @override
    async def hand_back(self, messages: Sequence[Message], by: str | None = None) -> None:
        await self._bus.tell(HandedBack(tuple(messages), by or self.url))

    @override
    async def room(self, count: int, *, is_first: bool = False) -> None:
        await self._bus.tell(Room(self.url, count, is_first))

    @override
    async def announce(self, behind: Behind, by: str) -> None:
        await self._bus.tell(Announced(behind, by))


class SandboxPort(_Port):
    """The port of a component in a sandbox; its listeners are rows of its MiniBUS."""

    def __init__(
        self, url: str, bus: ActorRef[BusMessage], mini_bus: ActorRef[MiniBusMessage]
    ) -> None:
        super().__init__(url, bus)
        self._mini_bus = mini_bus

    @override
    async def add_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        await self._mini_bus.ask(lambda done: ListenerAdded(address, ref, self.url, done))

    @override
    async def remove_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        await self._mini_bus.ask(lambda done: ListenerRemoved(address, ref, self.url, done))


@final
class HypertyPort(SandboxPort):
    """The port of a hyperty: it shares the bus fairly with other hyperties (R11)."""

    def __init__(
        self, url: str, bus: ActorRef[BusMessage], mini_bus: ActorRef[MiniBusMessage]
    ) -> None:
        super().__init__(url, bus, mini_bus)
        self._places = Permits()

    @override
    async def post(self, message: Message, by: str | None = None) -> None:
        if message.is_response:
            # It is owed, and no more can come than was asked for.
            await self._bus.tell(Submitted(message, by or self.url))
            return
        if not self._places.enter_nowait():
            await self._places.enter()
        is_sent = False
        try:
            await self._bus.tell(Submitted(message, by or self.url, place=self._places))
            is_sent = True
        finally:
            if not is_sent:
                self._places.give_back()

    @override
    async def request(self, message: Message) -> Message:
        return await self.insist(message, 1)

    @override
    async def insist(self, message: Message, attempts: int) -> Message:
        if not self._places.enter_nowait():
            await self._places.enter()
        place, by, terms = OwnPlace(self._places), self.url, _asked(attempts)
        try:
            return await self._bus.ask(lambda reply: Submitted(message, by, reply, terms, place))
        finally:
            place.leave()


@final
class CorePort(_Port):
    """The port of a core component; its listeners are rows of the Message BUS."""

    @override
    async def add_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        await self._bus.ask(lambda done: Granted(self.url, address, Origin.LOCAL, done))
        await self._bus.ask(lambda done: ListenerAdded(address, ref, self.url, done))

    @override
    async def remove_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        await self._bus.ask(lambda done: ListenerRemoved(address, ref, self.url, done))
        await self._bus.ask(lambda done: Revoked(self.url, address, done))

    async def watch(self, address: str, ref: ActorRef[Delivery]) -> None:
        """Deliver what is sent to the address of another component, such as its status (REG-11).

        Args:
            address: The address.
            ref: The actor that gets the messages.

        If cancelled, the listener may have been added.
        """
        await self._bus.ask(lambda done: ListenerAdded(address, ref, self.url, done))

    async def unwatch(self, address: str, ref: ActorRef[Delivery]) -> None:
        """End what `watch` began. Idempotent.

        Args:
            address: The address.
            ref: The actor that got the messages.

        If cancelled, the listener may have been removed.
        """
        await self._bus.ask(lambda done: ListenerRemoved(address, ref, self.url, done))

    async def follow(self, address: str, component: str) -> None:
        """Deliver what is sent to `address` to a component, too (SYN-06).

        Args:
            address: The address.
            component: Address of the component.

        If cancelled, the deliveries may have begun.
        """
        await self._bus.ask(lambda done: Followed(address, component, self.url, done))

    async def unfollow(self, address: str, component: str) -> None:
        """End the deliveries of `address` to a component. Idempotent (I-D7).

        Args:
            address: The address.
            component: Address of the component.

        If cancelled, the deliveries may have ended.
        """
        await self._bus.ask(lambda done: Unfollowed(address, component, self.url, done))

    async def unfollow_all(self, address: str) -> None:
        """End all deliveries of `address`. Idempotent.

        If cancelled, the deliveries may have ended.
        """
        await self._bus.ask(lambda done: ListenerRemoved(address, None, self.url, done))

    async def send_out(self, address: str, link: str) -> None:
        """Send what is sent to `address` by a live link, too (P2P-25).

        Args:
            address: The address.
            link: Address of the link.

        If cancelled, it may have begun.
        """
        await self._bus.ask(lambda done: SentOut(address, link, self.url, done))

    async def keep_in(self, address: str, link: str) -> None:
        """End what `send_out` began. Idempotent.

        Args:
            address: The address.
            link: Address of the link.

        If cancelled, it may have ended.
        """
        await self._bus.ask(lambda done: KeptIn(address, link, self.url, done))

    async def request_direct(self, message: Message) -> Message:
        """Send a request by the live link to its receiver, and return its final answer.

        The answer is 503 if there is no link, or it ends first (P2P-30). If cancelled, the
        request may have been sent; its answer is dropped.
        """
        by, intent = self.url, Intent.DIRECT
        return await self._bus.ask(lambda reply: Submitted(message, by, reply, intent=intent))

    async def hear_by(self, address: str, link: str | None) -> None:
        """Accept what is published at `address` by this direct link, and by no other.

        What comes by a node is accepted all the same: the node knows its permitted publishers.

        Args:
            address: The address.
            link: Address of the link; None: by no direct link.

        If cancelled, it may be in effect.
        """
        await self._bus.ask(lambda done: HeardBy(address, link, done))

    async def lead_children(self, address: str, path: ChildPath) -> None:
        """Let what components write at the address of children take this path (P2P-30).

        Args:
            address: The address.
            path: The path.

        If cancelled, it may be in effect.
        """
        await self._bus.ask(lambda done: ChildrenLed(address, path, done))

    async def caught_up(self, address: str, link: str) -> None:
        """Wait until a link brings what is published at `address`, and all before has come.

        Returns after `REPLY_TIMEOUT` seconds at the latest.

        Args:
            address: The address.
            link: Address of the link.

        If cancelled, only the wait ends.
        """
        await self._bus.ask(lambda done: CaughtUp(address, link, done))

    async def publish(
        self, message: Message, runtimes: frozenset[str], direct: frozenset[str] = frozenset()
    ) -> None:
        """Publish a message to all observers of an object, wherever they are (BUS-09).

        Answers to a request come to the listener of its `from`: one per runtime, named in
        `source` (C-81); or that of a router, which names none and ends the request for all.
        Observers behind a link with a listener (`send_out`) get the message by it only.

        Args:
            message: The message; its `to` is an address of the object.
            runtimes: Runtimes whose answers are awaited.
            direct: Those of them that are reached by a direct link.

        If cancelled, the message was not published.
        """
        # By the node: where the object was reported before, a link may lead all the same.
        terms, intent = Terms(runtimes, direct=direct), Intent.NODE
        await self._bus.tell(Submitted(message, self.url, terms=terms, intent=intent))

    async def hand_on(self, message: Message, component: str) -> None:
        """Pass a message for this component on to another one, which may answer it.

        Args:
            message: The message.
            component: Address of the other component.

        If cancelled, the message was not passed on.
        """
        await self._bus.tell(HandedOn(message, component))

    @asynccontextmanager
    async def forwarded(self, rule: ForwardRule) -> AsyncIterator[None]:
        """Copy messages by a rule while the context is open (BUS-08, BUS-10).

        If cancelled on entering, the rule may remain until the runtime ends.

        Raises:
            ForwardRefusedError: An address is of another runtime, or the rule cannot be added.
        """
        await self._bus.ask(lambda done: ForwardAdded(rule, self.url, done))
        try:
            yield
        finally:
            with trio.CancelScope(shield=True), suppress(ActorStoppedError):
                await self._bus.ask(lambda done: ForwardRemoved(rule, self.url, done))

    async def lend(self, address: str, component: str) -> None:
        """Let a component of this runtime send from another address, too, to answer from it.

        Args:
            address: The address.
            component: Address of the component.

        If cancelled, the permission may have been given.
        """
        await self._bus.ask(lambda done: Granted(component, address, Origin.LOCAL, done))

    async def take_back(self, address: str, component: str) -> None:
        """End what `lend` began. Idempotent.

        Args:
            address: The address.
            component: Address of the component.

        If cancelled, the permission may have ended.
        """
        await self._bus.ask(lambda done: Revoked(component, address, done))

    async def admit(self, owner: str, origin: Origin, listener: ActorRef[Delivery]) -> None:
        """Let a component of a sandbox send as `owner`, and deliver to it.

        Args:
            owner: Address of the component.
            origin: Its kind.
            listener: The MiniBUS of its sandbox.

        If cancelled, it may send, and not be reached yet; `expel` and `take_back` end that.
        """
        await self._bus.ask(lambda done: Granted(owner, owner, origin, done))
        await self.deliver(owner, listener)

    async def deliver(self, address: str, listener: ActorRef[Delivery]) -> None:
        """Deliver what comes for an address to a component of a sandbox; `expel` ends that.

        Args:
            address: The address.
            listener: The MiniBUS of its sandbox.

        If cancelled, the deliveries may have begun.
        """
        await self._bus.ask(lambda done: ListenerAdded(address, listener, self.url, done))

    async def anonymise(self, stub: str) -> None:
        """Send no identity of a sender by a stub, until it is expelled (REG-15).

        Args:
            stub: Address of the stub.

        If cancelled, it may be in effect.
        """
        await self._bus.ask(lambda done: Anonymised(stub, done))

    async def expel(self, owner: str) -> None:
        """End all deliveries to a component, which may still send. Idempotent.

        If cancelled, the deliveries may have ended.
        """
        await self._bus.ask(lambda done: Expelled(owner, self.url, done))
