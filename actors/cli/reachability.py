"""Whether a node, and a place for links, are there at all: asked before anything is started."""

from collections.abc import Container

from actors.cli.command_error import CommandError, ExitCode
from transports.errors import ListenError
from transports.link import Kind, Network

__all__ = ["check_host", "check_node"]


async def check_node(network: Network, url: str) -> None:
    """Open a link to a node and close it again.

    Raises:
        DialError: Nobody is there, or no node; within `DIAL_TIMEOUT`.
    """
    link = await network.dial(Kind.WEBSOCKET, url)
    await link.aclose()


async def check_host(network: Network, host: str, kinds: Container[Kind]) -> None:
    """Listen at a host of this machine for a moment, if any kind of P2P link needs one.

    Raises:
        CommandError: Nobody can listen there.
    """
    if Kind.TCP not in kinds and Kind.WEBSOCKET not in kinds:
        return
    try:
        async with network.listen(Kind.TCP, f"{host}:0"):
            pass
    except ListenError as exc:
        raise CommandError(
            f"links to other runtimes cannot be listened for on {host!r}: {exc.reason}; "
            "name an address of this machine with --p2p-host, or take --p2p none",
            ExitCode.CONFIGURATION,
        ) from exc
