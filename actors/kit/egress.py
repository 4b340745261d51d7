"""The choice of the address of a host, made when it is dialled (S15).

A name is looked up once, what it stands for is judged, and that very address is dialled:
a name that means something else a moment later leads nowhere else.
"""

import socket
from abc import ABC, abstractmethod
from typing import Final, final

import trio
from typing_extensions import override

from specs.addresses.address import is_public_address
from specs.errors import PlaceError


@final
class PrivatePlaceError(PlaceError):
    """A host must not be dialled."""

    summary = "{} is not dialled"


class Egress(ABC):
    """Chooses what is dialled for a host."""

    @abstractmethod
    async def place(self, host: str, port: int) -> str:
        """Return the name or number to dial.

        Args:
            host: Name or number of the host.
            port: The port.

        Raises:
            PrivatePlaceError: There is none that may be dialled.
        """


@final
class _Anywhere(Egress):
    """Dials any address: an operator configured it."""

    @override
    async def place(self, host: str, port: int) -> str:
        await trio.lowlevel.checkpoint()
        return host


@final
class _Public(Egress):
    """Dials public addresses only; a host that has any other is refused whole."""

    @override
    async def place(self, host: str, port: int) -> str:
        try:
            found = await trio.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as exc:
            raise PrivatePlaceError(host, "its name cannot be looked up") from exc
        addresses = [str(where[0]).partition("%")[0] for *_, where in found]
        if not addresses or not all(map(is_public_address, addresses)):
            raise PrivatePlaceError(host, "it is in a private network")
        return addresses[0]


ANYWHERE: Final[Egress] = _Anywhere()
"""For what an operator wrote."""

PUBLIC: Final[Egress] = _Public()
"""For addresses that peers chose."""
