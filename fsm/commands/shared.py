"""Common parts of the commands of `python -m fsm`: machines by name, and JSON lines."""

import json
import sys
from typing import Final, NoReturn, final

import click

from fsm.errors import UnknownMachineError
from fsm.machine_list import MACHINES, table_named
from fsm.table import Table
from specs.jsonvalue import JsonObject
from specs.plain_text import one_line, visible

_USAGE: Final = 2
"""Exit status of a wrong command line."""


@final
class UsageError(click.ClickException):
    """A wrong command line: one sentence, and no usage text around it."""

    exit_code = _USAGE


json_option: Final = click.option(
    "--json", "wants_json", is_flag=True, help="One JSON object per line."
)
"""The option of every command that a script may want to read."""


def machine_named(_ctx: click.Context, _param: click.Parameter, name: str) -> Table:
    """Return the machine of that name: the callback of an argument."""
    return _named(name)


def _named(name: str) -> Table:
    try:
        return table_named(name)
    except UnknownMachineError as error:
        raise UsageError(str(error)) from error


def machines_named(names: tuple[str, ...]) -> tuple[Table, ...]:
    """Return the machines of those names, each once; all if there is none."""
    return tuple(map(_named, dict.fromkeys(names))) or tuple(MACHINES.values())


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, as in `1 finding` and `2 findings`.

    Args:
        number: The number.
        noun: The noun, in the singular.
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def echo(text: str, *, nl: bool = True, err: bool = False) -> None:
    """Print a text, in which traces may have chosen parts; all output of commands goes here.

    Args:
        text: The text; line breaks in it are ours.
        nl: Whether the line ends with it.
        err: Whether it goes to standard error.
    """
    click.echo(visible(text), nl=nl, err=err)


def print_json(*values: JsonObject) -> None:
    """Print one JSON object per line."""
    for value in values:
        echo(json.dumps(value, ensure_ascii=False))


def enter(command: click.Command, name: str) -> NoReturn:
    """Run a program with the arguments of this process and exit with its status.

    Args:
        command: The program.
        name: How it is called.
    """
    try:
        code = command.main(prog_name=name, standalone_mode=False)
    except click.ClickException as error:
        vars(error)["message"] = one_line(error.message)  # values that may be anybody's
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)
