"""`/stub/connect?runtimeURL=`: upstream's plain form; the link is the session.

There is no open, no token, no re-open and no ping. A stub is live as soon as its link is,
and what the node still knew of the runtime when the link comes back nobody says: every
link counts as a new session, so that the owners of paths set them again. Credentials have
no place; a node that asks for a login shows such a stub out.
"""

from collections.abc import Sequence
from typing import Final, final
from urllib.parse import quote

import orjson
from typing_extensions import override

from actors.runtime.stubs.stub import StubContext
from actors.runtime.stubs.wires.upstream import LegacyWire
from actors.runtime.stubs.wires.wire import Asked, Item
from fsm.session.stub_client_io import SessionAnswered
from specs.addresses.address import session_manager
from specs.bodies.word import SessionMethod
from specs.dialects.dialect import Dialect, spell
from specs.message import reason_in
from specs.reply_code import LAST_SUCCESS, Code
from transports.codec import BadLine, decode_line

__all__ = ["PlainWire"]

_DISCONNECT: Final = "disconnect"


@final
class PlainWire(LegacyWire):
    """Whoever dials has the session of the runtime it names."""

    def __init__(self, context: StubContext, dialect: Dialect) -> None:
        super().__init__(context, dialect)
        self._manager = session_manager(context.config.domain)

    @override
    def _address(self) -> str:
        return f"{self._config.node_url}?runtimeURL={quote(self._runtime, safe='')}"

    @override
    def ask(self, method: SessionMethod, token: str | None) -> Asked:
        match method:
            case SessionMethod.PING:
                return None
            case SessionMethod.CLOSE:
                via = spell(self._stub, self._dialect)
                body = {"runtimeURL": self._runtime, "via": via}
                return orjson.dumps({"cmd": _DISCONNECT, "body": body})
            case _:
                return SessionAnswered(method, Code.OK)

    @override
    def read(self, frame: bytes) -> Sequence[Item]:
        line = decode_line(frame)
        if isinstance(line, BadLine) or line.from_ != self._manager or not line.is_response:
            return (line,)
        # Our node says why it shows a stub out; upstream's have no such address.
        if line.code <= LAST_SUCCESS:
            return ()
        return (SessionAnswered(SessionMethod.OPEN, line.code, why=reason_in(line)),)
