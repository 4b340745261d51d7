"""The wire protocol between a node stub and its node, and its normal form `protofly.v1`.

A wire is made for one link. It dials, writes session controls, and converts messages to frames
and back; `fsm.session.stub_client` decides when, alike for every form. In the normal
form a frame is lines, and session control is messages (M-14..M-17). The module of another form
says what it cannot do. A profile may set options of a shipped stub beside its URL.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, final

import attrs
from typing_extensions import override

from actors.runtime.stubs.stub import StubContext
from fsm.session.stub_client_io import SessionAnswered
from specs.addresses.address import session_manager
from specs.bodies.session import SessionControl, SessionGranted, SessionParams
from specs.bodies.word import SessionMethod
from specs.errors import BadMessageError, ProtoflyError
from specs.identity import READ, read_sender
from specs.jsonvalue import JsonObject
from specs.message import Message, MessageType, reason_in, reply_to
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import read_body, write_body
from transports.codec import BadLine, decode_frame, encode, frames
from transports.link import Kind, Link

__all__ = [
    "Asked",
    "Item",
    "NodeWire",
    "OwnWire",
    "Reply",
    "Stray",
    "StubOptionError",
    "WireMaker",
    "read_options",
]


@final
class StubOptionError(ProtoflyError):
    """A profile sets an option that its stub does not know: the profile must be corrected.

    Attributes:
        stub: Name of the stub.
        option: Name of the option.
    """

    def __init__(self, stub: str, option: str, reason: str) -> None:
        super().__init__(f"the stub {stub} cannot be configured: {reason}")
        self.stub = stub
        self.option = option


def read_options(
    stub: str, options: JsonObject, known: Mapping[str, tuple[str, ...]]
) -> Mapping[str, str]:
    """Return the value of each known option.

    Args:
        stub: Name of the stub, for errors.
        options: The options of the profile.
        known: The allowed values of each option; the first is the default.

    Raises:
        StubOptionError: An option, or its value, is not known.
    """
    for name in options:
        if name not in known:
            names = f"there are {_listed(known)}" if known else "there are none"
            raise StubOptionError(stub, name, f"there is no option {name!r}; {names}")
    chosen: dict[str, str] = {}
    for name, words in known.items():
        value = options.get(name, words[0])
        if not isinstance(value, str) or value not in words:
            reason = f"the option {name!r} is {value!r}; it can be {_listed(words)}"
            raise StubOptionError(stub, name, reason)
        chosen[name] = value
    return chosen


def _listed(words: Mapping[str, object] | tuple[str, ...]) -> str:
    return " or ".join(repr(word) for word in words)


@final
@attrs.frozen(slots=True)
class Reply:
    """The answer to a request of the node to the stub itself.

    Attributes:
        line: The answer as it is written.
    """

    line: bytes


@final
@attrs.frozen(slots=True)
class Stray:
    """An answer of the node that belongs to no request."""

    message: Message


Item: TypeAlias = Message | BadLine | SessionAnswered | Reply | Stray

Asked: TypeAlias = bytes | SessionAnswered | None
"""The form of a session control: a line to write; an answer without the node; or None: the link
itself is asked for a sign of life.
"""


class NodeWire(ABC):
    """One form of the wire protocol, for one link.

    Args:
        context: The context of the stub.
    """

    def __init__(self, context: StubContext) -> None:
        self._stub = context.url
        self._config = context.config
        self._network = context.network

    @abstractmethod
    async def dial(self) -> Link:
        """Open the link.

        If cancelled, nothing is left open.

        Raises:
            DialError: The node cannot be reached, refuses, or does not answer in time.
        """

    @abstractmethod
    def ask(self, method: SessionMethod, token: str | None) -> Asked:
        """Return a session control as it is written.

        Args:
            method: The control.
            token: To re-open: the token of the session. To open: credentials, if the form has a
                place for them.
        """

    @abstractmethod
    def read(self, frame: bytes) -> Sequence[Item]:
        """Read a frame; never raises: what is not a message becomes a `BadLine`."""

    @abstractmethod
    def write(self, message: Message) -> bytes:
        """Return a message as one line, without its end.

        Raises:
            BadMessageError: Its body is not JSON, or it is larger than `MAX_FRAME_BYTES`.
        """

    @abstractmethod
    def frames(self, lines: Iterable[bytes]) -> Iterable[bytes]:
        """Return frames with these lines, in order."""


WireMaker: TypeAlias = Callable[[], NodeWire]
"""Makes the wire of one link."""


class OwnWire(NodeWire):
    """The wire format of our own stubs and nodes."""

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
        return [self._item(line) for line in decode_frame(frame, READ)]

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
        granted = _granted(line)
        if granted is None:
            return SessionAnswered(method, line.code, why=reason_in(line))
        return SessionAnswered(
            method,
            line.code,
            granted.session_token,
            is_emptied=bool(granted.emptied),
            sender=read_sender(granted.identity),
        )


def _granted(answer: Message) -> SessionGranted | None:
    """Return the session that an answer brings, if it says yes and brings one."""
    value = answer.body.get("value")
    if answer.code > LAST_SUCCESS or not isinstance(value, dict):
        return None
    try:
        return read_body(attrs.evolve(answer, body=value), SessionGranted)
    except BadMessageError:
        return None
