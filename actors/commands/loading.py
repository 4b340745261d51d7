"""Finds the hyperties that a command line names as NAME=module:Class."""

import re
from importlib import import_module
from typing import Final

import click

from actors.commands.command_error import CommandError
from actors.commands.exit_code import ExitCode
from actors.runtime.hyperty import Hyperty

__all__ = ["check_hyperties", "load_hyperty"]

_FORM: Final = re.compile(r"([A-Za-z0-9_-]+)=([A-Za-z_][\w.]*):([A-Za-z_]\w*)")


def check_hyperties(
    _: click.Context, __: click.Parameter, value: tuple[str, ...]
) -> dict[str, str]:
    """Return `module:Class` by name; refuse another form or a name given twice."""
    found: dict[str, str] = {}
    for one in value:
        match = _FORM.fullmatch(one)
        if match is None:
            raise click.BadParameter(f"{one!r} is not of the form NAME=module:Class")
        if match[1] in found:
            raise click.BadParameter(f"{match[1]!r} is named twice")
        found[match[1]] = f"{match[2]}:{match[3]}"
    return found


def load_hyperty(where: str) -> type[Hyperty]:
    """Import a hyperty's class.

    Raises:
        CommandError: There is none.
    """
    module, _, name = where.partition(":")
    try:
        found: object = vars(import_module(module)).get(name)
    except ImportError as exc:
        raise CommandError(
            f"cannot import {module}: {exc}; correct --hyperty", ExitCode.CONFIGURATION
        ) from exc
    if not isinstance(found, type) or not issubclass(found, Hyperty):
        raise CommandError(
            f"{module} has no hyperty {name!r}; correct --hyperty", ExitCode.CONFIGURATION
        )
    return found
