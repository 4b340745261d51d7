"""Options of the node's ways to other domains."""

from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import final

import attrs
import click
import structlog
from typing_extensions import override

from actors.commands.command_error import CommandError
from actors.commands.exit_code import ExitCode
from actors.commands.foreign import check_foreign
from actors.commands.topic import Topic, topic_options
from actors.node.config import NodeConfig
from actors.node.foreign.plan import Endpoint, ForeignPlan
from actors.pipe.process import open_process_room
from specs.limits import MAX_JSON_TEXT

__all__ = ["ForeignOptions", "foreign_options"]

_log = structlog.get_logger("actors.commands")


@final
@attrs.frozen
class ForeignOptions(Topic):
    """Which other domains messages are carried to, and what their nodes are shown."""

    foreign: dict[str, str]
    foreign_token_file: Path | None

    @override
    def applied(self, config: NodeConfig) -> NodeConfig:
        if not self.foreign:
            if self.foreign_token_file is None:
                return config
            raise CommandError(
                "--foreign-token-file names what other nodes are shown, but there are none; "
                "add --foreign",
                ExitCode.CONFIGURATION,
            )
        if config.domain in self.foreign:
            raise CommandError(
                f"--foreign names {config.domain}, which is the node's own domain; remove it",
                ExitCode.CONFIGURATION,
            )
        file = self.foreign_token_file
        if file is not None:
            _token(file)
        token = None if file is None else partial(_fresh, file)
        domains = {domain: Endpoint(url, token) for domain, url in self.foreign.items()}
        plan = ForeignPlan(MappingProxyType(domains), open_process_room)
        return attrs.evolve(config, foreign=plan)


def _fresh(file: Path) -> str | None:
    """Return what the file holds now; None, and a line in the log, if it holds no token."""
    try:
        return _token(file)
    except CommandError as exc:
        _log.warning("token file", path=str(file), why=str(exc))
        return None


def _token(file: Path) -> str:
    try:
        token = file.read_text(encoding="ascii").strip()
    except OSError as exc:
        raise CommandError(
            f"cannot read {file}: {exc.strerror}; name another file with --foreign-token-file",
            ExitCode.CONFIGURATION,
        ) from exc
    except UnicodeDecodeError:
        token = ""
    if not token or len(token) > MAX_JSON_TEXT or not token.isprintable():
        raise CommandError(
            f"{file} holds no token in one line; name another file with --foreign-token-file",
            ExitCode.CONFIGURATION,
        )
    return token


foreign_options = topic_options(
    ForeignOptions,
    click.option(
        "--foreign",
        metavar="DOMAIN=URL",
        multiple=True,
        callback=check_foreign,
        help="Carry messages for this other domain to its node, such as "
        "b.example=ws://host:4123/link; repeatable, in a file a table of URLs by domain.",
    ),
    click.option(
        "--foreign-token-file",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Login token that this node shows the nodes of other domains; keep it fresh, it is "
        "read again for each session.",
    ),
)
"""The options of the ways to other domains."""
