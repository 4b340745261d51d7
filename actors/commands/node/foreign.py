"""Options of the node's ways to other domains."""

from pathlib import Path
from types import MappingProxyType
from typing import final

import attrs
import click
from typing_extensions import override

from actors.cli.command_error import CommandError, ExitCode
from actors.cli.options import check_domain
from actors.cli.topic import Topic, topic_options
from actors.commands.foreign import check_foreign
from actors.node.config import NodeConfig
from actors.node.foreign.plan import Endpoint, ForeignPlan
from actors.pipe.plan import Login, nothing
from actors.pipe.process import open_process_room
from actors.runtime.stubs.credentials import TokenFile, TokenFileError

__all__ = ["ForeignOptions", "foreign_options"]


@final
@attrs.frozen
class ForeignOptions(Topic):
    """Which other domains messages are carried to, and what their nodes are shown."""

    foreign: dict[str, str]
    foreign_token_file: dict[str, str]

    @override
    def applied(self, config: NodeConfig) -> NodeConfig:
        for domain in self.foreign_token_file:
            if domain not in self.foreign:
                raise CommandError(
                    f"--foreign-token-file names what the node of {domain} is shown, but there "
                    f"is no way to it; add --foreign {domain}=URL",
                    ExitCode.CONFIGURATION,
                )
        if config.domain in self.foreign:
            raise CommandError(
                f"--foreign names {config.domain}, which is the node's own domain; remove it",
                ExitCode.CONFIGURATION,
            )
        if not self.foreign:
            return config
        domains = {one: Endpoint(url, self._login(one)) for one, url in self.foreign.items()}
        plan = ForeignPlan(MappingProxyType(domains), open_process_room)
        return attrs.evolve(config, foreign=plan)

    def _login(self, domain: str) -> Login:
        """Return what reads the token for a domain; it has been read once, to be sure."""
        path = self.foreign_token_file.get(domain)
        if path is None:
            return nothing
        file = TokenFile(Path(path))
        try:
            file.read()
        except TokenFileError as exc:
            raise CommandError(
                f"cannot use the token file {path}: {exc}; put a token for {domain} into it, "
                "or name another with --foreign-token-file",
                ExitCode.CONFIGURATION,
            ) from exc
        return file.fresh


def _check_files(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Return files by domain; refuse what is no `DOMAIN=FILE`."""
    files: dict[str, str] = {}
    for value in values:
        name, separator, path = value.partition("=")
        if not separator or not path:
            raise click.BadParameter(f"{value!r} is no DOMAIN=FILE such as b.example=b.token")
        files[check_domain(ctx, param, name)] = path
    return files


foreign_options = topic_options(
    ForeignOptions,
    click.option(
        "--foreign",
        metavar="DOMAIN=URL",
        multiple=True,
        callback=check_foreign,
        help="Carry messages for this domain to its node, such as "
        "b.example=ws://host:4123/link; repeatable, in a file a table of URLs by domain.",
    ),
    click.option(
        "--foreign-token-file",
        metavar="DOMAIN=FILE",
        multiple=True,
        callback=_check_files,
        help="Login token for the node of this domain, bound to this node; it is read again "
        "for each session. Repeatable, in a file a table by domain.",
    ),
)
"""The options of the ways to other domains."""
