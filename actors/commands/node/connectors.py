"""Options of what a node relays to: its registry, the global registry, a quality broker."""

from functools import partial
from pathlib import Path
from typing import Final, final

import attrs
import click
from typing_extensions import override

from actors.cli.command_error import CommandError, ExitCode
from actors.cli.topic import Topic, topic_options
from actors.kit.http_client import HttpUrlError, ServerUrl
from actors.node.config import NodeConfig
from actors.node.connectors.back_ends import BackEnds
from actors.node.connectors.global_registry import HttpGlobalRecords
from actors.node.connectors.http_quality import HttpQualityBroker

__all__ = ["ConnectorOptions", "connector_options"]

_URLS: Final = ("http://", "https://")


@final
@attrs.frozen
class ConnectorOptions(Topic):
    """Where records are kept, and which services a node relays to."""

    registry: str | None
    global_registry: str | None
    qos: str | None

    @override
    def applied(self, config: NodeConfig) -> NodeConfig:
        records = _server("--global-registry", self.global_registry)
        broker = _server("--qos", self.qos)
        is_remote = self.registry is not None and self.registry.startswith(_URLS)
        back_ends = BackEnds(
            registry=_server("--registry", self.registry) if is_remote else None,
            global_registry=None if records is None else partial(HttpGlobalRecords, records),
            quality=None if broker is None else partial(HttpQualityBroker, broker),
        )
        file = None if is_remote or self.registry is None else Path(self.registry)
        return attrs.evolve(config, registry=file, back_ends=back_ends)


def _server(option: str, text: str | None) -> ServerUrl | None:
    """Read where a server is.

    Raises:
        CommandError: It is nowhere.
    """
    if text is None:
        return None
    try:
        return ServerUrl.read(text)
    except HttpUrlError as exc:
        raise CommandError(
            f"{exc}; name one with {option}, such as http://127.0.0.1:8080", ExitCode.CONFIGURATION
        ) from exc


def _check_registry(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    """Take the name of a file, or the address of a server."""
    if text is None or text.startswith(_URLS):
        return text
    if "://" in text:
        raise click.BadParameter(f"{text} is neither a file nor http://... or https://...")
    if Path(text).is_dir():
        raise click.BadParameter(f"{text} is a folder; name a file in it")
    return text


connector_options = topic_options(
    ConnectorOptions,
    click.option(
        "--registry",
        metavar="FILE|URL",
        callback=_check_registry,
        help="Domain registry: a SQLite file, or the URL of a server [default: in memory].",
    ),
    click.option(
        "--global-registry", metavar="URL", help="URL of the global registry [default: none]."
    ),
    click.option(
        "--qos", metavar="URL", help="URL of the broker of network resources [default: none]."
    ),
)
"""The options of a node's connectors."""
