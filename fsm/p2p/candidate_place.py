"""From where a candidate can be reached, and the proof that two ends are on one machine (T10).

A candidate is written by somebody else: `10.0.0.7:22` in it would have this end try a port
of its own network, and `127.0.0.1:22` one of its own machine.
"""

import hmac
from enum import Enum, unique
from ipaddress import IPv6Address, ip_address
from typing import Final

from specs.addresses.host import host_in, is_public_address, is_public_host
from specs.bodies.sync import Candidate

__all__ = ["Place", "machine_proof", "place_of"]

_UNIX: Final = "unix"
_LOCALHOST: Final = "localhost"
_PROOF_CHARACTERS: Final = 32
"""128 bits in hexadecimal digits."""


@unique
class Place(Enum):
    """From where an address leads to the same place."""

    MACHINE = "machine"
    """From this machine only."""

    NETWORK = "network"
    """From the same network, or it is a name, which may stand for anything."""

    ANYWHERE = "anywhere"

    NOWHERE = "nowhere"
    """It is no address of anybody, or of more than one kind at once."""


def place_of(kind: str, address: str) -> Place:
    """Return from where a candidate's address can be reached."""
    if kind == _UNIX:
        return Place.MACHINE
    host = host_in(address if "://" in address else f"//{address}")
    if not host:
        return Place.NOWHERE
    if is_public_address(host):
        return Place.ANYWHERE
    return Place.MACHINE if host == _LOCALHOST else _place_of_host(host)


def _place_of_host(host: str) -> Place:
    try:
        address = ip_address(host)
    except ValueError:
        # Some resolvers read `127.1` and `0x7f000001` as addresses.
        is_name = host[0].isalpha() or is_public_host(host)
        return Place.NETWORK if is_name else Place.NOWHERE
    if address.is_loopback:
        return Place.MACHINE
    is_mapped = isinstance(address, IPv6Address) and address.ipv4_mapped is not None
    is_odd = address.is_unspecified or address.is_multicast or address.is_global or is_mapped
    return Place.NOWHERE if is_odd else Place.NETWORK


def machine_proof(machine: bytes, candidate: Candidate) -> str:
    """Return what only a process of one machine can say of a candidate.

    Args:
        machine: What the processes of that machine have in common, and tell nobody.
        candidate: Whose address and secret it is made over: it is of no use for another.
    """
    told = f"protofly-machine/1|{candidate.kind}|{candidate.address}|{candidate.secret}"
    return hmac.new(machine, told.encode(), "sha256").hexdigest()[:_PROOF_CHARACTERS]
