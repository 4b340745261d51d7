"""Conversion of all incoming messages, in any known spelling, to normal form (MSG-18).

All other code handles normal form only. Ambiguous input is refused. A message that is already in
normal form passes a short check and is not changed.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, TypeGuard

import attrs

from specs.addresses.address import RUNTIME_SCHEME, Url, parse
from specs.dialects import spellings as forms
from specs.errors import BadMessageError, BadUrlError
from specs.identity import IDENTITY, NOBODY, SenderIdentity, Stamp
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import MAX_ID, MAX_LIST
from specs.message import Message, MessageType
from specs.reply_code import FIRST_CODE, LAST_CODE

CHILDREN: Final[Mapping[str, frozenset[str]]] = {"comm": frozenset({"resources"})}
"""Names of the lists of children in the built-in data schemas, by the scheme of objects (N11)."""

ALLOCATION_ALIASES: Final = frozenset({"hyperty-address-allocation", "object-address-allocation"})
"""Other last segments of a node's allocation address (N16)."""

BODILESS: Final = frozenset({MessageType.READ, MessageType.DELETE})
"""Verbs whose messages may have no body."""

NODE_HOST: Final = "msg-node."
REGISTRY_HOST: Final = "registry."

_TYPES: Final = {str(each): each for each in MessageType}
_PATH_TYPES: Final = frozenset({MessageType.SUBSCRIBE, MessageType.UNSUBSCRIBE})
_STATUS_TYPES: Final = frozenset({MessageType.CREATE, MessageType.UPDATE})
_SLOW_TYPES: Final = _PATH_TYPES | {MessageType.FORWARD, MessageType.DELETE}
_SLOW_KEYS: Final = frozenset(forms.KEY_ALIASES)
_NAMES: Final = frozenset({"type", "from", "to"})
_ID: Final = re.compile(r"[1-9][0-9]{0,15}")

_LOOKED_AT: Final = _SLOW_KEYS | {IDENTITY, "source", "via", "code"}
"""Fields of a body that must be checked or converted in a message of any type."""


@attrs.frozen(slots=True)
class Envelope:
    """Type, sender and receiver of messages in normal form, shared by messages with other ids."""

    type: MessageType
    from_: str
    to: str


def read_envelope(raw: JsonObject) -> Envelope | None:
    """Read type, sender and receiver of a message; None: only `normalise` can read the message.

    Args:
        raw: The fields of the message without id and body.
    """
    if raw.keys() != _NAMES:
        return None
    type_, from_, to = raw["type"], raw["from"], raw["to"]
    if not (_has_sure_type(type_) and _is_canonical(from_) and _is_canonical(to)):
        return None
    is_sure = type_ not in _STATUS_TYPES or not _may_carry_status(to)
    return Envelope(_TYPES[type_], from_, to) if is_sure else None


def with_envelope(id_: int, envelope: Envelope, body: JsonObject, stamp: Stamp) -> Message | None:
    """Make a message from an envelope that was read before; None: only `normalise` can read it.

    Args:
        id_: Id of the message.
        envelope: Type, sender and receiver of the message.
        body: Body of the message.
        stamp: Rule for the sender's identity.
    """
    if not 0 < id_ <= MAX_ID:
        return None
    type_, identity = envelope.type, stamp.identity
    if type_ is MessageType.RESPONSE or not _LOOKED_AT.isdisjoint(body):
        if not (
            _SLOW_KEYS.isdisjoint(body)
            and _has_normal_addresses(body)
            and _has_normal_code(type_, body)
        ):
            return None
        if IDENTITY in body:
            body, identity = _apply_stamp(body, stamp)
    return Message(id_, type_, envelope.from_, envelope.to, body, identity)


def normalise(raw: JsonObject, stamp: Stamp = NOBODY) -> Message:
    """Convert one message in any spelling of a peer to normal form.

    Args:
        raw: JSON object of the message.
        stamp: Rule for the sender's identity.

    Raises:
        BadMessageError: The object is no message, or is ambiguous; has the code of the answer.
    """
    if is_normal(raw):
        return _take(raw, stamp)
    message = _envelope(raw)
    body, identity = message.body, stamp.identity
    if IDENTITY in body:
        body, identity = _apply_stamp(body, stamp)
        message = attrs.evolve(message, body=body)
    return attrs.evolve(message, body=_body(message), identity=identity)


