"""The spelling of one peer: learnt from its messages, used for it only.

A session remembers one `Dialect`. Messages inside the process stay in normal
form; `emit` writes them for the peer at the very edge (N3).
"""

from typing import Final

import attrs

from specs.addresses.address import RUNTIME_SCHEME
from specs.dialects.normalise import ALLOCATION_ALIASES, lists_paths, normal_address
from specs.dialects.spellings import LIST_KEYS
from specs.errors import BadUrlError
from specs.jsonvalue import Json, JsonObject
from specs.message import Message, MessageType

ALLOCATION: Final = "address-allocation"
"""Last segment of a node's allocation address (C-42)."""

_ALIAS: Final = "runtime://"
_CANONICAL: Final = f"{RUNTIME_SCHEME}://"
_PATH_TYPES: Final = frozenset({MessageType.SUBSCRIBE, MessageType.UNSUBSCRIBE})


@attrs.frozen(slots=True, kw_only=True)
class Dialect:
    """The spelling that a peer's messages showed; the defaults are normal form.

    Attributes:
        string_ids: It writes ids as text (N3).
        runtime_alias: It writes `runtime://` (C-37).
        upper_types: It writes verbs in capitals (C-01).
        list_key: Under which key it lists the addresses of a path (C-09).
        text_key: What it calls `description` (C-05).
        allocation: Last segment of its allocation address (C-42).
        via_text: It writes `via` as one address, and compares it with its own (C-07).
    """

    string_ids: bool = False
    runtime_alias: bool = False
    upper_types: bool = False
    list_key: str = LIST_KEYS[0]
    text_key: str = "description"
    allocation: str = ALLOCATION
    via_text: bool = False


PLAIN: Final = Dialect()
"""Normal form: what a peer is spoken to that has shown nothing else."""


def dialect_of(raw: JsonObject, known: Dialect = PLAIN) -> Dialect:
    """Return the dialect of a peer after one more of its messages.

    What the message does not show stays as it was known.
    """
    body = raw.get("body")
    ends = [end for end in (raw.get("from"), raw.get("to")) if isinstance(end, str)]
    fields = body if isinstance(body, dict) else {}
    return Dialect(
        string_ids=isinstance(raw["id"], str) if "id" in raw else known.string_ids,
        runtime_alias=_alias_shown(ends, known),
        upper_types=_capitals_shown(raw.get("type"), known),
        list_key=_list_key_shown(raw, fields, known),
        text_key=next(
            (k for k in ("description", "desc", "Message") if k in fields), known.text_key
        ),
        allocation=_allocation_shown(ends, known),
        via_text=isinstance(fields["via"], str) if "via" in fields else known.via_text,
    )


def _alias_shown(ends: list[str], known: Dialect) -> bool:
    schemes = {end.partition("://")[0].lower() for end in ends}
    if "runtime" in schemes:
        return True
    return known.runtime_alias and RUNTIME_SCHEME not in schemes


def _capitals_shown(type_: Json, known: Dialect) -> bool:
    return type_.isupper() if isinstance(type_, str) else known.upper_types


def _list_key_shown(raw: JsonObject, body: JsonObject, known: Dialect) -> str:
    type_ = raw.get("type")
    if (
        not isinstance(type_, str)
        or type_.lower() not in _PATH_TYPES
        or "childrenResources" in body
    ):
        return known.list_key
    keys = [key for key in LIST_KEYS if key in body]
    return keys[0] if keys and isinstance(body[keys[0]], list) else known.list_key


def _allocation_shown(ends: list[str], known: Dialect) -> str:
    parts = {end.removesuffix("/").rpartition("/")[2] for end in ends}
    shown = sorted(parts & (ALLOCATION_ALIASES | {ALLOCATION}))
    return shown[-1] if shown else known.allocation


def emit(message: Message, dialect: Dialect = PLAIN) -> JsonObject:
    """Write a message in a peer's dialect; the keys in the order of the envelope."""
    type_ = str(message.type)
    return {
        "id": str(message.id) if dialect.string_ids else message.id,
        "type": type_.upper() if dialect.upper_types else type_,
        "from": _spell_end(message.from_, dialect),
        "to": _spell_end(message.to, dialect),
        "body": message.body if dialect == PLAIN else _spell_body(message, dialect),
    }


def spell(address: str, dialect: Dialect) -> str:
    """Write a canonical address with a peer's spelling of its scheme."""
    if dialect.runtime_alias and address.startswith(_CANONICAL):
        return _ALIAS + address.removeprefix(_CANONICAL)
    return address


def _spell_end(address: str, dialect: Dialect) -> str:
    if dialect.allocation != ALLOCATION and address.endswith(f"/{ALLOCATION}"):
        spelt = address.removesuffix(ALLOCATION) + dialect.allocation
        return spelt if _means(spelt, address) else spell(address, dialect)
    return spell(address, dialect)


def _means(spelt: str, address: str) -> bool:
    try:
        return normal_address(spelt) == address
    except BadUrlError:
        return False


def _spell_body(message: Message, dialect: Dialect) -> JsonObject:
    is_path = message.type in _PATH_TYPES and lists_paths(message.to)
    spelt: JsonObject = {}
    for key, value in message.body.items():
        if key == "description":
            spelt[dialect.text_key] = value
        elif key == "via" and dialect.via_text:
            spelt[key] = _spell_listed(_alone(value), dialect)
        elif key in {"source", "via"}:
            spelt[key] = _spell_listed(value, dialect)
        elif key == "resources" and is_path:
            spelt[dialect.list_key] = _spell_listed(value, dialect)
        else:
            spelt[key] = value
    return spelt


def _alone(value: Json) -> Json:
    """Return the only one of a list; longer ones have no other spelling."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _spell_listed(value: Json, dialect: Dialect) -> Json:
    if isinstance(value, list):
        return [_spell_listed(one, dialect) for one in value]
    return spell(value, dialect) if isinstance(value, str) else value
