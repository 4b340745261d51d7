"""Conversion of the field names and values that older peers use in bodies to normal form.

Most functions take a body and return a converted copy. If a body contains the same field under two
names with different values, the body is refused.
"""

from typing import Final

from specs.addresses.address import canonical
from specs.errors import BadMessageError, BadUrlError
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import MAX_LIST
from specs.reply_code import FIRST_CODE, LAST_CODE, Code

KEY_ALIASES: Final = {
    "desc": "description",
    "Message": "description",
    "Value": "value",
    "Code": "code",
    "subscriber": "source",
}
"""Other names of common body fields (N5, N9)."""

CODE_ALIASES: Final = {"1XX": 100, "2XX": 200, "error": 500}
"""Texts that older peers write instead of a reply code, with the code (N4)."""

STATUS_ALIASES: Final = {"connected": "live", "connecting": "in-progress", "create": "created"}
"""Words that older peers use for states of stubs and registrations, with ours (N13)."""

STATUS_WORDS: Final = frozenset(
    {"created", "in-progress", "live", "disconnected", "failed", "dead"}
)
"""Words for the states of stubs and registrations in normal form (C-12, C-57)."""

LIST_KEYS: Final = ("resources", "subscribe", "unsubscribe", "resource")
"""Keys under which a subscription lists its addresses; the first is the normal one (N8)."""

_OBJECT: Final = "resource"
"""Key under which upstream names the data object to whose addresses it subscribes."""

_FREED: Final = "childrenResources"
"""Key for the list of addresses to release (M-20)."""

OBJECT_PARTS: Final = frozenset({"changes", "subscription", "observers", "status", "registration"})
"""Last segments of addresses that belong to a data object, such as `O/changes` (ADR-05)."""


def address(value: Json, field: str) -> str:
    """Return the canonical text of the address in a field of a body (N12).

    Raises:
        BadMessageError: The value is no address.
    """
    if not isinstance(value, str):
        raise BadMessageError(f"{field} must be one address, as text")
    try:
        return canonical(value)
    except BadUrlError as exc:
        raise BadMessageError(f"{field} {exc}") from exc


def addresses(value: Json, field: str) -> list[Json]:
    """Return the canonical addresses in a field, which may be a list or a single one (N7, N8).

    Raises:
        BadMessageError: A value is no address, or the list is too long.
    """
    listed = value if isinstance(value, list) else [value]
    if len(listed) > MAX_LIST:
        raise BadMessageError(f"{field} lists more than {MAX_LIST} addresses", Code.TOO_LARGE)
    return [address(item, field) for item in listed]


def common_keys(body: JsonObject) -> JsonObject:
    """Rename common fields to their normal names (N5, N9).

    Raises:
        BadMessageError: Two spellings of one field differ.
    """
    normal: JsonObject = {}
    for key, value in body.items():
        name = KEY_ALIASES.get(key, key)
        if name in normal and normal[name] != value:
            raise BadMessageError(f"{name} is given twice and differs")
        normal[name] = value
    return normal


def common_addresses(body: JsonObject) -> JsonObject:
    """Convert `via` and `source` to normal form (N7, N12)."""
    normal = dict(body)
    if "via" in normal:
        normal["via"] = addresses(normal["via"], "via")
    if "source" in normal:
        normal["source"] = address(normal["source"], "source")
    return normal


def answer_code(body: JsonObject) -> JsonObject:
    """Convert the reply code of an answer to a number (N4).

    Raises:
        BadMessageError: The code is missing or invalid.
    """
    code = body.get("code")
    if isinstance(code, str):
        code = CODE_ALIASES.get(code, int(code) if code.isascii() and code.isdigit() else None)
    if not isinstance(code, int) or isinstance(code, bool) or not FIRST_CODE <= code <= LAST_CODE:
        raise BadMessageError(f"an answer needs a code from {FIRST_CODE} to {LAST_CODE}")
    return {**body, "code": code}


def status_word(value: Json) -> Json:
    """Return the normal word for a state of a stub or registration; keep any other value (N13)."""
    if not isinstance(value, str):
        return value
    word = STATUS_ALIASES.get(value.lower(), value.lower())
    return word if word in STATUS_WORDS else value


def status_value(body: JsonObject) -> JsonObject:
    """Convert the state in a status event of a stub to normal form (N13)."""
    return {**body, "value": status_word(body["value"])} if "value" in body else body


