"""Hyperties: what an application writes, and the actor each one runs in."""

from abc import ABC
from collections.abc import Callable
from typing import Final, TypeAlias, final

import trio
from typing_extensions import override

from actors.kit.actor import Actor
from actors.kit.delivery import Delivery
from actors.kit.ids import IdSource
from actors.runtime.mini_bus import MiniBusPort
from specs.address import is_below
from specs.errors import ProtoflyError
from specs.jsonvalue import Json, JsonObject
from specs.limits import GOODBYE_TIMEOUT
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code

__all__ = ["Hyperty", "HypertyHost", "HypertyMaker", "Refused"]

CONCURRENT: Final = 64
"""Requests one hyperty works on at a time; more wait in its mailbox (ours)."""


@final
class Refused(ProtoflyError):  # noqa: N818 - it is an answer, not a failure
    """What `on_request` raises to answer with a refusal.

    Attributes:
        code: The reply code.
        why: Half a sentence for people.
    """

    def __init__(self, code: Code, why: str) -> None:
        super().__init__(f"{int(code)} {why}")
        self.code = code
        self.why = why


class Hyperty(ABC):
    """The base class of hyperties: override what yours is for.

    A crash in any of these answers 500 to the request at hand, if there is one; the
    hyperty is then made anew, with the same address.

    Attributes:
        url: Its address; there from before `started` is called.
    """

    url: str
    _port: MiniBusPort
    _ids: IdSource

    async def started(self) -> None:  # noqa: B027 - need not be overridden
        """Get ready; runs before the first message."""

    async def on_request(self, message: Message) -> Json:
        """Answer a request: what is returned becomes the `value` of a 200.

        Requests begin in the order they came and then run side by side, up to a bound.

        Raises:
            Refused: To answer with another code.
        """
        raise Refused(Code.MALFORMED, f"{self.url} takes no {message.type.value}")

    async def on_event(self, message: Message) -> None:  # noqa: B027 - the same
        """Take an event; the next one waits until this returns.

        What is sent to an object that it observes comes here, too: its changes, and
        the word that it is deleted. Nobody waits for an answer.
        """

    @final
    async def request(
        self, to: str, value: Json = None, type_: MessageType = MessageType.CREATE
    ) -> Message:
        """Send a request with a value and return its final answer.

        The answer may be a refusal, also one of the routers: 404 nobody there, 408 no
        answer in time, 503 no way there. Its `code` says so; nothing is raised.
        """
        return await self.ask(to, type_, {"value": value})

    @final
    async def ask(self, to: str, type_: MessageType, body: JsonObject) -> Message:
        """Send a request with any body and return its final answer."""
        message = Message(self._ids.next(self.url), type_, self.url, to, body)
        return await self._port.request(message)

    @final
    def enter(self, port: MiniBusPort, ids: IdSource) -> None:
        """Take address and port; called by the host before `started`."""
        self.url = port.url
        self._port = port
        self._ids = ids


HypertyMaker: TypeAlias = Callable[[], Hyperty]
"""Makes a hyperty, anew for each of its lives; a class will do."""


@final
class HypertyHost(Actor[Delivery]):
    """Runs one hyperty."""

    def __init__(self, make: HypertyMaker, port: MiniBusPort, ids: IdSource) -> None:
        self._hyperty = make()
        self._port = port
        self._room = trio.Semaphore(CONCURRENT)
        self._previous: trio.Event | None = None
        self._hyperty.enter(port, ids)

    @override
    async def start(self) -> None:
        await self._hyperty.started()

    @override
    async def handle(self, message: Delivery) -> None:
        request = message.message
        if request.is_request and is_below(request.to, self._port.url):
            await self._room.acquire()
            begun = trio.Event()
            self.spawn(self._answer, request, self._previous, begun)
            self._previous = begun
        elif request.is_event or _is_told(request):
            await self._hyperty.on_event(request)

    async def _answer(
        self, request: Message, previous: trio.Event | None, begun: trio.Event
    ) -> None:
        """Have a request answered; whatever happens, it gets exactly one answer."""
        answer = refuse(request, Code.INTERNAL, "the hyperty crashed on it")
        try:
            if previous is not None:
                await previous.wait()
            begun.set()
            answer = await self._value(request)
        except trio.Cancelled:
            answer = refuse(request, Code.UNAVAILABLE, "the hyperty was stopped")
            raise
        finally:
            begun.set()
            self._room.release()
            with trio.CancelScope(deadline=trio.current_time() + GOODBYE_TIMEOUT, shield=True):
                await self._port.post(answer)

    async def _value(self, request: Message) -> Message:
        try:
            value = await self._hyperty.on_request(request)
            return reply_to(request, Code.OK, {"value": value})
        except Refused as refusal:
            return refuse(request, refusal.code, refusal.why)


def _is_told(request: Message) -> bool:
    """Say whether an object that is observed says something to all who do (M-47).

    Their sync manager answers it; what others say there is not the object's word.
    """
    observed, _, _ = request.to.rpartition("/")
    return request.is_request and is_below(request.from_, observed)
