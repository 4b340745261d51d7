"""Where catalogues are read: the seam, and one in memory.

A source gives bytes by path, `.well-known/<type>/<name>`, and vouches for nothing: what it
gives is believed for its signature only.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final, final

import trio
from typing_extensions import override

from actors.catalogue.errors import NotServedError, SourceAwayError
from specs.addresses.descriptor import WELL_KNOWN

__all__ = ["DOMAIN_KEYS", "LISTING", "REVOKED", "MemorySource", "Source", "package_path"]

DOMAIN_KEYS: Final = f"{WELL_KNOWN}/actors.json"
"""The public keys of the domain: a JSON Web Key Set (T12)."""

REVOKED: Final = f"{WELL_KNOWN}/actors-revoked.jws"
"""The domain's signed list of what is revoked (T14)."""

LISTING: Final = f"{WELL_KNOWN}/actors-catalogue.json"
"""What stands there, for people; nobody signed it."""


def package_path(sha256: str) -> str:
    """Return where a package stands: its name is its hash, so no other can take its place."""
    return f"{WELL_KNOWN}/sourcepackage/{sha256}"


class Source(ABC):
    """A catalogue, wherever it is.

    Attributes:
        name: What an operator calls it.
        proves_domain: Whether what it gives surely comes from the place it is named after.
    """

    name: str
    proves_domain: bool

    @abstractmethod
    async def read(self, path: str, limit: int) -> bytes:
        """Return what stands at a path.

        Args:
            path: As the functions and names of this module give it.
            limit: Bytes it may have; no more than one beyond that is ever read.

        Cancelled: nothing is left open.

        Raises:
            NotServedError: Nothing stands there.
            SourceAwayError: It cannot be read, or is larger.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Let go of what was opened."""


@final
class MemorySource(Source):
    """A catalogue in memory, for programs that bring their own.

    Args:
        files: What stands where; whoever made it may change it.
    """

    proves_domain = True

    def __init__(self, name: str, files: Mapping[str, bytes]) -> None:
        self.name = name
        self._files = files

    @override
    async def read(self, path: str, limit: int) -> bytes:
        await trio.lowlevel.checkpoint()
        content = self._files.get(path)
        if content is None:
            raise NotServedError(self.name, path)
        if len(content) > limit:
            raise SourceAwayError(self.name, f"{path} is larger than {limit} bytes")
        return content

    @override
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