def _apply_stamp(body: JsonObject, stamp: Stamp) -> tuple[JsonObject, SenderIdentity | None]:
    """Return a body without the field `identity`, and the sender's identity by the rule."""
    identity = stamp.of(body)
    return body if stamp.is_kept else without_identity(body), identity


def without_identity(body: JsonObject) -> JsonObject:
    """Return a body without the field `identity`."""
    return {key: value for key, value in body.items() if key != IDENTITY}


def is_normal(raw: JsonObject) -> bool:
    """Return whether the JSON object of a message is certainly in normal form.

    False only means that a closer check is needed.
    """
    id_, type_, body = raw.get("id"), raw.get("type"), raw.get("body")
    if type(id_) is not int or not 0 < id_ <= MAX_ID or not isinstance(body, dict):
        return False
    return (
        _has_sure_type(type_)
        and _is_canonical(raw.get("from"))
        and _is_canonical(raw.get("to"))
        and _SLOW_KEYS.isdisjoint(body)
        and _has_normal_addresses(body)
        and _has_normal_code(type_, body)
        and (type_ not in _STATUS_TYPES or not _may_carry_status(str(raw["to"])))
    )


def _has_sure_type(type_: Json) -> TypeGuard[str]:
    """Return whether a message type is valid, and its bodies need no conversion of their lists."""
    return isinstance(type_, str) and type_ in _TYPES and type_ not in _SLOW_TYPES


def _has_normal_addresses(body: JsonObject) -> bool:
    if "source" in body and not _is_canonical(body["source"]):
        return False
    via = body.get("via", [])
    return isinstance(via, list) and len(via) <= MAX_LIST and all(map(_is_canonical, via))


def _has_normal_code(type_: str, body: JsonObject) -> bool:
    if type_ != MessageType.RESPONSE:
        return "code" not in body
    code = body.get("code")
    return type(code) is int and FIRST_CODE <= code <= LAST_CODE


def _take(raw: JsonObject, stamp: Stamp) -> Message:
    """Make a message of a JSON object that is in normal form."""
    body, identity = raw["body"], stamp.identity
    if not isinstance(body, dict):
        body = {}
    if IDENTITY in body:
        body, identity = _apply_stamp(body, stamp)
    return Message(
        id=raw["id"] if isinstance(raw["id"], int) else 0,
        type=_TYPES[str(raw["type"])],
        from_=str(raw["from"]),
        to=str(raw["to"]),
        body=body,
        identity=identity,
    )


def _envelope(raw: JsonObject) -> Message:
    """Read and check the five fields of a message; the body is not converted (N1, N2, N6, N12)."""
    type_ = _type(raw.get("type"))
    return Message(
        id=_id(raw.get("id")),
        type=type_,
        from_=_end(raw, "from"),
        to=_end(raw, "to"),
        body=_raw_body(raw, type_),
    )


def _type(value: Json) -> MessageType:
    known = _TYPES.get(value.lower()) if isinstance(value, str) else None
    if known is None:
        raise BadMessageError(f"type must be one of {', '.join(_TYPES)}")
    return known


