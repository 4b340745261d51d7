"""Participants that act for the player: hyperties in runtimes, and peers outside runtimes.

What cannot be played.
"""

from typing import Final, final

import trio
from typing_extensions import override

from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Actor, Delivery
from actors.kit.trace import Tracer
from actors.runtime.bus.mini_bus import MiniBusPort
from specs.addresses.address import (
    address_allocation,
    host_of,
    runtime_of,
    scheme_of,
    session_manager,
)
from specs.errors import ProtoflyError
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import GOODBYE_TIMEOUT, REPLY_TIMEOUT
from specs.message import Message, MessageType, reply_to
from specs.reply_code import FIRST_FINAL, LAST_SUCCESS, Code
from specs.trace import Op
from transports.codec import BadLine, decode_frame, encode
from transports.errors import LinkError
from transports.link import Kind, Link, Network


@final
class StageError(ProtoflyError):
    """The player cannot do what a scenario asks of the world around the actors.

    Attributes:
        what: What, why, and what to do, as half a sentence.
    """

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


OWN_WORDS: Final = "the player asks"
"""The value of what the player itself has a hyperty ask: always answered at once."""


@final
class ScriptedHyperty(Actor[Delivery]):
    """Stands in a sandbox like any hyperty, without a will of its own.

    Attributes:
        is_scripted: Whether it keeps requests until the script answers them; others it answers
            200 at once, as it always does what the player asks for itself (`OWN_WORDS`).
        url: Its address.
    """

    def __init__(self, port: MiniBusPort) -> None:
        self.is_scripted = False
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
        if not self.is_scripted or request.body.get("value") == OWN_WORDS:
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
            to: Address of the receiver.
            body: What it says.
            from_: Address of the sender, if not this hyperty.
        """
        sender = from_ or self.url
        await self._port.post(Message(self._ids.next(sender), type_, sender, to, body))

    async def ask(self, type_: MessageType, to: str, body: JsonObject) -> Message:
        """Send a request and return its final answer.

        Args:
            type_: Type of the message.
            to: Address of the receiver.
            body: Body of the message.
        """
        message = Message(self._ids.next(self.url), type_, self.url, to, body)
        return await self._port.request(message)

    async def answer(self, asker: str, body: JsonObject) -> bool:
        """Answer the oldest request of a sender that has no final answer yet.

        Waits for it as long as a request waits for its answer; returns whether one came.

        Args:
            asker: Address of the requester.
            body: Body of the answer.
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


def allocated(answer: Message, url: str) -> str:
    """Return the one address that a node has allocated.

    Args:
        answer: Answer of the address allocation.
        url: What the scenario calls it.

    Raises:
        StageError: It gave none.
    """
    value = answer.body.get("value")
    match value.get("allocated") if isinstance(value, dict) else None:
        case [str(address)]:
            return address
        case _:
            raise StageError(f"{answer.from_} gave no address for {url}")


_ABOVE: Final = 10**6
"""Ids of outsiders are above those of a real stub of the same address (MSG-03)."""


@final
class Peer:
    """A bare stub, without a runtime, at one end of a link to a node; its messages are traced.

    It answers pings, and accepts all other requests.

    Attributes:
        stub: The address under which it speaks to the node.
    """

    def __init__(self, stub: str, tracer: Tracer) -> None:
        self.stub = stub
        self._tracer = tracer
        self._ids = IdSource(_ABOVE)
        self._link: Link
        self._answers: dict[int, Message] = {}
        self._more = trio.Event()

    async def dial(self, network: Network, node_url: str) -> None:
        """Connect, without a session.

        Args:
            network: Network that opens links.
            node_url: URL of the node.

        Raises:
            DialError: The node is out of reach.
        """
        self._link = await network.dial(Kind.WEBSOCKET, node_url)

    async def run(self) -> None:
        """Listen until the link is gone."""
        try:
            while True:
                for line in decode_frame(await self._link.receive()):
                    await self._take(line)
        except LinkError:
            return
        finally:
            with trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
                await self._link.aclose()

    async def _take(self, line: Message | BadLine) -> None:
        if isinstance(line, BadLine):
            return
        self._record(Op.RCV, line)
        if line.is_response:
            self._answers[line.id] = line
            self._more.set()
            self._more = trio.Event()
        elif line.is_request:
            await self.send(reply_to(line, Code.OK))

    async def send(self, message: Message) -> None:
        """Write a message; what becomes of it comes like any other.

        Raises:
            LinkError: The link is gone.
        """
        self._record(Op.XMIT, message)
        await self._link.send(encode(message))

    def _record(self, op: Op, message: Message) -> None:
        actor = f"stub:{self.stub}"
        self._tracer.message(actor, op, message, stub=self.stub, link=self._link.name)

    async def post(self, type_: MessageType, from_: str, to: str, body: JsonObject) -> int:
        """Write a message under the next id; return the id.

        Args:
            type_: Type of the message.
            from_: Address of the sender.
            to: Address of the receiver.
            body: Body of the message.
        """
        number = self._ids.next(from_)
        await self.send(Message(number, type_, from_, to, body))
        return number

    async def open_session(self) -> None:
        """Open a session for the runtime of this stub.

        Raises:
            StageError: The node refuses.
        """
        home = runtime_of(self.stub)
        body: JsonObject = {"method": "open", "params": {"runtimeURL": home}}
        manager = session_manager(host_of(home))
        await self._ask(MessageType.EXECUTE, self.stub, manager, body)

    async def allocate(self, like: str) -> str:
        """Get an address of the scheme and domain of another."""
        sender = f"{runtime_of(self.stub)}/address-allocation"
        body: JsonObject = {"scheme": scheme_of(like), "value": {"number": 1}}
        to = address_allocation(host_of(like))
        return allocated(await self._ask(MessageType.CREATE, sender, to, body), like)

    async def _ask(self, type_: MessageType, from_: str, to: str, body: JsonObject) -> Message:
        number = await self.post(type_, from_, to, body)
        while number not in self._answers:
            await self._more.wait()
        answer = self._answers.pop(number)
        if answer.code > LAST_SUCCESS:
            why = answer.body.get("description", "")
            raise StageError(f"a peer outside the cast is refused by {to}: {answer.code} {why}")
        return answer
