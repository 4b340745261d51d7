"""The command `python -m actors`, also installed as `protofly`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from actors.cli.config_file import enter
from actors.cli.group import SETTINGS, CommandGroup, echo


def _show_version(ctx: click.Context, _: click.Parameter, wanted: object) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from importlib import metadata  # noqa: PLC0415 - slow to import

    try:
        version = metadata.version("protofly")
    except metadata.PackageNotFoundError:
        version = "run from its source, not installed"
    click.echo(f"protofly {version}")
    ctx.exit()


def _help_of(command: click.Command, ctx: click.Context) -> Iterator[str]:
    """Yield the help of a command, and of all commands below it."""
    yield command.get_help(ctx)
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            below = command.get_command(ctx, name)
            if below is not None:
                inner = click.Context(below, ctx, name, **below.context_settings)
                yield from _help_of(below, inner)


def _show_all_help(ctx: click.Context, _: click.Parameter, wanted: object) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    for text in _help_of(ctx.command, ctx):
        echo(*text.splitlines(), "")
    ctx.exit()


@click.group(cls=CommandGroup, context_settings=SETTINGS)
@click.option(
    "--help-all",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all_help,
    help="Show the help of all commands and exit.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def _commands() -> None:
    """Hyperty messaging on Trio: a message node, runtimes, and links between them.

    An option may stand on the command line, in the environment (PROTOFLY_NODE_DOMAIN
    for --domain of the node) or in the file that --config names; the first wins.
    """


def main(given: object = None) -> None:
    """Run the requested command and exit with its status.

    Args:
        given: Object for the context of the command; None: none.
    """
    if not sys.flags.safe_path and str(Path.cwd()) not in sys.path:
        # As under `python -m`, so that commands can name hyperties by their modules.
        sys.path.append(str(Path.cwd()))
    enter(_commands, given)


if __name__ == "__main__":
    main()
