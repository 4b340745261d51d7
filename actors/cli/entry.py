"""The end of a command: an exit status, and one sentence if something went wrong."""

import sys
from typing import NoReturn

import click

from actors.cli.command_error import CommandError, ExitCode
from actors.cli.config_file import misconfigured
from actors.cli.echo import echo
from specs.plain_text import one_line


def enter(command: click.Command, given: object = None) -> NoReturn:
    """Run a command with the arguments of this process and exit with its status.

    Args:
        command: The command.
        given: What the command finds in its context (`find_object`); None: nothing.
    """
    try:
        code = command.main(prog_name="protofly", standalone_mode=False, obj=given)
    except click.ClickException as error:
        explained = misconfigured(error)
        if explained is None:
            vars(error)["message"] = one_line(error.message)  # values that may be anybody's
            error.show()
            sys.exit(error.exit_code)
        _fail(explained)
    except CommandError as error:
        _fail(error)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(ExitCode.INTERRUPTED)
    sys.exit(code if isinstance(code, int) else ExitCode.OK)


def _fail(error: CommandError) -> NoReturn:
    echo(f"protofly: {error}", err=True)
    sys.exit(error.code)
