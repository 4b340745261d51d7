"""The scripted hyperty: it sends what the script says, and answers when the script comes there."""

from enum import Enum, auto
from typing import Final, final

import trio
from typing_extensions import override

from actors.kit.actor import Actor
from actors.kit.delivery import Delivery
from actors.kit.ids import IdSource
from actors.runtime.mini_bus import MiniBusPort
from specs.jsonvalue import Json, JsonObject
from specs.limits import REPLY_TIMEOUT
from specs.message import Message, MessageType, reply_to
from specs.reply_code import FIRST_FINAL, Code

__all__ = ["OWN_WORDS", "Manners", "ScriptedHyperty"]

OWN_WORDS: Final = "the player asks"
"""The value of what the player itself has a hyperty ask: always answered at once."""


@final
class Manners(Enum):
    """What a hyperty does with a request."""

    AGREEABLE = auto()
    """Answers 200 at once."""

    SCRIPTED = auto()
    """Keeps it until the script answers it."""


@final
class ScriptedHyperty(Actor[Delivery]):
    """Stands in a sandbox like any hyperty, without a will of its own.

    Attributes:
        manners: What it does with requests; what the player asks for itself, see
            `OWN_WORDS`, it always agrees to.
        url: Its address.
    """

    def __init__(self, port: MiniBusPort) -> None:
        self.manners = Manners.AGREEABLE
        self.url = port.url
        self._port = port
        self._ids = IdSource()
        self._asked: list[Message] = []
        self._more = trio.Event()

    @override
    async def handle(self, message: Delivery) -> None:
        request = message.message
        if not request.is_request:
            return
        if self.manners is Manners.AGREEABLE or request.body.get("value") == OWN_WORDS:
            await self._port.post(reply_to(request, Code.OK))
            return
        self._asked.append(request)
        self._more.set()
        self._more = trio.Event()

    async def post(
        self, type_: MessageType, to: str, body: JsonObject, from_: str | None = None
    ) -> None:
        """Send a message and wait for nothing; answers come like any message.

        Args:
            type_: What kind it is.
            to: Whom to.
            body: What it says.
            from_: Whom it says it is from, if not from this hyperty.
        """
        sender = from_ or self.url
        await self._port.post(Message(self._ids.next(sender), type_, sender, to, body))

    async def ask(self, type_: MessageType, to: str, body: JsonObject) -> Message:
        """Send a request and return its final answer."""
        message = Message(self._ids.next(self.url), type_, self.url, to, body)
        return await self._port.request(message)

    async def answer(self, asker: str, body: JsonObject) -> bool:
        """Answer the oldest request of somebody that has no final answer yet.

        Waits for it as long as a request waits for its answer; tells whether one came.
        """
        with trio.move_on_after(REPLY_TIMEOUT):
            request = await self._request_of(asker)
            code: Json = body.get("code")
            if isinstance(code, int) and code >= FIRST_FINAL:
                self._asked.remove(request)
            answer = Message(request.id, MessageType.RESPONSE, request.to, asker, body)
            await self._port.post(answer)
            return True
        return False

    async def _request_of(self, asker: str) -> Message:
        while True:
            mine = (one for one in self._asked if one.from_ == asker)
            request = next(mine, None)
            if request is not None:
                return request
            await self._more.wait()
