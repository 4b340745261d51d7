"""Access of a command's runtime to its node: reachability, credentials and login."""

import os
import shlex
import ssl
from collections.abc import Container
from pathlib import Path
from typing import Final

from actors.cli.group import CommandError, ExitCode, advise_on
from actors.cli.options import group, option
from actors.runtime.runtime import Runtime
from actors.runtime.stubs import credentials, token_sources
from specs.reply_code import Code
from transports import errors, tls
from transports.link import Kind, Network


async def check_node(network: Network, url: str | None) -> None:
    """Open a link to a node and close it again; a domain without a node has none to be tried.

    Args:
        network: Network that opens links.
        url: URL of the node; None: there is none.

    Raises:
        DialError: No process listens there, or it is no node; within `DIAL_TIMEOUT`.
    """
    if url is not None:
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
    if not any(kind in kinds for kind in (Kind.TCP, Kind.WEBSOCKET, Kind.WEBRTC)):
        return
    what = f"links to other runtimes cannot be listened for on {host!r}"
    advice = "name an address of this machine with --p2p-host, or take --p2p none"
    with advise_on(errors.ListenError, what=what, advice=advice):
        async with network.listen(Kind.TCP, f"{host}:0"):
            pass


_ADVICE: Final = {
    Code.UNAUTHENTICATED: (
        ExitCode.REFUSED,
        "correct --node and --domain, or bring a fresh token with --token-file or --token-url",
    ),
    Code.FORBIDDEN: (ExitCode.REFUSED, "ask the operator of the node to permit it"),
    Code.CONFLICT: (ExitCode.REFUSED, "take another --name, or try again later"),
    Code.UNAVAILABLE: (ExitCode.CANNOT_CONNECT, "try again"),
    Code.TIMEOUT: (ExitCode.TIMEOUT, "try again"),
}
"""Exit status and advice, by the reply code of the node."""

_FAILED: Final = ExitCode.FAILED, "see the log of the node"

_VARIABLE: Final = "PROTOFLY_CLIENT_SECRET"
"""Variable of the environment with the secret of the client; no option may show it."""


def _credentials(  # noqa: PLR0913 - one for each option
    *,
    token_file: Path | None = option(),
    token_command: str | None = option("COMMAND"),
    token_url: str | None = option("URL"),
    client_id: str | None = option("TEXT"),
    client_secret_file: Path | None = option(
        text=f"File with the secret of the client [default: the variable {_VARIABLE}]."
    ),
    refresh_token_file: Path | None = option(),
    token_scope: str | None = option("TEXT"),
    token_audience: str | None = option("TEXT"),
    ca: Path | None,
) -> credentials.Credentials:
    """Return the source of tokens for the login at a node.

    Args:
        token_file: Log in at the node with the token in this file, read again for each new session.
        token_command: Log in with the first line that this command prints; run for each new
            session.
        token_url: Log in with a token of this OAuth 2.0 token endpoint, asked for each new session.
        client_id: Name of the client there.
        refresh_token_file: Ask with the refresh token in this file, which new ones replace
            [default: as the client itself].
        token_scope: Scope to ask for there.
        token_audience: Audience to ask for there [default: the domain of the node].
    """
    sources = {
        "--token-file": token_file,
        "--token-command": token_command,
        "--token-url": token_url,
    }
    if len(named := [name for name, value in sources.items() if value is not None]) > 1:
        raise CommandError(f"{' and '.join(named)} exclude each other", ExitCode.USAGE)
    more = {
        "--client-id": client_id,
        "--client-secret-file": client_secret_file,
        "--refresh-token-file": refresh_token_file,
        "--token-scope": token_scope,
        "--token-audience": token_audience,
    }
    first = next((name for name, value in more.items() if value is not None), None)
    if token_url is None and first is not None:
        raise CommandError(f"{first} needs a token endpoint; add --token-url", ExitCode.USAGE)
    if token_url is not None and client_id is None:
        raise CommandError("--token-url needs a client; add --client-id", ExitCode.USAGE)
    try:
        if token_file is not None:
            file = credentials.TokenFile(token_file)
            file.read()
            return file
        if token_command is not None:
            return token_sources.TokenCommand(shlex.split(token_command))
        if token_url is not None:
            endpoint = token_sources.OAuthCredentials(
                url=token_url,
                client_id=client_id or "",
                secret=client_secret_file or os.environ.get(_VARIABLE),
                refresh=refresh_token_file,
                scope=token_scope,
                audience=token_audience,
                tls=_more_trust(ca),
            )
            endpoint.check()
            return endpoint
    except credentials.CredentialsError as exc:
        raise CommandError(f"{exc.reason}; {_SOURCES}") from exc
    except ValueError as exc:
        raise CommandError(f"--token-command is no command: {exc}", ExitCode.USAGE) from exc
    return credentials.NO_CREDENTIALS


CREDENTIALS: Final = group(_credentials)
"""The options of the login, as `Credentials`; the token endpoint needs the `ca` of `CLIENT_TLS`."""


def _more_trust(ca: Path | None) -> ssl.SSLContext | None:
    """Return what servers of others are dialled with; None: as the operating system has it.

    Args:
        ca: PEM file of authorities that are trusted beside those of the operating system.
    """
    if ca is None:
        return None
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(ca)
    except OSError as exc:
        raise CommandError(f"cannot use the authorities in {ca}: {exc}; correct --ca") from exc
    return context


_SOURCES: Final = (
    "put a token into the --token-file, such as `token issue` makes, or correct --token-url, "
    "--client-secret-file and --refresh-token-file"
)


async def enter(runtime: Runtime) -> None:
    """Have the session with the node opened before anything else.

    Raises:
        CommandError: The node does not let the runtime in.
    """
    try:
        await runtime.enter()
    except credentials.SessionError as exc:
        known = exc.code in set(Code)
        code, advice = _ADVICE.get(Code(exc.code), _FAILED) if known else _FAILED
        if tls.NOT_ACCEPTED in str(exc):
            advice = "name its authority with --ca"
        raise CommandError(f"{exc}; {advice}", code) from exc