def record_status(body: JsonObject) -> JsonObject:
    """Convert the state in a message about a registration to normal form (N13)."""
    value = body.get("value")
    if isinstance(value, dict) and "status" in value:
        return {**body, "value": {**value, "status": status_word(value["status"])}}
    return status_value(body) if body.get("attribute") == "status" else body


def normalise_freed(body: JsonObject) -> JsonObject:
    """Convert a request to release addresses to normal form (N14).

    The normal form has the key of a block in `resource`, or a flat list in `childrenResources`.
    Older peers put both into `value`, a key into a list, and blocks into a list of lists.
    Upstream's runtime names an object and the names of its children, which are released together.

    Raises:
        BadMessageError: Several blocks are named.
    """
    normal = _out_of_value(_out_of_value(body, "allocationKey", "resource"), _FREED, _FREED)
    key, listed = normal.get("resource"), normal.get(_FREED)
    if isinstance(key, list):
        if len(key) != 1:
            raise BadMessageError("resource names one block; free others by other messages")
        normal = {**normal, "resource": key[0]}
    if isinstance(listed, list) and listed and isinstance(listed[0], list):
        flat = [
            item for block in listed for item in (block if isinstance(block, list) else [block])
        ]
        if len(flat) > MAX_LIST:
            why = f"{_FREED} lists more than {MAX_LIST} addresses"
            raise BadMessageError(why, Code.TOO_LARGE)
        listed, normal = flat, {**normal, _FREED: flat}
    is_object = isinstance(normal.get("resource"), str) and "://" in str(normal["resource"])
    if is_object and isinstance(listed, list) and not any("/" in str(item) for item in listed):
        return {name: each for name, each in normal.items() if name != _FREED}
    return normal


def _out_of_value(body: JsonObject, old: str, new: str) -> JsonObject:
    """Move a field from the object `value` to the body itself, under a new name.

    Raises:
        BadMessageError: The body has a different value under the new name.
    """
    value = body.get("value")
    if not isinstance(value, dict) or old not in value:
        return body
    if body.get(new, value[old]) != value[old]:
        raise BadMessageError(f"{new} and {old} in value name different blocks")
    rest: JsonObject = {k: v for k, v in value.items() if k != old}
    normal: JsonObject = {k: v for k, v in body.items() if k != "value"}
    return {**normal, **({"value": rest} if rest else {}), new: value[old]}


def path_list(body: JsonObject) -> JsonObject:
    """Move the list of addresses in the body of a subscription to the key `resources` (N8).

    Raises:
        BadMessageError: Two lists are given and differ.
    """
    given = [(key, addresses(body[key], key)) for key in LIST_KEYS if key in body]
    if not given:
        return body
    first_key, first = given[0]
    for key, listed in given[1:]:
        if listed != first and not (key == _OBJECT and _is_object_of(listed, first)):
            raise BadMessageError(f"{first_key} and {key} list different addresses")
    rest: JsonObject = {k: v for k, v in body.items() if k not in LIST_KEYS}
    return {**rest, "resources": first}


def _is_object_of(named: list[Json], listed: list[Json]) -> bool:
    """Return whether the only address in `named` is the object of all `listed` addresses."""
    return len(named) == 1 and all(f"{item}/".startswith(f"{named[0]}/") for item in listed)


def seed_list(body: JsonObject) -> JsonObject:
    """Convert an object and the names of its lists of children to a list of addresses (N10).

    Raises:
        BadMessageError: The object or a child's name is malformed.
    """
    if "childrenResources" not in body:
        return body
    children = body["childrenResources"]
    if "resource" not in body or not isinstance(children, list) or len(children) >= MAX_LIST:
        raise BadMessageError("childrenResources must be a list of names beside one resource")
    root = address(body["resource"], "resource")
    if root.rpartition("/")[2] in OBJECT_PARTS:
        raise BadMessageError("resource names a part of an object where the object is expected")
    listed: list[Json] = [f"{root}/changes", *(_child(root, name) for name in children)]
    rest: JsonObject = {k: v for k, v in body.items() if k not in {"resource", "childrenResources"}}
    if addresses(rest.get("resources", listed), "resources") != listed:
        raise BadMessageError("resources and childrenResources list different addresses")
    return {**rest, "resources": listed}


def _child(root: str, name: Json) -> str:
    if not isinstance(name, str) or "/" in name:
        raise BadMessageError("childrenResources must be names, not addresses")
    return address(f"{root}/children/{name}", "childrenResources")
