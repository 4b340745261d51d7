"""The class of messages, with five fields, and functions that make answers and other messages."""

from collections.abc import Callable
from enum import StrEnum
from typing import Final, Self, TypeAlias, cast

import attrs

from specs.addresses.address import INBOX, is_inbox, scheme_of
from specs.errors import AnswerError, BadMessageError
from specs.identity import SenderIdentity
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import RETRY_AFTER
from specs.reply_code import FIRST_FINAL, LAST_SUCCESS, Code


class MessageType(StrEnum):
    """The nine verbs of messages (MSG-02), with their values on the wire."""

    CREATE = "create"
    READ = "read"
    UPDATE = "update"
    DELETE = "delete"
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    EXECUTE = "execute"
    FORWARD = "forward"
    RESPONSE = "response"


LEAST_RETRY: Final = 0.001
"""Shortest time to wait that a refusal can ask for, in seconds; times are whole milliseconds."""

MOST_RETRY: Final = 3600.0
"""Longest time to wait that a refusal can ask for, in seconds."""

EVENT_PARTS: Final = frozenset({"status", "changes", "registration", "observers"})
"""Last segments of addresses at which creates and updates are events (ADR-05, ADR-06)."""

_CODES: Final = frozenset(Code)
_CODES_LISTED: Final = ", ".join(str(int(code)) for code in Code)

_EVENT_TYPES: Final = frozenset({MessageType.CREATE, MessageType.UPDATE})
_CHILD_EVENT_TYPES: Final = frozenset({MessageType.UPDATE, MessageType.DELETE})


_SHOWN: Final = frozenset({"code", "description", "resource", "method"})
"""Fields of a body whose values may be shown to people, as they contain no secrets."""

_SHOWN_CHARS: Final = 80


def _outline(body: JsonObject) -> str:
    """Return a short text about a body for people, without values that may be secret."""
    return f"{{{', '.join(_part(name, value) for name, value in body.items())}}}"[
        : _SHOWN_CHARS * 4
    ]


def _part(name: str, value: Json) -> str:
    is_plain = name in _SHOWN and isinstance(value, str | int)
    return f"{name[:_SHOWN_CHARS]!r}: {repr(value)[:_SHOWN_CHARS] if is_plain else '...'}"


