"""Dialects: how one peer spells messages, learnt from its messages and used for this peer only.

Older implementations write the same message differently, for example ids as text. A session
remembers the `Dialect` of its peer. Messages inside the process are in normal form; `emit` writes
them in the dialect of the peer when they are sent (N3). The older implementation whose habits
matter most is called upstream.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

from specs.addresses.address import NO_OBJECT_SCHEMES, RUNTIME_SCHEME, is_backend, scheme_of
from specs.child import is_all_children
from specs.dialects import normalise
from specs.dialects.spellings import LIST_KEYS
from specs.errors import BadUrlError
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import MAX_SPELLINGS
from specs.message import Message, MessageType

ALLOCATION: Final = "address-allocation"
"""Last segment of a node's allocation address (C-42)."""

_ALIAS: Final = "runtime://"
_CANONICAL: Final = f"{RUNTIME_SCHEME}://"
_PATH_TYPES: Final = frozenset({MessageType.SUBSCRIBE, MessageType.UNSUBSCRIBE})
_SUBSCRIPTION: Final = "/subscription"
_CHANGES: Final = "/changes"
_OBJECT_SLASHES: Final = 3
_ARRAY: Final = "array"
_ADD: Final = "add"
_REMOVE: Final = "remove"
_URL: Final = "://"
_PLACE: Final = re.compile("[0-9]{1,9}")
_NOWHERE: Final = 999_999_999
"""An index greater than that of any element of a list that fits into a message."""
_REGISTRY: Final = f"domain://{normalise.REGISTRY_HOST}"
_HYPERTY_PATH: Final = "/hyperty/"
"""Prefix that upstream's runtime writes before the address of a hyperty to unregister."""

_TEXT_KEYS: Final = ("description", "desc", "Message")
_TELLING: Final = frozenset({*_TEXT_KEYS, *LIST_KEYS, "childrenResources", "via", "version"})
"""Fields of a body from which the dialect of a peer may be learnt."""

_NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})


@attrs.frozen(slots=True, kw_only=True)
class Dialect:
    """How a peer spells messages, as far as its messages have shown; the defaults are normal form.

    Attributes:
        string_ids: The peer writes ids as text (N3).
        runtime_alias: The peer writes `runtime://` (C-37).
        upper_types: The peer writes verbs in capitals (C-01).
        list_key: The key under which the peer lists the addresses of a subscription (C-09).
        text_key: The peer's name of the field `description` (C-05).
        allocation: Last segment of the peer's address for allocations (C-42).
        via_text: The peer writes `via` as one address, and compares it with its own (C-07).
        is_upstream: Whether the peer has the habits of upstream's runtime, which its messages do
            not show: it reads the observer of a subscription from `subscriber` (C-10), knows all
            children of an object by the single address `O/children/` (C-11), accepts no object
            without a name, and names an index in a list as the last segment of a path (C-35).
        from_zero: The peer counts the versions of its data objects from 0.
        names: The peer's own addresses in its last spelling, by their canonical text, if the two
            differ: an answer goes to exactly the `from` of its request. Equality of dialects
            ignores these names.
        is_plain: Whether the dialect is normal form, except for `names` and upstream's habits.
    """

    string_ids: bool = False
    runtime_alias: bool = False
    upper_types: bool = False
    list_key: str = LIST_KEYS[0]
    text_key: str = "description"
    allocation: str = ALLOCATION
    via_text: bool = False
    is_upstream: bool = False
    from_zero: bool = False
    names: Mapping[str, str] = attrs.field(default=_NO_NAMES, eq=False)
    is_plain: bool = attrs.field(init=False, eq=False, repr=False)

    @is_plain.default
    def _is_plain(self) -> bool:
        words = (self.list_key, self.text_key, self.allocation)
        has_forms = self.string_ids or self.runtime_alias or self.upper_types or self.via_text
        return not has_forms and words == (LIST_KEYS[0], "description", ALLOCATION)


PLAIN: Final = Dialect()
"""Normal form: the dialect for a peer that has shown no other spelling."""


