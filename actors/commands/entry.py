"""How a process of ours ends: one sentence if something went wrong, and an exit status."""

import sys
from typing import NoReturn

import click

from actors.commands.command_error import CommandError
from actors.commands.exit_code import ExitCode

__all__ = ["enter"]


def enter(command: click.Command) -> NoReturn:
    """Run a command with the arguments of this process and exit with its status."""
    try:
        code = command.main(prog_name="protofly", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except CommandError as error:
        click.echo(f"protofly: {error}", err=True)
        sys.exit(error.code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(ExitCode.INTERRUPTED)
    sys.exit(code if isinstance(code, int) else ExitCode.OK)
