"""`protofly.v1`: normal form, a frame is lines, session control is messages (M-14..M-17)."""

from collections.abc import Iterable, Sequence
from typing import final

import attrs
from typing_extensions import override

from actors.runtime.stubs.stub import StubContext
from actors.runtime.stubs.wires.wire import Item, NodeWire, Reply, Stray
from fsm.session.stub_client_io import SessionAnswered
from specs.addresses.address import session_manager
from specs.bodies.body import SessionControl, SessionGranted, SessionParams
from specs.bodies.word import SessionMethod
from specs.errors import BadMessageError
from specs.message import Message, MessageType, reason_in, reply_to
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import read_body, write_body
from transports.codec import BadLine, decode_frame, encode, frames
from transports.link import Kind, Link

__all__ = ["OwnWire"]


class OwnWire(NodeWire):
    """What our own stubs and nodes speak."""

    def __init__(self, context: StubContext) -> None:
        super().__init__(context)
        self._ids = context.ids
        self._manager = session_manager(context.config.domain)
        self._controls: dict[int, SessionMethod] = {}

    @override
    async def dial(self) -> Link:
        return await self._network.dial(Kind.WEBSOCKET, self._config.node_url or "")

    @override
    def ask(self, method: SessionMethod, token: str | None) -> bytes:
        body = write_body(SessionControl(method.value, SessionParams(self._config.runtime, token)))
        number = self._ids.next(self._stub)
        self._controls[number] = method
        return encode(Message(number, MessageType.EXECUTE, self._stub, self._manager, body))

    @final
    @override
    def read(self, frame: bytes) -> Sequence[Item]:
        return [self._item(line) for line in decode_frame(frame)]

    @final
    @override
    def write(self, message: Message) -> bytes:
        return encode(message)

    @override
    def frames(self, lines: Iterable[bytes]) -> Iterable[bytes]:
        return frames(lines)

    def _item(self, line: Message | BadLine) -> Item:
        if isinstance(line, BadLine) or line.to != self._stub or line.from_ != self._manager:
            return line
        if not line.is_response:
            return Reply(encode(reply_to(line, Code.OK)))
        method = self._controls.pop(line.id, None)
        if method is None:
            return Stray(line)
        return SessionAnswered(method, line.code, _token(line), reason_in(line))


def _token(answer: Message) -> str | None:
    """Return the session token an answer brings, if it says yes and brings one."""
    value = answer.body.get("value")
    if answer.code > LAST_SUCCESS or not isinstance(value, dict):
        return None
    try:
        return read_body(attrs.evolve(answer, body=value), SessionGranted).session_token
    except BadMessageError:
        return None