UPSTREAM: Final = Dialect(is_upstream=True)
"""The dialect for a peer in upstream's forms that has shown no spelling yet."""


def dialect_of(raw: JsonObject, known: Dialect = PLAIN) -> Dialect:
    """Return the dialect of a peer, updated by the spellings in one more of its messages.

    Properties that the message does not show keep their values. If nothing is new, `known` itself
    is returned.
    """
    body = raw.get("body")
    ends = [end for end in (raw.get("from"), raw.get("to")) if isinstance(end, str)]
    fields = body if isinstance(body, dict) else {}
    learnt = Dialect(
        string_ids=isinstance(raw["id"], str) if "id" in raw else known.string_ids,
        runtime_alias=_alias_shown(ends, known),
        upper_types=_capitals_shown(raw.get("type"), known),
        list_key=_list_key_shown(raw, fields, known),
        text_key=next((k for k in _TEXT_KEYS if k in fields), known.text_key),
        allocation=_allocation_shown(ends, known),
        via_text=isinstance(fields["via"], str) if "via" in fields else known.via_text,
        is_upstream=known.is_upstream,
        from_zero=known.from_zero or _zero_shown(raw, fields),
        names=_names_shown(raw.get("from"), known),
    )
    return known if learnt == known and learnt.names is known.names else learnt


def envelope_of(raw: JsonObject) -> tuple[str, str, str, bool] | None:
    """Return the type, sender, receiver and form of the id, if these alone show the dialect.

    Messages with the same result show the same dialect, which need not be determined again. None:
    the body of the message must be read, too.
    """
    id_, type_, from_, to, body = map(raw.get, ("id", "type", "from", "to", "body"))
    if not (isinstance(type_, str) and isinstance(from_, str) and isinstance(to, str)):
        return None
    if id_ is None or not isinstance(body, dict) or _tells(body):
        return None
    return type_, from_, to, isinstance(id_, str)


def normal_envelope_of(message: Message) -> tuple[str, str, str, bool] | None:
    """Return the result of `envelope_of` for a message that was written in normal form."""
    return None if _tells(message.body) else (message.type, message.from_, message.to, False)


def _tells(body: JsonObject) -> bool:
    if not _TELLING.isdisjoint(body):
        return True
    value = body.get("value")
    return isinstance(value, dict) and "version" in value


def _names_shown(from_: Json, known: Dialect) -> Mapping[str, str]:
    """Return the updated `names` of the dialect of a peer in upstream's forms.

    The address of a runtime is stored in any spelling, since `runtime_alias` may have changed when
    the answer is sent.
    """
    if not known.is_upstream or not isinstance(from_, str):
        return known.names
    try:
        normal = normalise.sender_address(from_)
    except BadUrlError:
        return known.names
    is_plain = from_ == normal and scheme_of(normal) != RUNTIME_SCHEME
    if known.names.get(normal) == (None if is_plain else from_):
        return known.names
    others = {name: known.names[name] for name in known.names if name != normal}
    if is_plain:
        return MappingProxyType(others)
    latest = list(others.items())[1 - MAX_SPELLINGS :]
    return MappingProxyType({**dict(latest), normal: from_})


def _zero_shown(raw: JsonObject, body: JsonObject) -> bool:
    """Return whether a message of a peer reports version 0 of a data object."""
    from_, to, type_ = raw.get("from"), raw.get("to"), raw.get("type")
    if not isinstance(from_, str) or not isinstance(to, str) or not isinstance(type_, str):
        return False
    versioned = _find_versioned(type_.lower(), from_, to, body)
    return versioned is not None and versioned["version"] == 0


def _find_versioned(type_: str, from_: str, to: str, body: JsonObject) -> JsonObject | None:
    """Return the JSON object in a reporter's message that contains the version of the data object.

    None: the message is no change and no answer of a data object with a valid version.
    """
    is_change = type_ == MessageType.UPDATE and to == from_ + _CHANGES
    value = body if is_change else body.get("value")
    is_shown = type_ == MessageType.RESPONSE and _is_of_object(from_)
    if not (is_change or is_shown) or not isinstance(value, dict):
        return None
    version = value.get("version")
    is_version = isinstance(version, int) and not isinstance(version, bool) and version >= 0
    return value if is_version else None


