"""A peer that real actors do not run: a bare stub that speaks to a node on the wire."""

from typing import Final, final

import trio

from actors.kit.ids import IdSource
from actors.kit.tracer import Tracer
from actors.play.stage_error import StageError
from specs.address import (
    address_allocation,
    host_of,
    runtime_of,
    scheme_of,
    session_manager,
)
from specs.jsonvalue import JsonObject
from specs.limits import GOODBYE_TIMEOUT
from specs.message import Message, MessageType, reply_to
from specs.reply_code import LAST_SUCCESS, Code
from specs.trace import Op
from transports.codec import BadLine, decode_frame, encode
from transports.errors import LinkError
from transports.link import Kind, Link
from transports.network import Network

__all__ = ["Outsider"]

_ABOVE: Final = 10**6
"""Ids of outsiders are above those of a real stub of the same address (MSG-03)."""


@final
class Outsider:
    """One end of one link to a node; what goes over it is told the tracer.

    It answers pings, and says yes to whatever else is asked of it.

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
        self._tell(Op.RCV, line)
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
        self._tell(Op.XMIT, message)
        await self._link.send(encode(message))

    def _tell(self, op: Op, message: Message) -> None:
        actor = f"stub:{self.stub}"
        self._tracer.message(actor, op, message, stub=self.stub, link=self._link.name)

    async def post(self, type_: MessageType, from_: str, to: str, body: JsonObject) -> int:
        """Write a message under the next id; return the id."""
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
        """Get an address of the scheme and domain of another.

        Raises:
            StageError: The node gives none.
        """
        sender = f"{runtime_of(self.stub)}/address-allocation"
        body: JsonObject = {"scheme": scheme_of(like), "value": {"number": 1}}
        to = address_allocation(host_of(like))
        answer = await self._ask(MessageType.CREATE, sender, to, body)
        value = answer.body.get("value")
        allocated = value.get("allocated") if isinstance(value, dict) else None
        match allocated:
            case [str(address)]:
                return address
            case _:
                raise StageError(f"{to} gave no address for {like}")

    async def _ask(self, type_: MessageType, from_: str, to: str, body: JsonObject) -> Message:
        number = await self.post(type_, from_, to, body)
        while number not in self._answers:
            await self._more.wait()
        answer = self._answers.pop(number)
        if answer.code > LAST_SUCCESS:
            why = answer.body.get("description", "")
            raise StageError(f"a peer outside the cast is refused by {to}: {answer.code} {why}")
        return answer
