"""Which hosts are public: others may name them, and this machine may dial them (S15).

What somebody else wrote may lead anywhere. Only what is global by every reading of an
address is public; what embeds an address of the old kind (NAT64, 6to4, Teredo, mapped) is
judged by none of its readings but refused: nobody serves a domain there.
"""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import urlsplit

__all__ = ["host_in", "is_public_address", "is_public_host"]

_EMBEDDING: Final = tuple(
    IPv6Network(text)
    for text in (
        "::/96",
        "::ffff:0:0/96",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2002::/16",
        "2001::/32",
    )
)
"""Where an address of the old kind stands in one of the new (RFC 3056, 4291, 4380, 6052, 8215)."""

_LOCAL_NAMES: Final = ("localhost", "local", "internal", "home.arpa")
"""Names, and ends of names, that mean something on this side of a router only (RFC 6761, 6762)."""


def is_public_address(text: str) -> bool:
    """Tell whether a numeric address may be dialled for somebody else; a name may not."""
    try:
        address: IPv4Address | IPv6Address = ip_address(text)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and any(address in one for one in _EMBEDDING):
        return False
    return address.is_global and not address.is_multicast


def is_public_host(host: str) -> bool:
    """Tell whether a name or number could be public; a name must be looked up to be sure."""
    name = host.rstrip(".").lower()
    if not name or any(name == one or name.endswith(f".{one}") for one in _LOCAL_NAMES):
        return False
    if _is_numeric(name):
        return is_public_address(name)
    return "." in name


def _is_numeric(name: str) -> bool:
    """Tell whether a host is no name: some resolvers read `127.1` and `0x7f000001` as addresses."""
    last = name.rpartition(".")[2]
    return ":" in name or last.isdecimal() or last.startswith("0x")


def host_in(url: str) -> str | None:
    """Return the host of a URL; None: it names none."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
