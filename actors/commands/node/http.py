"""Options of the node's HTTP listener: health, readiness, metrics, sessions."""

from pathlib import Path
from typing import final

import attrs
import click
from typing_extensions import override

from actors.cli.command_error import CommandError, ExitCode
from actors.cli.options import check_place
from actors.cli.topic import Topic, topic_options
from actors.node.config import NodeConfig
from actors.node.http.config import HttpConfig
from specs.limits.protocol import HTTP_TOKEN_CHARS

__all__ = ["HttpOptions", "http_options"]


@final
@attrs.frozen
class HttpOptions(Topic):
    """Where health and metrics are served, and who may read them."""

    http: str | None
    http_token_file: Path | None
    rest: bool

    @override
    def applied(self, config: NodeConfig) -> NodeConfig:
        if self.http is None:
            if self.rest:
                raise CommandError(
                    "--rest serves runtimes over HTTP, but no place for that is named; add --http",
                    ExitCode.CONFIGURATION,
                )
            if self.http_token_file is None:
                return config
            raise CommandError(
                "--http-token-file names who may read metrics, but none are served; add --http",
                ExitCode.CONFIGURATION,
            )
        token = None if self.http_token_file is None else _token(self.http_token_file)
        return attrs.evolve(config, http=HttpConfig(self.http, token, self.rest))


def _token(file: Path) -> bytes:
    try:
        token = file.read_bytes().strip()
    except OSError as exc:
        raise CommandError(
            f"cannot read {file}: {exc.strerror}; name another file with --http-token-file",
            ExitCode.CONFIGURATION,
        ) from exc
    if len(token) < HTTP_TOKEN_CHARS or b"\n" in token:
        raise CommandError(
            f"{file} holds no token: one line of at least {HTTP_TOKEN_CHARS} characters "
            "is wanted; make one with: openssl rand -hex 32",
            ExitCode.CONFIGURATION,
        )
    return token


http_options = topic_options(
    HttpOptions,
    click.option(
        "--http",
        metavar="HOST:PORT",
        callback=check_place,
        help="Address of /healthz, /readyz and /metrics; port 0 picks a free one [default: off].",
    ),
    click.option(
        "--http-token-file",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help="File with the token that readers of /metrics must send.",
    ),
    click.option(
        "--rest",
        is_flag=True,
        help="Serve sessions of runtimes over HTTP: /rest/session, /rest/messages.",
    ),
)
"""The options of the HTTP listener."""
