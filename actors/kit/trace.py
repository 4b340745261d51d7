"""Tracing: the interface to which components report events, and the content of trace records.

The fields of a record are declared here once, as the fields of a fact. A tracer keeps facts; a
tracer that writes text encodes the same fields without making facts. A record of a message has a
digest of the sending user, and the name only on request. Only messages of the framework's services
keep a body: of registries, of address allocation, of subscriptions at a message node, of the status
of stubs and links. Secrets and names of persons are removed from it. Messages of hyperties and the
values of data objects are never in a trace.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b, sha256
from typing import Final, TypedDict, Unpack, final

import attrs
import orjson
from typing_extensions import override

from fsm.effects import RowChanged
from fsm.engine import Step
from fsm.limits.shares import Memory
from fsm.table import UndeclaredTransitionError
from specs.identity import IDENTITY
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import MAX_ID, TRACE_PLACES, TRACE_PLACES_BYTES
from specs.message import DURABLE, Message, instance_id, request_id
from specs.trace import ABSENT, Fact, Kind, Op

REDACTED: Final = "..."
"""Placeholder for a value that is not recorded."""

_SERVICES: Final = re.compile(
    "domain://(?:msg-node|registry)[.][^/]+(?:/(?:sm|address-allocation))?"
    "|hyperty-runtime://[^/]+/[^/]+/registry(?:/changes)?"
    "|.+/(?:status|registration)"
)
"""Addresses of services whose messages keep their bodies in a trace, as sender or receiver."""

_RECORDED: Final = frozenset(
    {
        "allocated", "allocationKey", "attribute", "attributeType", "childrenResources", "code",
        "expires", "lastModified", "method", "number", "operation", "p2pHandler", "p2pRequester",
        "params", "resource", "resources", "runtime", "scheme", "source", "status", "url", "value",
    }
)  # fmt: skip
"""Body fields whose values are recorded; of other fields only the name is recorded."""

_WORDS: Final = frozenset({"attribute", "attributeType", "method", "operation", "scheme", "status"})
"""Body fields whose values are words of a declared vocabulary, recorded unchanged."""

_STATUSES: Final = frozenset({"created", "in-progress", "live", "disconnected", "failed", "dead"})
_NAMES: Final = frozenset({"allocationKey", "resource"})
"""Body fields that name a block of addresses; recorded as a hash, so that names can be compared."""

_ADDRESS: Final = re.compile("(?!user|domain-idp)[a-z][^/:]*://.+")


def redacted_body(message: Message) -> str | None:
    """Return the body as JSON without secrets and names; None: the trace keeps no body."""
    if not (_SERVICES.fullmatch(message.to) or _SERVICES.fullmatch(message.from_)):
        return None
    try:
        return orjson.dumps(_redact("", message.body), option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:
        # Something that no wire carries.
        return None


def _redact(key: str, value: Json) -> Json:
    match value:
        case dict():
            return {
                inner: _redact(inner, part) if inner in _RECORDED else REDACTED
                for inner, part in value.items()
                if inner != "via"
            }
        case list():
            return [_redact(key, part) for part in value]
        case str():
            return _text(key, value)
        case _:
            return value


def _text(key: str, value: str) -> str:
    if _ADDRESS.fullmatch(value) or key in _WORDS or value in _STATUSES:
        return value
    if key in _NAMES and "/" not in value:
        return REDACTED + blake2b(value.encode(errors="replace"), digest_size=8).hexdigest()
    return REDACTED


_SECRET: Final = frozenset(
    {
        *("via", "auth", "token", "runtimeToken", "secret", IDENTITY, DURABLE),
        *("publicKey", "certificate", "signature", "assertion", "statement"),
    }
)
"""Body keys that never count for a digest; their values are not recorded, except for `via`."""

_NO_KEYS: Final[frozenset[str]] = frozenset()

_DIGEST_BYTES: Final = 8

_USER_DIGITS: Final = 16
"""Hexadecimal digits of the digest of a user (ours): 64 bits, so that no two users of a deployment
share a digest."""

_VIA_CHARACTERS: Final = 4096
"""Characters of the list of crossed stubs in a record (ours; `HOP_LIMIT` need a tenth)."""


class Where(TypedDict, total=False):
    """Fields of a message record: the components and link that handled the message; see `Fact`."""

    by: str
    listener: str
    stub: str
    link: str
    seq: int
    targets: int
    why: str


class More(Where, total=False):
    """Optional fields of a message record, including the reason of a drop."""

    reason: str


class Ruling(TypedDict, total=False):
    """Decision of a policy engine about a message, as traced; fields that are None are left out."""

    direction: str
    decision: str
    policy: str | None
    version: int | None
    obligations: str | None
    why: str | None


class FurtherFields(TypedDict, total=False):
    """Fields of a message record that only some messages have; see `Fact`."""

    body: str
    via: str
    user: str
    kind: str


def further_fields(
    message: Message, *, has_body: bool = False, has_name: bool = False
) -> FurtherFields:
    """Return the trace fields that only some messages have, such as body, user and crossed stubs.

    Args:
        message: The message.
        has_body: Whether the body is wanted.
        has_name: Whether the user is to be named.
    """
    fields: FurtherFields = {}
    if "via" in message.body and (via := "|".join(message.via)):
        fields["via"] = via[:_VIA_CHARACTERS]  # from outside it may be of any length
    body = redacted_body(message) if has_body else None
    if body is not None:
        fields["body"] = body
    user = None if message.identity is None else message.identity.user
    if user is not None:
        fields["user"] = user if has_name else user_digest(user)
    if DURABLE in message.body:
        fields["kind"] = DURABLE
    return fields


@lru_cache(maxsize=1024)
def user_digest(user: str) -> str:
    """Return the hash that replaces the address of a user in a trace."""
    return sha256(user.encode()).hexdigest()[:_USER_DIGITS]


def step_fact(step: Step) -> Fact:
    """Return the trace fact for a state transition."""
    return Fact(
        k=Kind.STATE,
        op=Op.STEP,
        machine=step.machine,
        key=step.key,
        old=ABSENT if step.old is None else step.old,
        new=step.new,
        cause=step.cause,
        why=step.why or None,
    )


def ruling_fact(message: Message, **ruling: Unpack[Ruling]) -> Fact:
    """Return the trace fact for a policy decision about a message, by default an inbound one."""
    ruling.setdefault("direction", "in")
    return Fact(k=Kind.AUTHZ, mid=instance_id(message), **ruling)


def message_fact(
    op: Op,
    message: Message,
    *,
    has_body: bool = False,
    has_name: bool = False,
    **more: Unpack[More],
) -> Fact:
    """Return the trace fact for an event of a message.

    Args:
        op: What happened to the message.
        message: The message.
        has_body: Whether the body is recorded.
        has_name: Whether the user is named.
    """
    further = further_fields(message, has_body=has_body, has_name=has_name)
    return Fact(
        k=Kind.MSG,
        op=op,
        mid=instance_id(message),
        ref=request_id(message) if message.is_response else None,
        type=message.type,
        id=message.id,
        from_=message.from_,
        to=message.to,
        code=message.code or None,
        digest=digest(message),
        **further,
        **more,
    )


def refused_fact(error: UndeclaredTransitionError) -> Fact:
    """Return the trace fact for a refused state transition, which no transition table declares."""
    return Fact(
        k=Kind.STATE,
        op=Op.REFUSED,
        machine=error.machine,
        key=error.key,
        old=ABSENT if error.state is None else error.state,
        cause=error.trigger,
    )


def digest(message: Message) -> str:
    """Return a short hash of type, sender, receiver and body, equal at every hop of the message."""
    try:
        return digest_from(ends_hash(message), message.body)
    except TypeError:
        body = _digest(message.body, _SECRET)
        return _hash([message.type, message.from_, message.to, body])


def ends_hash(message: Message) -> blake2b:
    """Return the hash of type, sender and receiver of a message, as the start of its digest.

    Raises:
        TypeError: Text is no Unicode.
    """
    ends = orjson.dumps([message.type, message.from_, message.to])
    return blake2b(ends[:-1] + b",", digest_size=_DIGEST_BYTES)


def digest_from(ends: blake2b, body: JsonObject) -> str:
    """Return the digest of a message from its hashed header and its body.

    Args:
        ends: Result of `ends_hash` for the message; it is not changed.
        body: Its body.

    Raises:
        TypeError: Text is no Unicode.
    """
    if "via" in body:
        # Half of all messages have crossed a stub, and most have nothing else to be left out.
        body = body.copy()
        del body["via"]
    digested = body if _is_plain(body) else _digest(body, _SECRET)
    whole = ends.copy()
    whole.update(orjson.dumps(digested, option=orjson.OPT_SORT_KEYS) + b"]")
    return whole.hexdigest()


def value_digest(value: Json) -> str:
    """Return a short hash of any JSON value, equal in all implementations."""
    return _hash(_digest(value, _NO_KEYS))


def _hash(value: Json) -> str:
    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        # No wire would carry it: text that is no Unicode.
        text = json.dumps(value, sort_keys=True).encode()
    return blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()


def _digest(value: Json, left_out: frozenset[str]) -> Json:
    """Return a value without some keys, with numbers as a runtime in a browser knows them.

    There, 1.0 is 1, and a whole number beyond `MAX_ID` is in floating point.
    """
    if isinstance(value, dict):
        return {
            # Most parts are texts: a call for each of them would take as long as the hash.
            key: part if type(part) is str else _digest(part, left_out)
            for key, part in value.items()
            if key not in left_out
        }
    if type(value) is int:
        return value if -MAX_ID <= value <= MAX_ID else _floating(value)
    if isinstance(value, list):
        return [_digest(part, left_out) for part in value]
    if type(value) is float:
        return int(value) if value.is_integer() and abs(value) <= MAX_ID else value
    return value


def _is_plain(value: JsonObject) -> bool:
    """Return whether the digest of a body needs no change of the body first.

    False says that it may need changes. Most bodies are few texts and numbers: to copy them would
    take longer.
    """
    if not _SECRET.isdisjoint(value):
        return False
    for part in value.values():
        if type(part) is str or type(part) is bool or part is None:
            continue
        if type(part) is int:
            if not -MAX_ID <= part <= MAX_ID:
                return False
        elif type(part) is not dict or not _is_plain(part):
            return False
    return True


def _floating(value: int) -> Json:
    try:
        return float(value)
    except OverflowError:
        return str(value)


@final
@attrs.define(eq=False)
class Hop:
    """Common part of the trace records of many messages at one component.

    Attributes:
        ops: Events of each message, in this order; empty for a policy decision.
        ops: What happened to the message, in this order; nothing if it was ruled about.
        more: Further fields; of a ruling, all of its fields.
        heads: Its part of the record of each `Op`, or of the ruling, as a tracer writes it; that
            tracer makes them with the first message.
    """

    actor: str
    ops: tuple[Op, ...]
    more: More | Ruling = attrs.field(factory=More)
    heads: tuple[str, ...] = ()


class Hops(Memory[str, Hop]):
    """Cache of `Hop` objects of one component that differ in one field, by its value."""

    __slots__ = ("_actor", "_more", "_ops")

    def __init__(self, actor: str, more: Callable[[str], More], *ops: Op) -> None:
        """Construct it.

        Args:
            actor: Name of the reporting actor.
            more: Returns the field with a value.
            ops: What happens to the messages, in this order.
        """
        super().__init__(TRACE_PLACES, TRACE_PLACES_BYTES)
        self._actor = actor
        self._more = more
        self._ops = ops

    def __missing__(self, value: str) -> Hop:
        return self.keep(value, Hop(self._actor, self._ops, self._more(value)), (value,))


class Tracer(ABC):
    """Interface that takes the trace records of components.

    Attributes:
        steps: Whether state transitions are recorded; all tracers that keep anything record them.
        bodies: Whether records of messages have the bodies, redacted.
        names: Whether records of messages name the users who sent them.
        watches: Whether, without hops, rows of tables, searches for routes, and the answers to
            sampled requests are wanted.
        sample: Without hops, what happens to messages whose ids are multiples of this is wanted; 0:
            no messages are sampled.
        dropped: Number of records that were not kept.
    """

    hops: bool
    steps: bool = True
    bodies: bool = False
    names: bool = False
    watches: bool = False
    sample: int = 0
    dropped: int = 0

    @property
    def messages(self) -> "Tracer":
        """The tracer that takes what happened to messages: this one, or one that it passes it to.

        A component asks once, so that a tracer in between costs a message nothing.
        """
        return self

    @abstractmethod
    def record(self, actor: str, fact: Fact) -> None:
        """Keep a fact in the trace; never waits, never raises.

        Args:
            actor: Name of the reporting actor.
            fact: The fact.
        """

    def step(self, actor: str, step: Step) -> None:
        """Record a state transition.

        Args:
            actor: Name of the reporting actor.
            step: The step.
        """
        self.record(actor, step_fact(step))

    def row(self, actor: str, row: RowChanged) -> None:
        """Record a change of a row in a table, such as a routing table.

        Args:
            actor: Name of the reporting actor.
            row: The row.
        """
        self.record(actor, Fact(k=Kind.TABLE, **attrs.asdict(row)))

    def message(self, actor: str, op: Op, message: Message, **more: Unpack[More]) -> None:
        """Record an event of a message.

        Args:
            actor: Name of the reporting actor.
            op: What happened to the message.
            message: The message.
        """
        self.record(actor, self.message_fact(op, message, **more))

    def hop(self, hop: Hop, message: Message, seq: int = 0) -> None:
        """Record the events of a message, or a policy decision about the message.

        Args:
            hop: The common part of the records, made once for many messages.
            message: The message.
            seq: Number of the message on its link; 0: the message has none.
        """
        more = {**hop.more, "seq": seq} if seq else hop.more
        if not hop.ops:
            self.record(hop.actor, ruling_fact(message, **more))
        for op in hop.ops:
            self.message(hop.actor, op, message, **more)

    @final
    def message_fact(self, op: Op, message: Message, **more: Unpack[More]) -> Fact:
        """Return the fact that something happened to a message, with a body if they are wanted.

        Args:
            op: What happened to the message.
            message: The message.
        """
        return message_fact(op, message, has_body=self.bodies, has_name=self.names, **more)


class _NullTracer(Tracer):
    hops = False
    steps = False

    @override
    def record(self, actor: str, fact: Fact) -> None:
        pass

    @override
    def step(self, actor: str, step: Step) -> None:
        pass

    @override
    def message(self, actor: str, op: Op, message: Message, **more: Unpack[More]) -> None:
        pass


NULL_TRACER: Final[Tracer] = _NullTracer()
"""Tracer that keeps nothing."""


class PassingTracer(Tracer):
    """Base class of tracers that inspect all records and pass them to another tracer.

    Args:
        tracer: Takes everything.
    """

    def __init__(self, tracer: Tracer) -> None:
        self.hops = tracer.hops
        self.steps = tracer.steps
        self.bodies = tracer.bodies
        self.names = tracer.names
        self.watches = tracer.watches
        self.sample = tracer.sample
        self._tracer: Final = tracer

    @property
    @override
    def dropped(self) -> int:  # type: ignore[override] # it counts, and is never set
        return self._tracer.dropped

    @override
    def record(self, actor: str, fact: Fact) -> None:
        self._tracer.record(actor, fact)

    @override
    def step(self, actor: str, step: Step) -> None:
        self._tracer.step(actor, step)

    @override
    def message(self, actor: str, op: Op, message: Message, **more: Unpack[More]) -> None:
        self._tracer.message(actor, op, message, **more)
