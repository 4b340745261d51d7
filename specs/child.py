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
"""The one list of children that objects of hyperties have (ours: upstream's usual name)."""

_WRITING: Final = frozenset({MessageType.CREATE, MessageType.UPDATE, MessageType.DELETE})
_CONNECTION: Final = "connection"
_NAMES: Final = (RESOURCES,)

_MOST_DIGITS: Final = 16
"""Digits in the number of a child, as the schema of its name has it; Python reads no number of
any length."""


def child_resources(url: str) -> tuple[str, ...]:
    """Return the names of an object's lists of children.

    The description of a P2P link has none: there is nothing beside what it says.
    """
    return () if scheme_of(url) == _CONNECTION else _NAMES


def children_addresses(url: str) -> tuple[str, ...]:
    """Return the address to which an object's children are written and reported."""
    return tuple(f"{url}{CHILDREN}{name}" for name in child_resources(url))


SUBSCRIPTION: Final = "subscription"
"""The part of an object's address at which it is asked for observers."""

CHANGES: Final = "changes"
"""The part of an object's address at which its changes are published."""


def published_addresses(url: str) -> tuple[str, ...]:
    """Return the addresses at which observers of an object hear of it and of its children."""
    return f"{url}/{CHANGES}", *children_addresses(url)


@lru_cache(maxsize=4096)
def parent_of(address: str) -> str | None:
    """Return the object whose children's address this is; None: it is no such address."""
    url, found, name = address.partition(CHILDREN)
    return url if found and name and "/" not in name else None


def object_of(address: str) -> str:
    """Return the object, or other source, whose events go to an address: `O` of `O/changes`."""
    return parent_of(address) or address.rpartition("/")[0]


def is_of_creator(message: Message) -> bool:
    """Return whether a creator has sent this to the address of children, not their object."""
    url = None if message.is_response else parent_of(message.to)
    return url is not None and message.from_ != url


def is_all_children(address: str) -> bool:
    """Return whether this is upstream's one address of all children of an object (C-11).

    Upstream writes it `O/children/`; its canonical text has no slash at the end.
    """
    is_part = address.endswith(_ALL_CHILDREN) and address.count("/") == _ALL_SLASHES
    return is_part and scheme_of(address) != RUNTIME_SCHEME


def naming_error(message: Message) -> str | None:
    """Return the error in what is sent to the address of children; None: nothing.

    Only the three verbs are for children, and each names one of the sender's own.
    """
    if message.type not in _WRITING:
        return "children are created, changed and deleted, nothing else"
    name = message.body.get("resource")
    found = split_name(name) if isinstance(name, str) else None
    if found is None or found[0] != message.from_:
        return "not the child reporter: only its creator writes a child"
    return None


def child_name(creator: str, number: int) -> str:
    """Return the name of a child: `Hx#<k>`."""
    return f"{creator}#{number}"


def split_name(name: str) -> tuple[str, int] | None:
    """Return the creator of a child and its number; None: it is no such name."""
    creator, _, number = name.rpartition("#")
    return (creator, int(number)) if creator and _is_number(number) else None


def _is_number(text: str) -> bool:
    is_short = 0 < len(text) <= _MOST_DIGITS
    return is_short and text.isascii() and text.isdigit() and text[0] != "0"
