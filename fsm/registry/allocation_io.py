"""What the table of addresses is told, and what it tells."""

from typing import TypeAlias, final

import attrs

from fsm.effects import Refused, RowChanged
from fsm.engine import Step

__all__ = [
    "Allocate",
    "Allocated",
    "Bind",
    "Claim",
    "Effect",
    "Free",
    "FreeBlock",
    "Freed",
    "Input",
    "Move",
    "Release",
    "RuntimeCame",
    "Taken",
]


@final
@attrs.frozen(slots=True)
class Allocate:
    """A runtime asks for addresses (M-18).

    Attributes:
        owner: The runtime.
        addresses: Fresh ones, as many as it asked for; made by the host, because
            randomness is not the core's.
        key: Names them together, within this owner.
    """

    owner: str
    addresses: tuple[str, ...]
    key: str | None = None


@final
@attrs.frozen(slots=True)
class Claim:
    """A runtime names addresses of this domain that it made itself; all or none (C-44)."""

    owner: str
    addresses: tuple[str, ...]


@final
@attrs.frozen(slots=True)
class Bind:
    """A runtime uses an address that is not the node's to allocate (MN-13, C-43)."""

    owner: str
    address: str


@final
@attrs.frozen(slots=True)
class FreeBlock:
    """Free what was allocated under a key, or one address (M-19, C-46)."""

    owner: str
    key: str


@final
@attrs.frozen(slots=True)
class Free:
    """Free addresses, all or none (M-20)."""

    owner: str
    addresses: tuple[str, ...]


@final
@attrs.frozen(slots=True)
class Release:
    """The owner's session is over: nothing of it stays (I-A7)."""

    owner: str
    why: str


@final
@attrs.frozen(slots=True)
class Move:
    """An address goes from one owner to another in one step, as both want it (SYN-26)."""

    owner: str
    address: str
    to: str


@final
@attrs.frozen(slots=True)
class RuntimeCame:
    """A runtime has a session: what others bound below its address is its own now."""

    runtime: str


Input: TypeAlias = Allocate | Claim | Bind | FreeBlock | Free | Move | Release | RuntimeCame


@final
@attrs.frozen(slots=True)
class Allocated:
    """What was asked for is allocated."""

    addresses: tuple[str, ...]


@final
@attrs.frozen(slots=True)
class Taken:
    """These have an owner from now on."""

    addresses: tuple[str, ...]


@final
@attrs.frozen(slots=True)
class Freed:
    """These are free of their owner now; none of them, if all were unknown."""

    addresses: tuple[str, ...]


Effect: TypeAlias = Step | RowChanged | Allocated | Taken | Freed | Refused