def _is_of_object(address: str) -> bool:
    """Return whether an address is a data object, or the address of its subscriptions."""
    is_one = address.removesuffix(_SUBSCRIPTION).count("/") == _OBJECT_SLASHES
    return is_one and scheme_of(address) not in NO_OBJECT_SCHEMES and not is_backend(address)


def meaning_of(message: Message, dialect: Dialect) -> Message:
    """Convert upstream's habits in a message from a peer to the meaning in this protocol.

    Versions of data objects count from 1 (SYN-16), changes of lists name the list and the index
    separately (M-40), and a hyperty is unregistered by its address alone (M-23).

    Args:
        message: The message, in normal form.
        dialect: Spelling of the peer.
    """
    if dialect.from_zero:
        message = _from_one(message)
    if message.type is MessageType.UPDATE and message.to == message.from_ + _CHANGES:
        message = attrs.evolve(message, body=_normal_change(message.body))
    resource = message.body.get("resource")
    is_path = isinstance(resource, str) and resource.startswith(_HYPERTY_PATH)
    if is_path and message.type is MessageType.UPDATE and message.to.startswith(_REGISTRY):
        named = str(resource).removeprefix(_HYPERTY_PATH)
        return attrs.evolve(message, body={**message.body, "resource": named})
    return message


def _normal_change(body: JsonObject) -> JsonObject:
    """Convert the body of a change from upstream's runtime to normal form.

    Upstream's runtime names the index in a list as the last segment of the path. It writes a single
    element without a list, and removes the last element without a count. An added list is
    ambiguous: upstream's observers add its elements, upstream's reporter adds the list. Such a
    change becomes one that cannot be applied, so that observers read the object instead.
    """
    path, operation = body.get("attribute"), body.get("operation")
    if not isinstance(path, str):
        return body
    is_null = operation is None and "value" in body and body["value"] is None
    is_splice = body.get("attributeType") == _ARRAY and operation in {_ADD, _REMOVE}
    if is_null or _URL in path:
        return _unfit(body)
    return _normal_splice(body, path, operation) if is_splice else body


def _normal_splice(body: JsonObject, path: str, operation: Json) -> JsonObject:
    name, _, place = path.rpartition(".")
    value, has_value, is_add = body.get("value"), "value" in body, operation == _ADD
    if not name or not _PLACE.fullmatch(place):
        return _unfit(body)
    rest: JsonObject = {**body, "attribute": name}
    if is_add and has_value and not isinstance(value, list):
        return {**rest, "value": [value], "index": int(place)}
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    if not is_add and (is_count or not has_value):
        return {**rest, "value": value if has_value else 0, "index": int(place)}
    return _unfit(body)


def _unfit(body: JsonObject) -> JsonObject:
    """Return a change that can be applied to no value, so that observers read the object again."""
    array = {"attributeType": _ARRAY, "operation": _REMOVE}
    return {**body, **array, "value": 0, "index": _NOWHERE}


def _spelt_change(body: JsonObject) -> JsonObject:
    """Convert the body of a change of a list to the form that upstream's runtime applies."""
    path = body.get("attribute")
    if body.get("attributeType") != _ARRAY or not isinstance(path, str):
        return body
    index, value, operation = body.get("index"), body.get("value"), body.get("operation")
    elements: list[Json] = value if isinstance(value, list) else [value]
    rest: JsonObject = {key: each for key, each in body.items() if key != "index"}
    if operation == _ADD and index is None:
        return {key: each for key, each in rest.items() if key != "operation"}
    if operation == _ADD:
        is_single = len(elements) == 1 and not isinstance(elements[0], list)
        added: Json = elements[0] if is_single else elements
        rest["value"] = added
    elif operation == _REMOVE and index is not None:
        rest["value"] = len(elements) if isinstance(value, list) else value or 1
    else:
        return body
    return {**rest, "attribute": f"{path}.{index}"}


