"""What the evidence tells of messages: as a fact, and as the text of one.

A message passes many hops, and at all of them most of what is told is the same; so
that text is made once for each instance and kept while the instance lives.
"""

import json
from hashlib import blake2b
from typing import Final, Literal, TypedDict, Unpack, final
from weakref import ref

import orjson

from specs.jsonvalue import Json, JsonObject
from specs.message import Message, instance_id, request_id
from specs.trace import Fact, Kind, Op

__all__ = [
    "MessageText",
    "More",
    "Ruling",
    "Where",
    "digest",
    "message_fact",
    "ruling_fact",
    "ruling_text",
    "value_digest",
]

_SECRET: Final = frozenset({"via", "auth", "token", "runtimeToken", "secret"})
"""Body keys that never count for a digest; what they hold is not told, but for `via`."""

_IN: Final = "in"
_RULING: Final[
    tuple[Literal["direction", "decision", "policy", "version", "obligations", "why"], ...]
] = ("direction", "decision", "policy", "version", "obligations", "why")

_KEPT: Final = 1024
"""Texts kept at most; each is some 400 bytes (ours)."""


_VIA_CHARACTERS: Final = 4096
"""What is told of the stubs a message crossed, at most (ours; `HOP_LIMIT` need a tenth)."""


class Where(TypedDict, total=False):
    """Where and by whom a message was handled; see `Fact`."""

    by: str
    listener: str
    stub: str
    link: str
    seq: int
    targets: int
    why: str


class More(Where, total=False):
    """What else a record of a message can tell."""

    reason: str


class Ruling(TypedDict, total=False):
    """What a policy engine said of a message; None: nothing. By itself it came in."""

    direction: str
    decision: str
    policy: str | None
    version: int | None
    obligations: str | None
    why: str | None


def ruling_fact(message: Message, **ruling: Unpack[Ruling]) -> Fact:
    """Say what a policy engine said of a message that came in."""
    told: Ruling = {"direction": _IN, **ruling}
    return Fact(k=Kind.AUTHZ, mid=instance_id(message), **told)


def message_fact(op: Op, message: Message, **more: Unpack[More]) -> Fact:
    """Say what happened to a message, without its body."""
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
        via=_via(message) or None,
        **more,
    )


def ruling_text(actor: str, message: Message, ruling: Ruling) -> bytes:
    """Write what `ruling_fact` tells as the inside of a JSON object.

    Raises:
        TypeError: Something has no place in JSON.
    """
    told: JsonObject = {"actor": actor, "k": Kind.AUTHZ, "mid": instance_id(message)}
    told["direction"] = _IN
    for name in _RULING:
        said = ruling.get(name)
        if said is not None:
            told[name] = said
    return orjson.dumps(told)[1:-1]


@final
class MessageText:
    """Writes what `message_fact` tells as the inside of a JSON object."""

    def __init__(self) -> None:
        self._heads: dict[tuple[str, Op], bytes] = {}
        self._kept: dict[int, tuple[ref[Message], bytes]] = {}

    def write(self, actor: str, op: Op, message: Message, more: More) -> bytes:
        """Return all fields, the actor's first, without the braces.

        Raises:
            TypeError: Something has no place in JSON.
        """
        head = self._heads.get((actor, op)) or self._write_head(actor, op)
        kept = self._kept.get(id(message))
        # Another message may have had this id, and be gone.
        same = self._write_same(message) if kept is None or kept[0]() is not message else kept[1]
        return b"%b,%b,%b" % (head, same, orjson.dumps(more)[1:-1]) if more else head + b"," + same

    def _write_head(self, actor: str, op: Op) -> bytes:
        head = orjson.dumps({"actor": actor, "k": Kind.MSG, "op": op})[1:-1]
        if len(self._heads) >= _KEPT:
            self._heads.clear()
        self._heads[actor, op] = head
        return head

    def _write_same(self, message: Message) -> bytes:
        told: JsonObject = {"mid": instance_id(message)}
        if message.is_response:
            told["ref"] = request_id(message)
        told["type"] = message.type
        told["id"] = message.id
        told["from"] = message.from_
        told["to"] = message.to
        if message.code:
            told["code"] = message.code
        told["digest"] = digest(message)
        via = _via(message)
        if via:
            told["via"] = via
        text = orjson.dumps(told)[1:-1]
        if len(self._kept) >= _KEPT:
            self._kept.clear()
        self._kept[id(message)] = (ref(message), text)
        return text


def _via(message: Message) -> str:
    # From outside it may be of any length.
    return "|".join(message.via)[:_VIA_CHARACTERS] if "via" in message.body else ""


def digest(message: Message) -> str:
    """Return a short hash of type, ends and body, equal at every hop of the message."""
    return value_digest([message.type, message.from_, message.to, _told(message.body)])


def value_digest(told: Json) -> str:
    """Return a short hash of any value: the same wherever it came to be."""
    try:
        text = orjson.dumps(told, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        # No wire would carry it: a number beyond 64 bits, text that is no Unicode.
        text = json.dumps(told, sort_keys=True).encode()
    return blake2b(text, digest_size=8).hexdigest()


def _told(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _told(part) for key, part in value.items() if key not in _SECRET}
    if isinstance(value, list):
        return [_told(part) for part in value]
    return value
