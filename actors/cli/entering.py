"""How a runtime of a command logs in at its node, and what becomes of it if that fails."""

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

__all__ = ["credentials_of", "enter", "token_option"]

_ADVICE: Final = {
    Code.UNAUTHENTICATED: (
        ExitCode.REFUSED,
        "correct --node and --domain, or bring a fresh token with --token-file",
    ),
    Code.FORBIDDEN: (ExitCode.REFUSED, "ask whoever runs the node to permit it"),
    Code.UNAVAILABLE: (ExitCode.CANNOT_CONNECT, "try again"),
    Code.TIMEOUT: (ExitCode.TIMEOUT, "try again"),
}
"""By what the node answered, the exit status and what to do."""

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
            "put a token into it, such as `token issue` makes",
            ExitCode.CONFIGURATION,
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
