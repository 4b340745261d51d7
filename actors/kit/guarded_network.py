"""Network wrapper for stubs from other domains: it dials only public addresses (S15).

The operator has not approved the addresses in another domain's stub descriptor. So at each dial the
host name is resolved, and the resolved address is checked and dialled. For `wss:` the name is
dialled, so it is resolved a second time: a server at another address gets the first message of a
TLS handshake, and nothing else, as it has no certificate of the name. `NO_NETWORK` is for code that
may not dial at all.
"""

import ssl
from contextlib import AbstractAsyncContextManager
from typing import Final

import trio
from typing_extensions import override

from actors.kit.http_client import Egress, PrivatePlaceError
from transports import link
from transports.errors import DialError
from transports.urls import join_host_port, read_host_port, read_websocket_url


class _NoNetwork(link.Network):
    """Network that refuses to dial and to listen, for code without network access."""

    @override
    async def dial(
        self,
        kind: link.Kind,
        address: str,
        subprotocol: str | None = link.PROTOFLY_V1,
        tls: ssl.SSLContext | None = None,
    ) -> link.Link:
        await trio.lowlevel.checkpoint()
        raise DialError(address, self.no_listening)


NO_NETWORK: Final[link.Network] = _NoNetwork()
"""The network for code that may neither dial nor listen."""


class GuardedNetwork(link.Network):
    """Network that dials only the addresses which a check permits.

    Args:
        network: The network that dials.
        egress: Resolves and checks the host of each dial.
    """

    def __init__(self, network: link.Network, egress: Egress) -> None:
        self._network = network
        self._egress = egress

    @override
    async def dial(
        self,
        kind: link.Kind,
        address: str,
        subprotocol: str | None = link.PROTOFLY_V1,
        tls: ssl.SSLContext | None = None,
    ) -> link.Link:
        if kind is link.Kind.UNIX:
            raise DialError(address, "another domain has named a place on this machine")
        try:
            place = await self._place(kind, address)
        except PrivatePlaceError as exc:
            raise DialError(address, exc.reason) from exc
        except ValueError as exc:
            raise DialError(address, str(exc)) from exc
        return await self._network.dial(kind, place, subprotocol, tls)

    @override
    def listen(
        self,
        kind: link.Kind,
        where: str,
        paths: link.ServedPaths = link.DEFAULT_PATHS,
        gate: link.Gate = link.EVERYBODY,
    ) -> AbstractAsyncContextManager[link.Listener]:
        return self._network.listen(kind, where, paths, gate)

    @override
    def negotiate(self, terms: link.ChannelTerms) -> AbstractAsyncContextManager[link.ChannelEnd]:
        return self._network.negotiate(terms)

    async def _place(self, kind: link.Kind, address: str) -> str:
        """Return the address with a checked IP address as host; a WebSocket server sees it, too."""
        if kind is link.Kind.WEBSOCKET:
            url = read_websocket_url(address)
            host = await self._egress(url.host, url.port)
            if url.scheme == "wss":
                # Its certificate is of the name; a server at a newly resolved address has none.
                return address
            return f"ws://{join_host_port(host, url.port)}{url.target}"
        name, port = read_host_port(address)
        return join_host_port(await self._egress(name, port), port)
