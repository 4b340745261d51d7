"""Options of health and metrics over HTTP, of a node or a runtime."""

from functools import wraps
from pathlib import Path
from typing import Final

import click

from actors.cli.command_error import CommandError
from actors.cli.options import Handler, check_place
from actors.http.config import HttpConfig
from specs.limits.protocol import HTTP_TOKEN_CHARS

HTTP_OPTIONS: Final = (
    click.option(
        "--http",
        metavar="HOST:PORT",
        callback=check_place,
        help="Address of /healthz, /readyz, /metrics and, of a node, /dashboard; port 0 picks a "
        "free one [default: off].",
    ),
    click.option(
        "--http-token-file",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help="File with the token that readers of /metrics and /dashboard must send.",
    ),
)
"""`--http` and `--http-token-file`, in the order of `--help`."""


def http_config(place: str | None, token_file: Path | None) -> HttpConfig | None:
    """Return the configuration that the options state; None: no HTTP service.

    Args:
        place: Value of `--http`.
        token_file: Value of `--http-token-file`.

    Raises:
        CommandError: The token cannot be used, or protects nothing.
    """
    if place is not None:
        return HttpConfig(place, None if token_file is None else _token(token_file))
    if token_file is not None:
        raise CommandError("--http-token-file protects metrics, but none are served; add --http")
    return None


def _token(file: Path) -> bytes:
    try:
        token = file.read_bytes().strip()
    except OSError as exc:
        raise CommandError(
            f"cannot read {file}: {exc.strerror}; name another file with --http-token-file"
        ) from exc
    if len(token) < HTTP_TOKEN_CHARS or b"\n" in token:
        raise CommandError(
            f"{file} holds no token: one line of at least {HTTP_TOKEN_CHARS} characters "
            "is wanted; make one with: openssl rand -hex 32"
        )
    return token


def http_options(command: Handler) -> Handler:
    """Add `--http` and `--http-token-file`; the command gets `http`, an `HttpConfig` or None."""

    @wraps(command)
    def served(*, http: str | None, http_token_file: Path | None, **values: object) -> int:
        return command(http=http_config(http, http_token_file), **values)

    made: Handler = served
    for option in reversed(HTTP_OPTIONS):
        made = option(made)
    return made