@attrs.frozen(slots=True, init=False)
class Message:
    """One message in normal form: a request, an event, or an answer.

    Attributes:
        id: Positive number, which rises with each message of the same sender (MSG-03).
        type: One of the nine verbs.
        from_: Canonical address of the sender.
        to: Canonical address of the receiver; the only field that routers use.
        body: Any JSON object, which is not used for routing. Not to be changed in place: evolve the
            message instead.
        identity: The sender as the receiver's own node or link has established it; None: not
            established yet. Never read from the sender's body.
        is_response: True if this answers a request.
    """

    id: int
    type: MessageType
    from_: str
    to: str
    body: JsonObject = attrs.field(factory=dict, repr=_outline)
    identity: SenderIdentity | None = attrs.field(default=None, eq=False)

    # Read dozens of times on the path of one message.
    is_response: bool = attrs.field(init=False, eq=False, repr=False)

    def __init__(
        self,
        id: int,  # noqa: A002 - the names are those of the wire
        type: MessageType,  # noqa: A002 - likewise
        from_: str,
        to: str,
        body: JsonObject | None = None,
        identity: SenderIdentity | None = None,
    ) -> None:
        # Six messages are made for a request within a runtime: by the slots themselves that takes
        # a quarter of the time that the generated method takes, which asks `object` for each.
        _set_id(self, id)
        _set_type(self, type)
        _set_from(self, from_)
        _set_to(self, to)
        _set_body(self, {} if body is None else body)
        _set_identity(self, identity)
        _set_is_response(self, type is MessageType.RESPONSE)

    @property
    def is_event(self) -> bool:
        """True if the message gets no answer: an event by its type and address, or to an inbox."""
        if self.type in _EVENT_TYPES:
            last = self.to.rpartition("/")[2]
            if last in EVENT_PARTS or (last == INBOX and is_inbox(self.to)):
                return True
        return self.type in _CHILD_EVENT_TYPES and "/children/" in self.to

    @property
    def is_request(self) -> bool:
        """True if exactly one final answer must follow."""
        return not (self.is_response or self.is_event)

    @property
    def code(self) -> int:
        """The reply code of a response; 0 for other messages."""
        code = self.body.get("code")
        return code if isinstance(code, int) else 0

    @property
    def is_final(self) -> bool:
        """True if this response ends its transaction."""
        code = self.body.get("code")
        return self.is_response and isinstance(code, int) and code >= FIRST_FINAL

    @property
    def value(self) -> Json:
        """The field `value` of the body; None if absent."""
        return self.body.get("value")

    @property
    def ok(self) -> bool:
        """Whether this answer is a success; a provisional answer is not.

        Raises:
            TypeError: The message is no answer.
        """
        return FIRST_FINAL <= self._answered_code() <= LAST_SUCCESS

    def raise_for_code(self) -> Self:
        """Return this answer unless it is a refusal.

        Raises:
            AnswerError: The answer is a refusal.
            TypeError: The message is no answer.
        """
        code = self._answered_code()
        if code > LAST_SUCCESS:
            after = self.body.get("retryAfter")
            seconds: float | None = None
            if isinstance(after, int | float) and not isinstance(after, bool):
                # A hostile sender could make the receiver sleep for ever.
                seconds = _pause(after)
            raise AnswerError(code, reason_in(self), seconds)
        return self

    def _answered_code(self) -> int:
        """Return the reply code.

        Raises:
            TypeError: The message is no answer.
        """
        if not self.is_response:
            raise TypeError(f"only an answer has a code, and {instance_id(self)} is {self.type}")
        return self.code

    @property
    def via(self) -> tuple[str, ...]:
        """Stubs that the message has crossed, in order (STB-06)."""
        via = cast("list[str] | None", self.body.get("via"))
        return tuple(filter(str.__instancecheck__, via)) if isinstance(via, list) else ()

    def is_last_by(self, stub: str) -> bool:
        """Return whether a stub is the last that the message has crossed.

        Args:
            stub: Address of the stub, or of a handler's stub for one P2P link.
        """
        via = self.body.get("via")
        if not isinstance(via, list) or not via:
            return False
        # Mostly the last element is a text, and no other needs a check.
        return via[-1] == stub if isinstance(via[-1], str) else self.via[-1:] == (stub,)


_Set: TypeAlias = Callable[[Message, object], None]
_set_id, _set_type, _set_from, _set_to, _set_body, _set_identity, _set_is_response = (
    cast("_Set", vars(Message)[field.name].__set__) for field in attrs.fields(Message)
)


def instance_id(message: Message) -> str:
    """Return an identifier of the message, which is the same at every hop (`mid` in traces).

    A request or event is identified by its sender and id; an answer by sender, receiver, id and
    code, and by its `source`, as several receivers may answer from one address (C-81). Several
    provisional answers differ by `sequence`.
    """
    if message.is_response:
        source = message.body.get("source")
        suffix = f"@{source}" if isinstance(source, str) else ""
        code = message.code
        sequence = None if code >= FIRST_FINAL else message.body.get("sequence")
        nth = f".{sequence}" if isinstance(sequence, int) else ""
        return f"{message.to}#{message.id}>{message.from_}!{code}{nth}{suffix}"
    return f"{message.from_}#{message.id}"


ANSWER_WITHIN: Final = "answerWithin"
"""Key of the body of a request: seconds that its requester waits for the final answer (ours)."""

GIVEN_UP: Final = "givenUp"
"""Key of the body of an event: id of the request whose answer its sender no longer awaits (M-59).

The event goes to the inbox of the receiver of the request."""


def key_given_up(message: Message) -> tuple[str, str, int] | None:
    """Return sender, receiver and id of the request that a message gives up; None: it is no such.

    A sender can only give up requests of its own, as the sender of the message is that of the
    request.
    """
    number = message.body.get(GIVEN_UP)
    is_number = isinstance(number, int) and not isinstance(number, bool)
    if not (is_number and message.type is MessageType.CREATE and is_inbox(message.to)):
        return None
    return message.from_, message.to.rpartition("/")[0], cast("int", number)


DURABLE: Final = "durable"
"""Key of a body. The value true asks the node to store the request until the request is answered.

In a message that a node delivers, the value is the position in the log of the receiver's runtime,
where the node has stored the message."""


