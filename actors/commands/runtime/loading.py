"""Finds the hyperties that a command line names as NAME=module:Class."""

import re
from importlib import import_module
from inspect import signature
from typing import Final

import click
import structlog

from actors.cli.command_error import CommandError, ExitCode
from actors.kit.supervision.crash import Crash
from actors.runtime.hyperty.hyperty import Hyperty

__all__ = ["check_hyperties", "crashed", "load_hyperty"]

_log = structlog.get_logger("actors.commands")

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
    found: object = None
    with Crash() as crash:
        found = vars(import_module(module)).get(name)
    if isinstance(crash.error, ImportError):
        raise CommandError(
            f"cannot import {module}: {crash.error}; correct --hyperty", ExitCode.CONFIGURATION
        ) from crash.error
    if crash.error is not None:
        raise crashed(where, crash.error) from crash.error
    if not isinstance(found, type) or not issubclass(found, Hyperty):
        raise CommandError(
            f"{module} has no hyperty {name!r}; correct --hyperty", ExitCode.CONFIGURATION
        )
    _check_making(where, found)
    return found


def crashed(where: str, error: Exception) -> CommandError:
    """Log what came out of a hyperty's code before it ran; return it as a sentence."""
    _log.info("hyperty crashed", hyperty=where, exc_info=error)
    return CommandError(
        f"{where} could not be started: {type(error).__name__}: {error}; "
        "correct it, or see with --log info where it crashed",
        ExitCode.CONFIGURATION,
    )


def _check_making(where: str, made: type[Hyperty]) -> None:
    try:
        signature(made).bind()
    except TypeError as exc:
        raise CommandError(
            f"{where} cannot be made without arguments: {exc}; "
            "name a class whose __init__ needs none with --hyperty",
            ExitCode.CONFIGURATION,
        ) from exc
