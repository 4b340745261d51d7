"""A command that is a group of commands: knows their names, imports the one that is called."""

from collections.abc import Mapping
from importlib import import_module

import click
from typing_extensions import override

__all__ = ["subgroup"]


class _Subgroup(click.Group):
    """Finds a command in `actors.commands.<group>_<name>`, where it is called `command`."""

    summaries: Mapping[str, str]

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.summaries)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.summaries:
            return None
        command = import_module(f"actors.commands.{self.name}_{cmd_name}").command
        return command if isinstance(command, click.Command) else None

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.summaries.items()))


def subgroup(name: str, summaries: Mapping[str, str], told: str) -> click.Group:
    """Make a group.

    Args:
        name: What it is called.
        summaries: Its commands, and what `--help` says of each.
        told: What `--help` says of it.
    """
    group = _Subgroup(name, help=told)
    group.summaries = summaries
    return group
