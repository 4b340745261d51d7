"""Wire protocols between a node stub and its node; the normal form is `protofly.v1`.

A wire is made for one link. It dials, writes session controls, and converts messages to frames
and back; `fsm.session.stub_client` decides when, alike for every form. In the normal
form a frame is lines, and session control is messages (M-14..M-17). The module of another form
says what it cannot do. A profile may set options of a shipped stub beside its URL.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar, final

import attrs
from typing_extensions import override

from actors.runtime.stubs.stub import StubContext
from fsm.limits.rates import Rate
from fsm.session.node_session_io import signed_parts
from fsm.session.stub_client import SessionAnswered
from specs.addresses.address import session_manager
from specs.bodies import session
from specs.bodies.word import SessionMethod
from specs.errors import BadMessageError, ProtoflyError
from specs.identity import READ, read_sender
from specs.jsonvalue import JsonObject
from specs.limits.protocol import LEAST_PACE
from specs.message import Message, MessageType, reason_in, reply_to
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import read_body, write_body
from transports.codec import BadLine, decode_frame, encode, frames
from transports.link import Kind, Link


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
            names = f"there are {_join_words(known)}" if known else "there are none"
            raise StubOptionError(stub, name, f"there is no option {name!r}; {names}")
    chosen: dict[str, str] = {}
    for name, words in known.items():
        value = options.get(name, words[0])
        if not isinstance(value, str) or value not in words:
            reason = f"the option {name!r} is {value!r}; it can be {_join_words(words)}"
            raise StubOptionError(stub, name, reason)
        chosen[name] = value
    return chosen


def _join_words(words: Mapping[str, object] | tuple[str, ...]) -> str:
    return " or ".join(repr(word) for word in words)


Stated: TypeAlias = session.StatementGiven | session.SessionGranted
"""Unverified statement of the node's domain about the runtime, and the domain's keys."""

Item: TypeAlias = Message | BadLine | SessionAnswered | bytes | Stated | tuple[Message]
"""Content of a frame: a message, an invalid line, or an answer of the session manager."""

Asked: TypeAlias = bytes | SessionAnswered | None
"""Form of a session control: a line to write; an answer made here; None: the link is closed."""


class NodeWire(ABC):
    """One form of the wire protocol, for one link.

    Args:
        context: The context of the stub.
    """

    def __init__(self, context: StubContext) -> None:
        self._stub = context.url
        self._config = context.config
        self._network = context.network
        self._identity = context.identity

    @abstractmethod
    async def dial(self) -> Link:
        """Open the link.

        If cancelled, nothing is left open.

        Raises:
            DialError: The node cannot be reached, refuses, or does not answer in time.
        """

    @abstractmethod
    def ask(self, method: SessionMethod, token: str | None, challenge: str | None = None) -> Asked:
        """Return a session control as it is written.

        Args:
            method: The control.
            token: To re-open: the token of the session. To open: credentials, if the form has a
                place for them.
            challenge: The text that the runtime's key signs, if the form has a place for that.
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
        """Return the frames that contain these lines, in order."""


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
    def ask(self, method: SessionMethod, token: str | None, challenge: str | None = None) -> bytes:
        params = self._params(method, token, challenge)
        body = write_body(session.SessionControl(method.value, params))
        number = self._ids.next(self._stub)
        self._controls[number] = method
        return encode(Message(number, MessageType.EXECUTE, self._stub, self._manager, body))

    def _params(
        self, method: SessionMethod, token: str | None, challenge: str | None
    ) -> session.SessionParams:
        """Return session parameters with the runtime's key, and its proof after a challenge."""
        config, key = self._config, None if self._identity is None else self._identity.key
        if key is None or method not in {SessionMethod.OPEN, SessionMethod.REOPEN}:
            return session.SessionParams(config.runtime, token)
        if challenge is None:
            return session.SessionParams(config.runtime, token, key.public)
        parts = signed_parts(config.domain, config.runtime, challenge, token)
        return session.SessionParams(
            config.runtime, token, key.public, key.signature(method.value, parts)
        )

    @final
    @override
    def read(self, frame: bytes) -> Sequence[Item]:
        return [item for line in decode_frame(frame, READ) for item in self._items(line)]

    @final
    @override
    def write(self, message: Message) -> bytes:
        return encode(message)

    @override
    def frames(self, lines: Iterable[bytes]) -> Iterable[bytes]:
        return frames(lines)

    def _items(self, line: Message | BadLine) -> Iterator[Item]:
        if isinstance(line, BadLine) or line.to != self._stub or line.from_ != self._manager:
            yield line
        elif not line.is_response:
            yield encode(reply_to(line, Code.OK))
        elif (method := self._controls.pop(line.id, None)) is None:
            yield (line,)
        elif line.code > LAST_SUCCESS:
            challenged = _value(line, session.SessionChallenge)
            challenge = None if challenged is None else challenged.challenge
            yield SessionAnswered(
                method,
                line.code,
                why=reason_in(line),
                is_passing="retryAfter" in line.body,
                challenge=challenge,
            )
        else:
            yield from _read_grant(method, line)


def _read_grant(method: SessionMethod, answer: Message) -> Iterator[Item]:
    """Read a granted session control: the session and the statement that it contains."""
    is_renewed = method is SessionMethod.RENEW
    stated = _value(answer, session.StatementGiven) if is_renewed else None
    granted = None if is_renewed else _value(answer, session.SessionGranted)
    brought = stated or granted
    if brought is not None and brought.domain_keys is not None:
        yield brought
    if granted is None:
        yield SessionAnswered(method, answer.code, why=reason_in(answer))
    else:
        yield SessionAnswered(
            method,
            answer.code,
            granted.session_token,
            is_emptied=bool(granted.emptied),
            is_recovered=granted.recovered,
            missing=granted.missing or 0,
            sender=read_sender(granted.identity),
            pace=pace_of(granted),
        )


def pace_of(granted: session.SessionGranted) -> Rate | None:
    """Return the rate that a node accepts from a session; None: it names none that is of use."""
    if not granted.rate or granted.burst is None:
        return None
    return Rate(max(granted.rate, LEAST_PACE), granted.burst)


Value = TypeVar("Value", bound=attrs.AttrsInstance)


def _value(answer: Message, kind: type[Value]) -> Value | None:
    """Return the value of an answer as an instance of a class; None: it is of another form."""
    value = answer.body.get("value")
    if not isinstance(value, dict):
        return None
    try:
        return read_body(attrs.evolve(answer, body=value), kind)
    except BadMessageError:
        return None
