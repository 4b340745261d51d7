"""Whether a node is there at all: asked before anything is started."""

from transports.link import Kind
from transports.network import Network

__all__ = ["check_node"]


async def check_node(network: Network, url: str) -> None:
    """Open a link to a node and close it again.

    Raises:
        DialError: Nobody is there, or no node; within `DIAL_TIMEOUT`.
    """
    link = await network.dial(Kind.WEBSOCKET, url)
    await link.aclose()
