"""Addresses and names of child objects of data objects, such as chat messages (ADR-05, SYN-24).

Any hyperty may create children of an object; only its creator may change a child.
"""

from functools import lru_cache
from typing import Final

from specs.addresses.address import RUNTIME_SCHEME, scheme_of
from specs.message import Message, MessageType

CHILDREN: Final = "/children/"
"""The text between the address of an object and the name of a list of its children."""

_ALL_CHILDREN: Final = CHILDREN.removesuffix("/")
_ALL_SLASHES: Final = 4

RESOURCES: Final = "resources"
"""The name of the only list of children of an object, as in upstream's implementation."""

_WRITING: Final = frozenset({MessageType.CREATE, MessageType.UPDATE, MessageType.DELETE})
_CONNECTION: Final = "connection"
_NAMES: Final = (RESOURCES,)

_MOST_DIGITS: Final = 16
"""Largest number of digits in the number of a child, as in the schema of its name."""


def child_resources(url: str) -> tuple[str, ...]:
    """Return the names of the lists of children of a data object.

    A `connection` object, which describes a P2P link, has no children.
    """
    return () if scheme_of(url) == _CONNECTION else _NAMES


def children_addresses(url: str) -> tuple[str, ...]:
    """Return the addresses to which messages about an object's children are sent."""
    return tuple(f"{url}{CHILDREN}{name}" for name in child_resources(url))


SUBSCRIPTION: Final = "subscription"
"""Suffix of an object's address for requests to observe the object."""

CHANGES: Final = "changes"
"""Suffix of an object's address for events about changes of the object."""


def published_addresses(url: str) -> tuple[str, ...]:
    """Return the addresses to which changes of an object and of its children are sent."""
    return f"{url}/{CHANGES}", *children_addresses(url)


@lru_cache(maxsize=4096)
def parent_of(address: str) -> str | None:
    """Return the object of an address of children, or None for an address of another form."""
    url, separator, name = address.partition(CHILDREN)
    return url if separator and name and "/" not in name else None


def object_of(address: str) -> str:
    """Return the object, or other publisher, whose events go to an address: `O` for `O/changes`."""
    return parent_of(address) or address.rpartition("/")[0]


def is_of_creator(message: Message) -> bool:
    """Return whether a message to the address of children comes from a creator, not the object."""
    url = None if message.is_response else parent_of(message.to)
    return url is not None and message.from_ != url


def is_all_children(address: str) -> bool:
    """Return whether an address is the one that upstream uses for all children together (C-11).

    Upstream writes `O/children/`; the canonical text has no slash at the end.
    """
    is_part = address.endswith(_ALL_CHILDREN) and address.count("/") == _ALL_SLASHES
    return is_part and scheme_of(address) != RUNTIME_SCHEME


def naming_error(message: Message) -> str | None:
    """Return why a message to the address of children is not allowed, or None if it is allowed.

    Only the verbs create, update and delete are allowed, and the named child must be the sender's.
    """
    if message.type not in _WRITING:
        return "children are created, changed and deleted, nothing else"
    name = message.body.get("resource")
    parts = split_name(name) if isinstance(name, str) else None
    if parts is None or parts[0] != message.from_:
        return "not the child reporter: only its creator writes a child"
    return None


def child_name(creator: str, number: int) -> str:
    """Return the name of a child: the address of its creator, `#`, and the number."""
    return f"{creator}#{number}"


def split_name(name: str) -> tuple[str, int] | None:
    """Return the creator of a child and its number, or None if the name is invalid."""
    creator, _, number = name.rpartition("#")
    return (creator, int(number)) if creator and _is_number(number) else None


def _is_number(text: str) -> bool:
    is_short = 0 < len(text) <= _MOST_DIGITS
    return is_short and text.isascii() and text.isdigit() and text[0] != "0"
