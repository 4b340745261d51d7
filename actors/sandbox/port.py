"""What a stub in a sandbox holds of its MiniBUS; whatever it posts leaves by the pipe."""

from collections.abc import Sequence
from typing import final

import trio
from typing_extensions import override

from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.delivery import Delivery
from actors.pipe.outlet import Outlet
from actors.pipe.said import Said, Word
from actors.runtime.bus.messages import ListenerAdded, ListenerRemoved, MiniBusMessage
from actors.runtime.bus.mini_bus import MiniBusPort
from fsm.p2p.control import Behind
from specs.message import Message
from transports.codec import encode

__all__ = ["PipePort"]


@final
class _Awaited:
    """A request whose answer is awaited in place."""

    def __init__(self) -> None:
        self.answer: Message | None = None
        self.came = trio.Event()


@final
class PipePort(MiniBusPort):
    """The only way of a stub out of its sandbox, but for its links.

    Attributes:
        agent: As whom the room itself commands the stub.
    """

    def __init__(self, url: str, outlet: Outlet, mini_bus: ActorRef[MiniBusMessage]) -> None:
        self.url = url
        self.agent = f"{url}/room"
        self._outlet = outlet
        self._mini_bus = mini_bus
        self._awaited: dict[int, _Awaited] = {}
        self._obeyed = trio.Event()

    @override
    async def post(self, message: Message, by: str | None = None) -> None:
        if message.is_response and message.to == self.agent:
            self._obeyed.set()
            return
        await self._outlet.send(Said(Word.POST, rest=encode(message)))

    @override
    async def request(self, message: Message) -> Message:
        awaited = self._awaited[message.id] = _Awaited()
        try:
            await self._outlet.send(Said(Word.ASK, rest=encode(message)))
            while awaited.answer is None:
                await awaited.came.wait()
            return awaited.answer
        finally:
            del self._awaited[message.id]

    def answered(self, message: Message) -> bool:
        """Take the final answer to a request of the stub; say whether it was awaited."""
        awaited = self._awaited.get(message.id)
        if awaited is None or message.to != self.url or not message.is_final:
            return False
        awaited.answer = message
        awaited.came.set()
        return True

    async def wait_obeyed(self) -> None:
        """Wait until the stub has answered a command of the room."""
        await self._obeyed.wait()

    @override
    async def hand_back(self, messages: Sequence[Message], by: str | None = None) -> None:
        for message in messages:
            await self._outlet.send(Said(Word.LOST, rest=encode(message)))

    @override
    async def announce(self, behind: Behind, by: str) -> None:
        """Do nothing: no stub in a sandbox process has a direct link."""

    @override
    async def add_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        await self._mini_bus.ask(lambda done: ListenerAdded(address, ref, self.url, done))

    @override
    async def remove_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        await self._mini_bus.ask(lambda done: ListenerRemoved(address, ref, self.url, done))
