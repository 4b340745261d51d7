"""`python -m actors token`: keys and login tokens, for development."""

from importlib import import_module
from types import MappingProxyType
from typing import Final

import click
from typing_extensions import override

__all__ = ["command"]

_SUMMARIES: Final = MappingProxyType(
    {
        "keys": "Make a key that signs tokens, and the set of public keys.",
        "issue": "Make a token and print it.",
        "show": "Show what a token claims, and why a node would refuse it.",
    }
)


class _TokenGroup(click.Group):
    """Finds a command in `actors.commands.token_<name>`, imported when it is called."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_SUMMARIES)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _SUMMARIES:
            return None
        command = import_module(f"actors.commands.token_{cmd_name}").command
        return command if isinstance(command, click.Command) else None

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_SUMMARIES.items()))


@click.group("token", cls=_TokenGroup)
def command() -> None:
    """Make keys and login tokens for development.

    A node started with --jwks takes such tokens; in production an identity provider
    makes them.
    """
