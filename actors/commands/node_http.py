"""Options of the node's HTTP listener: health, readiness, metrics."""

from pathlib import Path
from typing import final

import attrs
import click
from typing_extensions import override

from actors.commands.topic import Topic, topic_options
from actors.node.config import NodeConfig

__all__ = ["HttpOptions", "http_options"]


@final
@attrs.frozen
class HttpOptions(Topic):
    """Where health and metrics are served, and who may read them."""

    http: str | None
    http_token_file: Path | None

    @override
    def applied(self, config: NodeConfig) -> NodeConfig:
        return config


http_options = topic_options(
    HttpOptions,
    click.option(
        "--http",
        metavar="HOST:PORT",
        help="Serve /healthz, /readyz and /metrics there; port 0 picks a free one [default: off].",
    ),
    click.option(
        "--http-token-file",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Who reads /metrics must show the token in this file.",
    ),
)
"""The options of the HTTP listener."""
