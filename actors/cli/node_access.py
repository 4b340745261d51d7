"""Access of a command's runtime to its node: reachability, credentials and login."""

from collections.abc import Container
from pathlib import Path
from typing import Final

import click

from actors.cli.command_error import CommandError, ExitCode
from actors.runtime.runtime import Runtime
from actors.runtime.stubs.credentials import (
    NO_CREDENTIALS,
    Credentials,
    SessionError,
    TokenFile,
    TokenFileError,
)
from specs.reply_code import Code
from transports.errors import ListenError
from transports.link import Kind, Network

__all__ = ["check_host", "check_node", "credentials_of", "enter", "token_option"]


async def check_node(network: Network, url: str) -> None:
    """Open a link to a node and close it again.

    Args:
        network: Network that opens links.
        url: URL of the node.

    Raises:
        DialError: No process listens there, or it is no node; within `DIAL_TIMEOUT`.
    """
    link = await network.dial(Kind.WEBSOCKET, url)
    await link.aclose()


async def check_host(network: Network, host: str, kinds: Container[Kind]) -> None:
    """Listen at a host of this machine for a moment, if any kind of P2P link needs one.

    Args:
        network: Network that opens links.
        host: Name or number of the host.
        kinds: Kinds of links.

    Raises:
        CommandError: The place cannot be listened on.
    """
    if Kind.TCP not in kinds and Kind.WEBSOCKET not in kinds:
        return
    try:
        async with network.listen(Kind.TCP, f"{host}:0"):
            pass
    except ListenError as exc:
        raise CommandError(
            f"links to other runtimes cannot be listened for on {host!r}: {exc.reason}; "
            "name an address of this machine with --p2p-host, or take --p2p none"
        ) from exc


_ADVICE: Final = {
    Code.UNAUTHENTICATED: (
        ExitCode.REFUSED,
        "correct --node and --domain, or bring a fresh token with --token-file",
    ),
    Code.FORBIDDEN: (ExitCode.REFUSED, "ask the operator of the node to permit it"),
    Code.UNAVAILABLE: (ExitCode.CANNOT_CONNECT, "try again"),
    Code.TIMEOUT: (ExitCode.TIMEOUT, "try again"),
}
"""Exit status and advice, by the reply code of the node."""

_FAILED: Final = ExitCode.FAILED, "see the log of the node"

token_option = click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Log in at the node with the token in this file, read again for each new session.",
)
"""The option `--token-file FILE`."""


def credentials_of(token_file: Path | None) -> Credentials:
    """Return what a runtime logs in with.

    Raises:
        CommandError: The file holds no token.
    """
    if token_file is None:
        return NO_CREDENTIALS
    source = TokenFile(token_file)
    try:
        source.read()
    except TokenFileError as exc:
        raise CommandError(
            f"cannot use the token file {token_file}: {exc}; "
            "put a token into it, such as `token issue` makes"
        ) from exc
    return source


async def enter(runtime: Runtime) -> None:
    """Have the session with the node opened before anything else.

    Raises:
        CommandError: The node does not let the runtime in.
    """
    try:
        await runtime.enter()
    except SessionError as exc:
        known = exc.code in set(Code)
        code, advice = _ADVICE.get(Code(exc.code), _FAILED) if known else _FAILED
        raise CommandError(f"{exc}; {advice}", code) from exc
