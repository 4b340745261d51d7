"""The handles by which components reach the Message BUS."""

from collections.abc import Sequence
from typing import final

from typing_extensions import override

from actors.kit.actor import ActorRef
from actors.kit.delivery import Delivery
from actors.runtime.bus_messages import (
    BusMessage,
    Expelled,
    Followed,
    Granted,
    HandedBack,
    ListenerAdded,
    ListenerRemoved,
    MiniBusMessage,
    Origin,
    Revoked,
    Submitted,
    Unfollowed,
)
from actors.runtime.mini_bus import MiniBusPort
from specs.message import Message

__all__ = ["CorePort", "SandboxPort"]


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
        return await self._bus.ask(lambda reply: Submitted(message, self.url, reply))

    @override
    async def hand_back(self, messages: Sequence[Message], by: str | None = None) -> None:
        await self._bus.tell(HandedBack(tuple(messages), by or self.url))


@final
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

    async def publish(self, message: Message, runtimes: frozenset[str]) -> None:
        """Say something to all who observe an object, wherever they are (BUS-09).

        Of a request each answer comes to the listener of its `from`: one per runtime,
        named in `source` (C-81), or a router's that names none and ends it for all.
        """
        await self._bus.tell(Submitted(message, self.url, runtimes=runtimes))

    async def admit(self, owner: str, origin: Origin, listener: ActorRef[Delivery]) -> None:
        """Let a component of a sandbox submit as `owner`, and reach it there."""
        await self._bus.ask(lambda done: Granted(owner, owner, origin, done))
        await self._bus.ask(lambda done: ListenerAdded(owner, listener, self.url, done))

    async def expel(self, owner: str) -> None:
        """End both, and whatever else it was delivered; repeated is fine."""
        await self._bus.ask(lambda done: Expelled(owner, self.url, done))
        await self._bus.ask(lambda done: Revoked(owner, owner, done))
