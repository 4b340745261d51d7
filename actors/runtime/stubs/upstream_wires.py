"""Common parts of the two wire forms of upstream's nodes (protocol page 11).

A message is a frame. A node is spoken to as its own stubs spell: `runtime://`, `via` as
one address, changes of lists as splices. Ids and the name of a path's list differ from node to
node, so that a profile may say which. Answers are read like all input, by the same decoder.

`/stub/connect?runtimeURL=`: upstream's plain form; the link is the session.

There is no open, no token, no re-open and no ping. A stub is live as soon as its link is,
and what the node still knew of the runtime when the link comes back is unknown: every
link counts as a new session, so that the owners of paths set them again. Credentials have
no place; a node that asks for a login shows such a stub out.

`/ws`: upstream's form with a session at `mn:/session`, opened and re-opened.

Session control is no message of the protocol: no outbound body, ids of its own. A
close is answered by the end of the link. There is no ping but the link's, and no place
for credentials. A re-open that is refused with 500 means that the session is unknown:
upstream's nodes say nothing else of it.
"""

from collections.abc import Iterable, Sequence
from itertools import count
from types import MappingProxyType
from typing import Final, final
from urllib.parse import quote

import orjson
from typing_extensions import override

from actors.runtime.stubs.stub import StubContext
from actors.runtime.stubs.wire import Asked, Item, NodeWire, read_options
from fsm.session.stub_client import SessionAnswered
from specs.addresses.address import session_manager
from specs.bodies.word import SessionMethod
from specs.dialects.dialect import Dialect, meaning_of, spell
from specs.dialects.spellings import LIST_KEYS
from specs.errors import BadMessageError
from specs.jsonvalue import JsonObject
from specs.message import GIVEN_UP, Message, key_given_up, reason_in
from specs.reply_code import LAST_SUCCESS, Code
from transports.codec import BadLine, decode_items, decode_line, decode_object, encode, read_object
from transports.link import Kind, Link

_IDS: Final = "ids"
_PATHS: Final = "paths"
_NUMBER: Final = "number"
_TEXT: Final = "text"

_OPTIONS: Final = MappingProxyType({_IDS: (_NUMBER, _TEXT), _PATHS: LIST_KEYS[:2]})


def dialect_for(stub: str, options: JsonObject) -> Dialect:
    """Return the dialect of a plain reTHINK node.

    Args:
        stub: Name of the stub, for errors.
        options: The options of its profile.

    Raises:
        StubOptionError: An option, or its value, is not known.
    """
    chosen = read_options(stub, options, _OPTIONS)
    return Dialect(
        string_ids=chosen[_IDS] == _TEXT,
        runtime_alias=True,
        list_key=chosen[_PATHS],
        via_text=True,
        is_upstream=True,
    )


class LegacyWire(NodeWire):
    """One of upstream's wire forms over one link.

    Args:
        context: Of the stub that speaks.
        dialect: How its node is spoken to.
    """

    def __init__(self, context: StubContext, dialect: Dialect) -> None:
        super().__init__(context)
        self._dialect = dialect
        self._runtime = spell(context.config.runtime, dialect)

    @override
    async def dial(self) -> Link:
        return await self._network.dial(Kind.WEBSOCKET, self._address(), None)

    def _address(self) -> str:
        return self._config.node_url or ""

    @final
    @override
    def write(self, message: Message) -> bytes:
        if GIVEN_UP in message.body and key_given_up(message) is not None:
            raise BadMessageError("upstream's runtimes do not know that a request is given up")
        return encode(message, self._dialect)

    @final
    @override
    def frames(self, lines: Iterable[bytes]) -> Iterable[bytes]:
        return lines


_DISCONNECT: Final = "disconnect"


class PlainWire(LegacyWire):
    """Upstream's plain wire form: the link belongs to the runtime that it names."""

    def __init__(self, context: StubContext, dialect: Dialect) -> None:
        super().__init__(context, dialect)
        self._manager = session_manager(context.config.domain)

    @override
    def _address(self) -> str:
        return f"{self._config.node_url}?runtimeURL={quote(self._runtime, safe='')}"

    @override
    def ask(self, method: SessionMethod, token: str | None, challenge: str | None = None) -> Asked:
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
        if isinstance(line, BadLine):
            return line.items
        if line.from_ != self._manager or not line.is_response:
            return (meaning_of(line, self._dialect),)
        # Our node says why it shows a stub out; upstream's have no such address.
        if line.code <= LAST_SUCCESS:
            return ()
        return (SessionAnswered(SessionMethod.OPEN, line.code, why=reason_in(line)),)


_MANAGER: Final = "mn:/session"


class SessionWire(LegacyWire):
    """Upstream's wire form with sessions: the node grants one, and a token resumes it."""

    def __init__(self, context: StubContext, dialect: Dialect) -> None:
        super().__init__(context, dialect)
        self._numbers = count(1)
        self._controls: dict[int, SessionMethod] = {}
        self._token: str | None = None

    @override
    def ask(self, method: SessionMethod, token: str | None, challenge: str | None = None) -> Asked:
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
            return decode_items(frame)
        if raw.get("from") != _MANAGER:
            item = decode_object(frame, raw)
            return (meaning_of(item, self._dialect),) if isinstance(item, Message) else item.items
        answer = self._read_answer(raw)
        nothing = BadLine(f"{len(frame)} bytes", BadMessageError("it answers nothing"))
        return (answer or nothing,)

    def _read_answer(self, raw: JsonObject) -> SessionAnswered | None:
        """Read an answer of the session manager; None: not an answer, or not to a request here."""
        id_, body = raw.get("id"), raw.get("body")
        if not isinstance(id_, int) or not isinstance(body, dict):
            return None
        code, token, why = body.get("code"), body.get("runtimeToken"), body.get("desc")
        method = self._controls.pop(id_, None)
        if method is None or not isinstance(code, int):
            return None
        if isinstance(token, str):
            self._token = token
        if method is SessionMethod.REOPEN and code == Code.INTERNAL:
            code = Code.GONE
        return SessionAnswered(method, code, self._token, why if isinstance(why, str) else "")
