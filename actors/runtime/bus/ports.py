"""The handles by which components reach the Message BUS."""

from collections.abc import Sequence
from typing import final

from typing_extensions import override

from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.delivery import Delivery
from actors.runtime.bus.fair_queue import OwnPlace, Places
from actors.runtime.bus.messages import (
    Announced,
    BusMessage,
    CaughtUp,
    Expelled,
    Followed,
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
    SentOut,
    Submitted,
    Unfollowed,
)
from actors.runtime.bus.mini_bus import MiniBusPort
from fsm.bus.transactions import ASKED_ONCE, Terms
from fsm.intent import Intent
from fsm.p2p.control import Behind
from specs.message import Message

__all__ = ["CorePort", "HypertyPort", "SandboxPort"]


def _asked(attempts: int) -> Terms:
    return ASKED_ONCE if attempts == 1 else Terms(attempts=attempts)


class _Port(MiniBusPort):
    """What every component can do: post, ask, hand back."""

    def __init__(self, url: str, bus: ActorRef[BusMessage]) -> None:
        self.url = url
        self._bus = bus

    @override
    async def post(self, message: Message, by: str | None = None) -> None:
        await self._bus.tell(Submitted(message, by or self.url))

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
    async def announce(self, behind: Behind, by: str) -> None:
        await self._bus.tell(Announced(behind, by))


class SandboxPort(_Port):
    """The handle of a component in a sandbox: its listeners are its MiniBUS's."""

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
    """The handle of a hyperty: it waits its turn among the others (R11)."""

    def __init__(
        self, url: str, bus: ActorRef[BusMessage], mini_bus: ActorRef[MiniBusMessage]
    ) -> None:
        super().__init__(url, bus, mini_bus)
        self._places = Places()

    @override
    async def post(self, message: Message, by: str | None = None) -> None:
        if message.is_response:
            # It is owed, and no more can come than was asked for.
            await self._bus.tell(Submitted(message, by or self.url))
            return
        if not self._places.enter_nowait():
            await self._places.enter()
        is_told = False
        try:
            await self._bus.tell(Submitted(message, by or self.url, place=self._places))
            is_told = True
        finally:
            if not is_told:
                self._places.give_back()

    @override
    async def request(self, message: Message) -> Message:
        return await self.insist(message, 1)

    @override
    async def insist(self, message: Message, attempts: int) -> Message:
        await self._places.enter()
        place, by, terms = OwnPlace(self._places), self.url, _asked(attempts)
        try:
            return await self._bus.ask(lambda reply: Submitted(message, by, reply, terms, place))
        finally:
            place.leave()


@final
class CorePort(_Port):
    """The handle of a core component, which writes the Message BUS's own table."""

    @override
    async def add_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        await self._bus.ask(lambda done: Granted(self.url, address, Origin.LOCAL, done))
        await self._bus.ask(lambda done: ListenerAdded(address, ref, self.url, done))

    @override
    async def remove_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        await self._bus.ask(lambda done: ListenerRemoved(address, ref, self.url, done))
        await self._bus.ask(lambda done: Revoked(self.url, address, done))

    async def watch(self, address: str, ref: ActorRef[Delivery]) -> None:
        """Get what is sent to another's address, such as a stub's status (REG-11)."""
        await self._bus.ask(lambda done: ListenerAdded(address, ref, self.url, done))

    async def unwatch(self, address: str, ref: ActorRef[Delivery]) -> None:
        """End it; repeated is fine."""
        await self._bus.ask(lambda done: ListenerRemoved(address, ref, self.url, done))

    async def follow(self, address: str, component: str) -> None:
        """Have what is sent to `address` delivered to a component, too (SYN-06)."""
        await self._bus.ask(lambda done: Followed(address, component, self.url, done))

    async def unfollow(self, address: str, component: str) -> None:
        """End the deliveries of `address` to this component; repeated is fine (I-D7)."""
        await self._bus.ask(lambda done: Unfollowed(address, component, self.url, done))

    async def unfollow_all(self, address: str) -> None:
        """End all deliveries of `address`; repeated is fine."""
        await self._bus.ask(lambda done: ListenerRemoved(address, None, self.url, done))

    async def send_out(self, address: str, link: str) -> None:
        """Have what is sent to `address` go out by a live link, too (P2P-25)."""
        await self._bus.ask(lambda done: SentOut(address, link, self.url, done))

    async def keep_in(self, address: str, link: str) -> None:
        """End it; repeated is fine."""
        await self._bus.ask(lambda done: KeptIn(address, link, self.url, done))

    async def request_direct(self, message: Message) -> Message:
        """Ask by the live link there is; 503 if there is none, or it goes first (P2P-30)."""
        by, way = self.url, Intent.DIRECT
        return await self._bus.ask(lambda reply: Submitted(message, by, reply, intent=way))

    async def hear_by(self, address: str, link: str | None) -> None:
        """Have what is told at `address` come by this link, and no other; None: by none.

        By a node it may come all the same: that one knows who may tell it.
        """
        await self._bus.ask(lambda done: HeardBy(address, link, done))

    async def caught_up(self, address: str, link: str) -> None:
        """Wait until a link brings what is told at `address`, and all before it has come.

        Returns after `REPLY_TIMEOUT` at the latest.
        """
        await self._bus.ask(lambda done: CaughtUp(address, link, done))

    async def publish(
        self, message: Message, runtimes: frozenset[str], direct: frozenset[str] = frozenset()
    ) -> None:
        """Say something to all who observe an object, wherever they are (BUS-09).

        Of a request each answer comes to the listener of its `from`: one per runtime,
        named in `source` (C-81), or a router's that names none and ends it for all. Those
        who are reached by a link that has a listener (`send_out`) are told by it only.
        """
        # By the node: where the object was reported before, a link may lead all the same.
        terms, way = Terms(runtimes, direct=direct), Intent.NODE
        await self._bus.tell(Submitted(message, self.url, terms=terms, intent=way))

    async def hand_on(self, message: Message, component: str) -> None:
        """Pass what came to this component on to another, which may answer it."""
        await self._bus.tell(HandedOn(message, component))

    async def lend(self, address: str, component: str) -> None:
        """Let a component of this runtime speak from an address, too: to answer from it."""
        await self._bus.ask(lambda done: Granted(component, address, Origin.LOCAL, done))

    async def take_back(self, address: str, component: str) -> None:
        """End it; repeated is fine."""
        await self._bus.ask(lambda done: Revoked(component, address, done))

    async def admit(self, owner: str, origin: Origin, listener: ActorRef[Delivery]) -> None:
        """Let a component of a sandbox submit as `owner`, and reach it there."""
        await self._bus.ask(lambda done: Granted(owner, owner, origin, done))
        await self._bus.ask(lambda done: ListenerAdded(owner, listener, self.url, done))

    async def expel(self, owner: str) -> None:
        """End both, and whatever else it was delivered; repeated is fine."""
        await self._bus.ask(lambda done: Expelled(owner, self.url, done))
        await self._bus.ask(lambda done: Revoked(owner, owner, done))
