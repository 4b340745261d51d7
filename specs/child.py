"""Addresses and names of children of data objects (ADR-05, SYN-24, C-11)."""

from functools import lru_cache
from typing import Final

from specs.addresses.address import RUNTIME_SCHEME, scheme_of
from specs.message import Message, MessageType

CHILDREN: Final = "/children/"
"""The segment between an object and the name of its children."""

_ALL_CHILDREN: Final = CHILDREN.removesuffix("/")
_ALL_SLASHES: Final = 4

RESOURCES: Final = "resources"
"""The name of the single list of children of an object (ours: upstream's usual name)."""

_WRITING: Final = frozenset({MessageType.CREATE, MessageType.UPDATE, MessageType.DELETE})
_CONNECTION: Final = "connection"
_NAMES: Final = (RESOURCES,)

_MOST_DIGITS: Final = 16
"""Digits in the number of a child, as the schema of its name has it; Python reads no number of
any length."""


def child_resources(url: str) -> tuple[str, ...]:
    """Return the names of an object's lists of children.

    The description of a P2P link has no lists of children.
    """
    return () if scheme_of(url) == _CONNECTION else _NAMES


def children_addresses(url: str) -> tuple[str, ...]:
    """Return the addresses to which an object's children are written and reported."""
    return tuple(f"{url}{CHILDREN}{name}" for name in child_resources(url))


SUBSCRIPTION: Final = "subscription"
"""Suffix of an object's address for requests to observe it."""

CHANGES: Final = "changes"
"""Suffix of an object's address for its changes."""


def published_addresses(url: str) -> tuple[str, ...]:
    """Return the addresses at which an object and its children are published."""
    return f"{url}/{CHANGES}", *children_addresses(url)


@lru_cache(maxsize=4096)
def parent_of(address: str) -> str | None:
    """Return the object of an address of children, or None if it is another address."""
    url, separator, name = address.partition(CHILDREN)
    return url if separator and name and "/" not in name else None


def object_of(address: str) -> str:
    """Return the object, or other source, that publishes at an address: `O` for `O/changes`."""
    return parent_of(address) or address.rpartition("/")[0]


def is_of_creator(message: Message) -> bool:
    """Return whether a message to the address of children is from a creator, not the object."""
    url = None if message.is_response else parent_of(message.to)
    return url is not None and message.from_ != url


def is_all_children(address: str) -> bool:
    """Return whether an address is upstream's single address for all children (C-11).

    Upstream writes `O/children/`; the canonical text has no slash at the end.
    """
    is_part = address.endswith(_ALL_CHILDREN) and address.count("/") == _ALL_SLASHES
    return is_part and scheme_of(address) != RUNTIME_SCHEME


def naming_error(message: Message) -> str | None:
    """Return the error in a message to the address of children, or None.

    Only the verbs create, update and delete are for children, and each names a child of the sender.
    """
    if message.type not in _WRITING:
        return "children are created, changed and deleted, nothing else"
    name = message.body.get("resource")
    parts = split_name(name) if isinstance(name, str) else None
    if parts is None or parts[0] != message.from_:
        return "not the child reporter: only its creator writes a child"
    return None


def child_name(creator: str, number: int) -> str:
    """Return the name of a child: `Hx#<k>`."""
    return f"{creator}#{number}"


def split_name(name: str) -> tuple[str, int] | None:
    """Return the creator of a child and its number, or None if the name is invalid."""
    creator, _, number = name.rpartition("#")
    return (creator, int(number)) if creator and _is_number(number) else None


def _is_number(text: str) -> bool:
    is_short = 0 < len(text) <= _MOST_DIGITS
    return is_short and text.isascii() and text.isdigit() and text[0] != "0"