def is_durable(message: Message) -> bool:
    """Return whether a message is a request that a node should store until it is answered.

    Such a request to a hyperty is answered 202 when it is stored in the log of the receiver's
    runtime.
    """
    is_wanted = message.body.get(DURABLE) is True
    return is_wanted and message.is_request and scheme_of(message.to) == "hyperty"


def position_of(message: Message) -> int | None:
    """Return the position of a message in the log of stored messages, or None if not stored."""
    place = message.body.get(DURABLE)
    return None if isinstance(place, bool) or not isinstance(place, int) else place


def request_id(response: Message) -> str:
    """Return the identifier (`instance_id`) of the request that a response answers."""
    return f"{response.to}#{response.id}"


def reply_to(request: Message, code: int, body: JsonObject | None = None) -> Message:
    """Make the answer to a request, with the same id and the given code (MSG-04).

    Args:
        request: The request; the answer goes to its sender.
        code: One of `Code`.
        body: The answer's fields besides its code.

    Raises:
        BadMessageError: The message is no request, the code is unknown, or the body contains
            another code.
    """
    if not request.is_request:
        raise BadMessageError(f"nothing answers {instance_id(request)}: it is no request")
    return _answer(request, code, body or {})


def refuse(message: Message, code: int, why: str, retry_after: float | None = None) -> Message:
    """Make an answer that refuses a request, with a reason for people.

    The sender of an event may get a refusal, too, if the event is not delivered (SC-36).

    Args:
        message: The request or event.
        code: One of `Code`.
        why: The reason.
        retry_after: Seconds after which the same request may be granted; None: never, or unknown;
            an answer 503 then states `RETRY_AFTER`.

    Raises:
        BadMessageError: The message is an answer, or the code is unknown.
    """
    if message.is_response:
        raise BadMessageError(f"nothing answers {instance_id(message)}: it is an answer")
    body: JsonObject = {"description": why}
    if retry_after is not None:
        body["retryAfter"] = _pause(retry_after)
    return _answer(message, code, body)


def malformed_answer(answer: Message, why: str) -> Message:
    """Make the answer that a requester gets in place of one that cannot be read or written.

    Args:
        answer: The original answer; only its id, sender and receiver are used.
        why: The reason.
    """
    body: JsonObject = {
        "code": int(Code.BAD_BACKEND),
        "description": f"its answer is malformed: {why}",
    }
    return Message(answer.id, MessageType.RESPONSE, answer.from_, answer.to, body)


def _pause(seconds: float) -> float:
    return round(min(max(seconds, LEAST_RETRY), MOST_RETRY), 3)


def reason_in(refusal: Message) -> str:
    """Return the reason for people in a refusal, as its sender wrote it; empty if missing."""
    why = refusal.body.get("description")
    return why if isinstance(why, str) else ""


def _answer(request: Message, code: int, body: JsonObject) -> Message:
    if code == Code.UNAVAILABLE:
        # 503 means "not now": a lasting refusal has another code.
        body = {"description": "it cannot be done now", "retryAfter": RETRY_AFTER, **body}
    if code not in _CODES:
        raise BadMessageError(f"{code} is no reply code; in use are {_CODES_LISTED}")
    if body.get("code", code) != code:
        raise BadMessageError(f"an answer cannot say {code} and {body['code']}")
    return Message(
        id=request.id,
        type=MessageType.RESPONSE,
        from_=request.to,
        to=request.from_,
        body={"code": int(code), **body},
    )


def stamped(message: Message, stub: str, identity: SenderIdentity | None = None) -> Message:
    """Return the message with `stub` appended to its `via` (STB-06, append only).

    Args:
        message: The message.
        stub: Address of the stub that the message crosses.
        identity: For an incoming message, the sender's identity that the stub knows; None: unknown,
            or the message goes out, and the receiver's node or link establishes the identity.
    """
    crossed = message.via if "via" in message.body else ()
    via: Json = [*crossed, stub]
    body = {**message.body, "via": via}
    return Message(message.id, message.type, message.from_, message.to, body, identity)


def identified(message: Message, identity: SenderIdentity | None) -> Message:
    """Return the message with the given identity of its sender; itself if nothing changes."""
    if message.identity is identity:
        return message
    return Message(message.id, message.type, message.from_, message.to, message.body, identity)
