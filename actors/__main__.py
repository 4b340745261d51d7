"""The command `python -m actors`, also installed as `protofly`."""

import click

from actors.commands.entry import enter
from actors.commands.group import CommandGroup

__all__ = ["main"]


@click.group(cls=CommandGroup, context_settings={"auto_envvar_prefix": "PROTOFLY"})
@click.version_option(package_name="protofly")
def _commands() -> None:
    """Hyperty messaging on Trio: a message node, runtimes, and links between them.

    An option may stand on the command line, in the environment (PROTOFLY_NODE_DOMAIN
    for --domain of the node) or in the file that --config names; the first wins.
    """


def main() -> None:
    """Run the command that was asked for and exit with its status."""
    enter(_commands)


if __name__ == "__main__":
    main()
