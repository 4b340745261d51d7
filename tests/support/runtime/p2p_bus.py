"""A MiniBUS port that keeps what it is given, for stubs tested without a bus."""

from collections.abc import Sequence

import trio
from typing_extensions import override

from actors.kit.supervision.actor import ActorRef, Delivery
from actors.runtime.bus.mini_bus import MiniBusPort
from fsm.p2p.transfer import Behind
from specs.message import Message


class KeepingPort(MiniBusPort):
    """Keeps what was posted and handed back, in one order.

    Attributes:
        said: `(verb, by, message)` of each; of an announcement what was announced.
        listeners: Who listens to which address.
        failure: What the next post raises.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.said: list[tuple[str, str, Message | Behind]] = []
        self.listeners: dict[str, ActorRef[Delivery]] = {}
        self.failure: Exception | None = None
        self._news = trio.Event()

    @property
    def posted(self) -> list[Message]:
        return [message for verb, _, message in self.said if verb == "post"]

    @property
    def handed_back(self) -> list[Message]:
        return [message for verb, _, message in self.said if verb == "hand back"]

    async def wait_for(self, count: int) -> list[Message]:
        """Return what was posted, as soon as it is so many."""
        while len(self.posted) < count:
            await self._news.wait()
        return self.posted

    @override
    async def post(self, message: Message, by: str | None = None) -> None:
        await trio.lowlevel.checkpoint()
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure
        self._say("post", by, message)

    @override
    async def request(self, message: Message) -> Message:
        raise AssertionError("a P2P stub posts, it does not wait")

    @override
    async def hand_back(self, messages: Sequence[Message], by: str | None = None) -> None:
        await trio.lowlevel.checkpoint()
        for message in messages:
            self._say("hand back", by, message)

    @override
    async def announce(self, behind: Behind, by: str) -> None:
        await trio.lowlevel.checkpoint()
        self._say("announce", by, behind)

    @override
    async def add_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        await trio.lowlevel.checkpoint()
        self.listeners[address] = ref

    @override
    async def remove_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        await trio.lowlevel.checkpoint()
        self.listeners.pop(address, None)

    def _say(self, verb: str, by: str | None, message: Message | Behind) -> None:
        self.said.append((verb, by or self.url, message))
        self._news.set()
        self._news = trio.Event()
