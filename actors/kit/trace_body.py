"""The body of a message as a trace keeps it: what the framework says, without secrets and persons.

Only messages of the framework's services have one: of registries, of address allocation, of
paths at a message node, of the status of stubs and links. What hyperties say to each other, and
the values of data objects, never stand in a trace.
"""

import re
from hashlib import blake2b
from typing import Final

import orjson

from specs.jsonvalue import Json
from specs.message import Message

__all__ = ["REDACTED", "redacted_body"]

REDACTED: Final = "..."
"""Stands for a value that is not recorded."""

_SERVICES: Final = re.compile(
    "domain://(?:msg-node|registry)[.][^/]+(?:/(?:sm|address-allocation))?"
    "|hyperty-runtime://[^/]+/[^/]+/registry(?:/changes)?"
    "|.+/(?:status|registration)"
)
"""Addresses of which one sends or gets every message that has a body in a trace."""

_RECORDED: Final = frozenset(
    {
        "allocated", "allocationKey", "attribute", "attributeType", "childrenResources", "code",
        "expires", "lastModified", "method", "number", "operation", "p2pHandler", "p2pRequester",
        "params", "resource", "resources", "runtime", "scheme", "source", "status", "url", "value",
    }
)  # fmt: skip
"""Fields whose values are recorded; of any other, only its presence."""

_WORDS: Final = frozenset({"attribute", "attributeType", "method", "operation", "scheme", "status"})
"""Fields with declared words."""

_STATUSES: Final = frozenset({"created", "in-progress", "live", "disconnected", "failed", "dead"})
_NAMES: Final = frozenset({"allocationKey", "resource"})
"""Fields that name a block of addresses: recorded as a hash, so that two can be compared."""

_ADDRESS: Final = re.compile("(?!user|domain-idp)[a-z][^/:]*://.+")


def redacted_body(message: Message) -> str | None:
    """Return the body as JSON with sorted keys, redacted; None: the trace keeps none of it."""
    if not (_SERVICES.fullmatch(message.to) or _SERVICES.fullmatch(message.from_)):
        return None
    try:
        return orjson.dumps(_redacted("", message.body), option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:
        # Something that no wire carries.
        return None


def _redacted(key: str, value: Json) -> Json:
    match value:
        case dict():
            return {
                inner: _redacted(inner, part) if inner in _RECORDED else REDACTED
                for inner, part in value.items()
                if inner != "via"
            }
        case list():
            return [_redacted(key, part) for part in value]
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
