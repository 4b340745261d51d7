"""Options of the node's catalogue: how other domains reach its own."""

from pathlib import Path
from typing import final

import attrs
import click
from typing_extensions import override

from actors.cli.command_error import CommandError, ExitCode
from actors.cli.topic import Topic, topic_options
from actors.node.config import NodeConfig
from actors.node.http.config import ShownCatalogue

__all__ = ["CatalogueOptions", "catalogue_options"]


@final
@attrs.frozen
class CatalogueOptions(Topic):
    """Which directory is served as the catalogue of the domain."""

    catalogue: Path | None

    @override
    def applied(self, config: NodeConfig) -> NodeConfig:
        if self.catalogue is None:
            return config
        if config.http is None:
            raise CommandError(
                "--catalogue names what is served over HTTP, but nothing is; add --http",
                ExitCode.CONFIGURATION,
            )
        if not self.catalogue.is_dir():
            raise CommandError(
                f"{self.catalogue} is no directory that can be served; name another with "
                "--catalogue, or fill it with `stub publish`",
                ExitCode.CONFIGURATION,
            )
        shown = ShownCatalogue(config.domain, self.catalogue)
        return attrs.evolve(config, http=attrs.evolve(config.http, catalogue=shown))


catalogue_options = topic_options(
    CatalogueOptions,
    click.option(
        "--catalogue",
        metavar="DIR",
        type=click.Path(file_okay=False, path_type=Path),
        help="Serve this directory, as `stub publish` fills it, at /.well-known/ of --http.",
    ),
)
"""The options of the catalogue."""
