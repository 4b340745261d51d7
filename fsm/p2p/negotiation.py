"""The status of a Connection object: its negotiation, and pleas for another link.

A link that does not come back by what both ends know is negotiated anew, by the same two
objects (P2P-16). So that each end can distinguish a fresh offer from an old one, the status of
its object names the negotiation, from the second one on:

    ""                              the first negotiation
    unreachable-<p>                 its reporter pleads to be dialled, for the p-th time
    negotiation-<n>                 the n-th negotiation: all candidates before are void
    negotiation-<n>-unreachable-<p> a plea in it

An end that does not know of negotiations ignores the last two, and the link fails in time.

The one fact by which both ends decide which one yields (P2P-27, I-P20).
"""

import re
from enum import Enum
from typing import Final


class Role(Enum):
    """The role of this runtime at a link."""

    REQUESTER = "requester"
    HANDLER = "handler"


def own_is_smaller(own_runtime: str, remote_runtime: str) -> bool:
    """Return whether the own runtime's address is the smaller one, in byte order.

    When two runtimes ask each other for a link at once, both ends decide alike by this; the
    guards of the tables say what follows.

    Args:
        own_runtime: Address of the own runtime.
        remote_runtime: Address of the other runtime.
    """
    return own_runtime.encode() < remote_runtime.encode()


FIRST: Final = 1
"""The number of a link's first negotiation."""

UNREACHABLE: Final = "unreachable"
"""Begin of the status, or of its end, by which an object's reporter pleads to be dialled."""

_LATER: Final = re.compile(r"negotiation-([1-9][0-9]{0,8})(?:-|\Z)")


def negotiation_of(status: str) -> int:
    """Return the number of the negotiation that an object with this status is of."""
    found = _LATER.match(status)
    return FIRST if found is None else int(found[1])


def is_plea(status: str) -> bool:
    """Return whether the reporter pleads to be dialled."""
    found = _LATER.match(status)
    return status[0 if found is None else found.end() :].startswith(UNREACHABLE)


def beginning(negotiation: int) -> str:
    """Write that a negotiation begins."""
    return "" if negotiation == FIRST else f"negotiation-{negotiation}"


def plea(negotiation: int, count: int) -> str:
    """Write the reporter's request for a new negotiation.

    Args:
        negotiation: Number of the negotiation.
        count: A number that differs in each request.
    """
    begun = beginning(negotiation)
    return f"{begun}-{UNREACHABLE}-{count}" if begun else f"{UNREACHABLE}-{count}"
