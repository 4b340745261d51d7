"""The group of commands: knows their names and summaries, imports the one that is called."""

from importlib import import_module
from types import MappingProxyType
from typing import Final

import click
from typing_extensions import override

__all__ = ["SUMMARIES", "CommandGroup"]

SUMMARIES: Final = MappingProxyType(
    {
        "demo": "Show everything at work: node, two runtimes, link, cut, verdict.",
        "node": "Run the message node of a domain.",
        "play": "Play scenario files against nodes and runtimes under a virtual clock.",
        "request": "Ask an address once and print the answer.",
        "runtime": "Run a hyperty runtime.",
    }
)
"""Commands and what `--help` says of them. The module of each has its name."""


class CommandGroup(click.Group):
    """Finds a command in `actors.commands.<name>`, where it is called `command`."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUMMARIES)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUMMARIES:
            return None
        command = import_module(f"actors.commands.{cmd_name}").command
        return command if isinstance(command, click.Command) else None

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))