def _id(value: Json) -> int:
    if isinstance(value, str) and _ID.fullmatch(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= MAX_ID:
        raise BadMessageError(f"id must be a whole number from 1 to {MAX_ID}")
    return value


def _end(raw: JsonObject, field: str) -> str:
    value = raw.get(field)
    if isinstance(value, list):
        raise BadMessageError(f"{field} names several addresses; send one message each")
    if not isinstance(value, str):
        raise BadMessageError(f"{field} is missing or no text")
    try:
        return sender_address(value) if field == "from" else normal_address(value)
    except BadUrlError as exc:
        raise BadMessageError(f"{field} {exc}") from exc


def _raw_body(raw: JsonObject, type_: MessageType) -> JsonObject:
    if "body" not in raw and type_ in BODILESS:
        return {}
    body = raw.get("body")
    if not isinstance(body, dict):
        raise BadMessageError(f"{type_} needs a body, and a body is an object")
    return body


def _body(message: Message) -> JsonObject:
    body = forms.common_addresses(forms.common_keys(message.body))
    if message.is_response:
        return forms.answer_code(body)
    if "code" in body:
        raise BadMessageError("only answers carry a code")
    if message.type in _PATH_TYPES:
        return _path_body(message.to, body)
    if message.type in _STATUS_TYPES:
        return _status_body(message.to, body)
    if message.type is MessageType.FORWARD:
        return _normalise_forward(body)
    if message.type is MessageType.DELETE and _is_part(message.to, "address-allocation"):
        return forms.normalise_freed(body)
    return body


def _path_body(to: str, body: JsonObject) -> JsonObject:
    """Return the body of a (un)subscription with all its addresses under the key `resources`.

    The addresses are canonical and complete (N8, N10, N11).
    """
    if not lists_paths(to):
        return body
    listed = forms.path_list(forms.seed_list(body) if _is_part(to, "sm") else body)
    resources = listed.get("resources")
    if isinstance(resources, list):
        return {**listed, "resources": [normal_address(str(resource)) for resource in resources]}
    return listed


def lists_paths(to: str) -> bool:
    """Return whether a subscribe to an address lists the addresses to subscribe to (N8).

    This holds for a node's subscription manager and a runtime's components. A subscribe to a
    runtime's sync manager (`R/sm`) names one object to observe instead.
    """
    if to.startswith(f"{RUNTIME_SCHEME}://"):
        return to.split("/")[4:] != ["sm"]  # otherwise it is the runtime's own sync manager
    return _is_part(to, "sm")


def _status_body(to: str, body: JsonObject) -> JsonObject:
    if to.endswith("/status"):
        return forms.status_value(body)
    return forms.record_status(body) if _may_carry_status(to) else body


def _normalise_forward(body: JsonObject) -> JsonObject:
    """Convert the message within a forward message to normal form, one level deep (M-39).

    The identity of the sender of the inner message is removed.
    """
    inner = body.get("message")
    if not isinstance(inner, dict):
        raise BadMessageError("forward needs a message in body.message")
    message = _envelope(inner if "body" in inner else {**inner, "body": {}})
    if message.type is not MessageType.FORWARD:
        message = attrs.evolve(message, body=_body(message))
    normal: JsonObject = {
        "id": message.id,
        "type": str(message.type),
        "from": message.from_,
        "to": message.to,
    }
    if "body" in inner:
        normal["body"] = without_identity(message.body)
    return {**body, "message": normal}


def _may_carry_status(to: str) -> bool:
    """Return whether messages to an address may report a stub's or registration's state (N13)."""
    return to.endswith(("/status", "/registration")) or to.startswith(f"domain://{REGISTRY_HOST}")


def _is_part(to: str, part: str) -> bool:
    """Return whether an address is a given component of a domain's message node."""
    return to.startswith(f"domain://{NODE_HOST}") and to.partition("://")[2].split("/")[1:] == [
        part
    ]


def _is_canonical(text: Json) -> TypeGuard[str]:
    try:
        return isinstance(text, str) and normal_address(text) == text
    except BadUrlError:
        return False


@lru_cache(maxsize=16384)
def normal_address(text: str) -> str:
    """Return the normal form of an address in any known spelling (N11, N12, N16).

    Raises:
        BadUrlError: The text is no address.
    """
    url = parse(text)
    if url.scheme == "domain" and url.domain.startswith(NODE_HOST):
        return _allocation(url).text
    return _child_path(url).text


def sender_address(text: str) -> str:
    """Return the normal form of a sender's address, without the stray quote of upstream's tests.

    Raises:
        BadUrlError: The text is no address.
    """
    return normal_address(text.removesuffix('"'))


def _allocation(url: Url) -> Url:
    if len(url.path) == 1 and url.path[0] in ALLOCATION_ALIASES:
        return attrs.evolve(url, path=("address-allocation",))
    return url


def _child_path(url: Url) -> Url:
    """Return an address with `children` added before the name of a list of children, if missing.

    The names of lists are those in the schema of the object's scheme (N11).
    """
    names = CHILDREN.get(url.scheme, frozenset())
    whole = url.path
    for path in (whole[:-1], whole) if whole[-1:] == ("child",) else (whole,):
        root = path[:-1]
        if root and path[-1] in names and root[-1] != "children":
            return attrs.evolve(url, path=(*root, "children", path[-1]))
    return url