def _from_one(message: Message) -> Message:
    versioned = _find_versioned(message.type, message.from_, message.to, message.body)
    if versioned is None:
        return message
    version = versioned["version"]
    counted = {**versioned, "version": version + 1 if isinstance(version, int) else version}
    if versioned is not message.body:
        counted = {**message.body, "value": counted}
    return attrs.evolve(message, body=counted)


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
    spellings = sorted(parts & (normalise.ALLOCATION_ALIASES | {ALLOCATION}))
    return spellings[-1] if spellings else known.allocation


def emit(message: Message, dialect: Dialect = PLAIN) -> JsonObject:
    """Return the JSON object of a message in a peer's dialect."""
    type_ = str(message.type)
    return {
        "id": str(message.id) if dialect.string_ids else message.id,
        "type": type_.upper() if dialect.upper_types else type_,
        "from": _spell_end(message.from_, dialect),
        "to": _spell_end(message.to, dialect),
        "body": message.body if dialect == PLAIN else _spell_body(message, dialect),
    }


def is_emitted_plain(message: Message, dialect: Dialect) -> bool:
    """Return whether the dialect of a peer certainly spells a message like normal form."""
    names, from_, to = dialect.names, message.from_, message.to
    if not dialect.is_plain or names.get(to, to) != to or names.get(from_, from_) != from_:
        return False
    if not dialect.is_upstream:
        return True
    body = message.body
    has_habit = message.type in _PATH_TYPES or isinstance(body.get("value"), dict)
    has_habit = has_habit or "operation" in body
    return not (has_habit or is_all_children(from_) or is_all_children(to))


def spell(address: str, dialect: Dialect) -> str:
    """Return a canonical address with the scheme as the dialect of a peer spells it."""
    if dialect.runtime_alias and address.startswith(_CANONICAL):
        return _ALIAS + address.removeprefix(_CANONICAL)
    return address


def _spell_end(address: str, dialect: Dialect) -> str:
    if address in dialect.names:
        return dialect.names[address]
    if dialect.is_upstream and is_all_children(address):
        return f"{address}/"
    if dialect.allocation != ALLOCATION and address.endswith(f"/{ALLOCATION}"):
        spelt = address.removesuffix(ALLOCATION) + dialect.allocation
        return spelt if _means(spelt, address) else spell(address, dialect)
    return spell(address, dialect)


def _means(spelt: str, address: str) -> bool:
    try:
        return normalise.normal_address(spelt) == address
    except BadUrlError:
        return False


def _spell_body(message: Message, dialect: Dialect) -> JsonObject:
    is_path = message.type in _PATH_TYPES and normalise.lists_paths(message.to)
    spelt: JsonObject = {}
    for key, value in message.body.items():
        if key == "description":
            spelt[dialect.text_key] = value
        elif key == "via" and dialect.via_text:
            alone = value[0] if isinstance(value, list) and len(value) == 1 else value
            spelt[key] = _spell_listed(alone, dialect)
        elif key in {"source", "via"}:
            spelt[key] = _spell_listed(value, dialect)
        elif key == "resources" and is_path:
            spelt[dialect.list_key] = _spell_listed(value, dialect)
        else:
            spelt[key] = value
    if dialect.is_upstream:
        _add_habits(message, spelt)
        if message.type is MessageType.UPDATE and message.to == message.from_ + _CHANGES:
            return _spelt_change(spelt)
    return spelt


def _add_habits(message: Message, spelt: JsonObject) -> None:
    """Add the fields to a body that upstream's runtime expects and that normal form lacks."""
    if message.type in _PATH_TYPES and message.to.endswith(_SUBSCRIPTION) and "source" in spelt:
        spelt["subscriber"] = spelt["source"]
    versioned = _find_versioned(message.type, message.from_, message.to, message.body)
    if versioned is not None and versioned is not message.body and not versioned.get("name"):
        spelt["value"] = {**versioned, "name": versioned.get("url")}


def _spell_listed(value: Json, dialect: Dialect) -> Json:
    if isinstance(value, list):
        return [_spell_listed(each, dialect) for each in value]
    return spell(value, dialect) if isinstance(value, str) else value
