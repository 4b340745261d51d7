"""Addresses as a person reads them."""

from typing import Final

from specs.addresses.address import parse
from specs.errors import BadUrlError

__all__ = ["short"]

_RUNTIME: Final = "hyperty-runtime"
_NAMELESS: Final = frozenset({"hyperty", "connection"})
"""Schemes whose addresses the node makes up: a UUID each."""

_SHOWN: Final = 8
"""Characters of a UUID that are shown (ours)."""


def short(address: str | None) -> str:
    """Return an address without what is the same in all: `alice/protostub/1`, `hyperty 2eed3d2a`.

    What is no address is returned as it is.
    """
    try:
        url = parse(address or "")
    except BadUrlError:
        return address or "nobody"
    if url.scheme == _RUNTIME:
        return "/".join(url.path)
    if url.scheme in _NAMELESS:
        name, *rest = url.path or ("",)
        return f"{url.scheme} {'/'.join((name[:_SHOWN], *rest))}"
    return "/".join((url.domain, *url.path))
