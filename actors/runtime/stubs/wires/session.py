"""`/ws`: upstream's form with a session at `mn:/session`, opened and re-opened.

Session control is no message of the protocol: no body on the way out, ids of its own. A
close is answered by the end of the link. There is no ping but the link's, and no place
for credentials. A re-open that is refused with 500 means that the session is unknown:
upstream's nodes say nothing else of it.
"""

from collections.abc import Sequence
from itertools import count
from typing import Final, final

import orjson
from typing_extensions import override

from actors.runtime.stubs.stub import StubContext
from actors.runtime.stubs.wires.upstream import LegacyWire
from actors.runtime.stubs.wires.wire import Asked, Item
from fsm.session.stub_client_io import SessionAnswered
from specs.bodies.word import SessionMethod
from specs.dialects.dialect import Dialect
from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject
from specs.reply_code import Code
from transports.codec import BadLine, decode_line, decode_object, read_object

__all__ = ["SessionWire"]

_MANAGER: Final = "mn:/session"


@final
class SessionWire(LegacyWire):
    """A link has a session once the node says so; the token brings it back."""

    def __init__(self, context: StubContext, dialect: Dialect) -> None:
        super().__init__(context, dialect)
        self._numbers = count(1)
        self._controls: dict[int, SessionMethod] = {}
        self._token: str | None = None

    @override
    def ask(self, method: SessionMethod, token: str | None) -> Asked:
        if method is SessionMethod.PING:
            return None
        if method is SessionMethod.REOPEN:
            self._token = token
        number = next(self._numbers)
        self._controls[number] = method
        from_ = self._runtime if method is SessionMethod.OPEN else self._session_url
        return orjson.dumps({"id": number, "type": method.value, "from": from_, "to": _MANAGER})

    @property
    def _session_url(self) -> str:
        return self._runtime if self._token is None else f"{self._runtime}/{self._token}"

    @override
    def read(self, frame: bytes) -> Sequence[Item]:
        try:
            raw = read_object(frame)
        except BadMessageError:
            return (decode_line(frame),)
        if raw.get("from") != _MANAGER:
            return (decode_object(frame, raw),)
        answer = self._answered(raw)
        return (_no_message(frame),) if answer is None else (answer,)

    def _answered(self, raw: JsonObject) -> SessionAnswered | None:
        """Read what the session manager says; None: nobody asked, or it is no answer."""
        id_, body = raw.get("id"), raw.get("body")
        if not isinstance(id_, int) or not isinstance(body, dict):
            return None
        code, token, why = body.get("code"), body.get("runtimeToken"), body.get("desc")
        method = self._controls.pop(id_, None)
        if method is None or not isinstance(code, int):
            return None
        if isinstance(token, str):
            self._token = token
        return SessionAnswered(method, _meant(method, code), self._token, _text(why))


def _meant(method: SessionMethod, code: int) -> int:
    is_unknown = method is SessionMethod.REOPEN and code == Code.INTERNAL
    return Code.GONE if is_unknown else code


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _no_message(frame: bytes) -> BadLine:
    return BadLine(f"{len(frame)} bytes", BadMessageError("it answers nothing"), None)
