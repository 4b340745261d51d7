"""The network of who has none."""

from contextlib import AbstractAsyncContextManager
from typing import Final, final

import trio
from typing_extensions import override

from transports.errors import DialError, ListenError
from transports.gate import EVERYBODY, Gate
from transports.link import PROTOFLY_V1, Kind, Link, Listener
from transports.network import DEFAULT_DOORS, Doors, Network

__all__ = ["NO_NETWORK"]

_NONE: Final = "there is no network here"


@final
class _NoNetwork(Network):
    """Neither dials nor listens."""

    @override
    async def dial(self, kind: Kind, address: str, subprotocol: str | None = PROTOFLY_V1) -> Link:
        await trio.lowlevel.checkpoint()
        raise DialError(address, _NONE)

    @override
    def listen(
        self, kind: Kind, where: str, doors: Doors = DEFAULT_DOORS, gate: Gate = EVERYBODY
    ) -> AbstractAsyncContextManager[Listener]:
        raise ListenError(where, _NONE)


NO_NETWORK: Final[Network] = _NoNetwork()
"""Leads nowhere."""
