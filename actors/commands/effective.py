"""What the options of a command are, and where each comes from, without running it."""

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias, final

import attrs
import click

from actors.cli.config_file import CONFIG, origin_of, tell_unknown
from specs.jsonvalue import Json

__all__ = ["Effective", "effective_options", "parsed"]

_PREFIX: Final = "PROTOFLY"

_Check: TypeAlias = Callable[[click.Context, click.Parameter, object], object]

_SET: Final = "(set)"
"""What is shown of a secret."""


@final
@attrs.frozen
class Effective:
    """One option as it stands.

    Attributes:
        name: As in a file of options.
        flag: As on the command line.
        value: As it was written; None: it is not set.
        origin: `command line`, `environment`, `file` or `default`.
        where: Name of the environment variable, or file and table; empty otherwise.
    """

    name: str
    flag: str
    value: Json
    origin: str
    where: str = ""


def effective_options(command: click.Command, arguments: Sequence[str]) -> Iterator[Effective]:
    """Read a command's options as it would: flag, then environment, then file, then default.

    Raises:
        click.UsageError: There is no such option, or a value is none it takes.
        CommandError: The file of options is wrong.
    """
    tell_unknown(parsed(command, arguments))
    options = [copy.copy(one) for one in _options(command)]
    for one in options:
        if one.name != CONFIG:
            one.callback = None
    ctx = _context(command, options, arguments)
    for one in options:
        if one.name in ctx.params:
            yield _effective(ctx, one)


def parsed(command: click.Command, arguments: Sequence[str]) -> click.Context:
    """Check every value as the command would; one that is required may be missing.

    Raises:
        click.UsageError: There is no such option, or a value is none it takes.
        CommandError: The file of options is wrong.
    """
    return _context(command, [copy.copy(one) for one in _options(command)], arguments)


def _options(command: click.Command) -> list[click.Option]:
    return [one for one in command.params if isinstance(one, click.Option)]


def _context(
    command: click.Command, options: Sequence[click.Option], arguments: Sequence[str]
) -> click.Context:
    for one in options:
        if one.required:
            one.required = False
            one.callback = _if_given(one.callback)
    name = command.name or ""
    twin = click.Command(name, params=[*options], add_help_option=False)
    prefix = f"{_PREFIX}_{name.upper()}"
    return twin.make_context(name, list(arguments), auto_envvar_prefix=prefix)


def _if_given(check: _Check | None) -> _Check:
    """Check a value only if there is one."""

    def checked(ctx: click.Context, option: click.Parameter, value: object) -> object:
        return value if value is None or check is None else check(ctx, option, value)

    return checked


def _effective(ctx: click.Context, option: click.Option) -> Effective:
    name = option.name or ""
    value: object = ctx.params[name]
    shown = _shown(value)
    if option.hide_input and shown is not None:
        shown = _SET
    origin, where = origin_of(ctx, name)
    return Effective(name.replace("_", "-"), option.opts[0], shown, origin, where)


def _shown(value: object) -> Json:
    """Return a value as a file of options would have it; None: there is none."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Path():
            return os.fspath(value)
        case tuple():
            return [str(one) for one in value] or None
        case _:
            return str(value)
