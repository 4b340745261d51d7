"""The command `config`: the options in force, where each comes from, and the check of a file.

The options of a command are read as that command reads them, without running it.
"""

import copy
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, final

import attrs
import click

from actors.cli.command_error import CommandError, ExitCode
from actors.cli.config_file import (
    CONFIG,
    PROFILE,
    checked_tables,
    misconfigured,
    origin_of,
    warn_unknown,
)
from actors.cli.group import SUMMARIES, command_of
from actors.cli.options import if_given
from actors.cli.output import say
from actors.cli.topic import topics
from actors.node.config import NodeConfig
from specs.jsonvalue import Json

__all__ = ["command", "parsed"]

_PREFIX: Final = "PROTOFLY"

_SET: Final = "(set)"
"""Shown instead of a secret."""


@final
@attrs.frozen
class Effective:
    """One option as it stands.

    Attributes:
        value: As it was written; None: it is not set.
        origin: `command line`, `environment`, `file`, `profile` or `default`.
        where: Name of the environment variable, file and table, or profile; empty otherwise.
    """

    name: str
    flag: str
    value: Json
    origin: str
    where: str = ""


def effective_options(command: click.Command, arguments: Sequence[str]) -> Iterator[Effective]:
    """Read a command's options as it would: flag, environment, file, profile, then default.

    Raises:
        click.UsageError: There is no such option, or a value is none it takes.
        CommandError: The file of options is wrong.
    """
    warn_unknown(parsed(command, arguments))
    options = [copy.copy(one) for one in _options(command)]
    for one in options:
        if one.name not in {CONFIG, PROFILE}:
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
            one.callback = if_given(one.callback)
    name = command.name or ""
    twin = click.Command(name, params=[*options], add_help_option=False)
    prefix = f"{_PREFIX}_{name.upper()}"
    return twin.make_context(name, list(arguments), auto_envvar_prefix=prefix)


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


_COMMANDS: Final = [name for name in SUMMARIES if name != "config"]

_DEFAULT: Final = "node"

_ANY_DOMAIN: Final = "a.example"
"""Stands for the domain where a file does not name one."""


@click.group("config")
def command() -> None:
    """Show the options in force and where each comes from, or check a file of them."""


@command.command("show", context_settings={"ignore_unknown_options": True})
@click.argument(
    "words", metavar="[COMMAND] [OPTIONS OF COMMAND]...", nargs=-1, type=click.UNPROCESSED
)
@click.option("--origin", is_flag=True, help="Show where each value comes from.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per option.")
def show(*, words: tuple[str, ...], origin: bool, as_json: bool) -> int:
    """Print the options that COMMAND, by default node, would run with, as a file of them.

    A flag wins over an environment variable, that over the file that --config names,
    that over a profile, that over the default. Secrets are only said to be set.
    """
    name, options = _split(words)
    found = list(effective_options(command_of(name), options))
    if as_json:
        for one in found:
            say("option", command=name, **attrs.asdict(one))
        return ExitCode.OK
    click.echo(f"[{name}]")
    for one in found:
        click.echo(_line(one) + (_comment(one) if origin else ""))
    return ExitCode.OK


@command.command("check")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def check(*, file: Path) -> int:
    """Check a file of options: every table, every name, every value, every file it names.

    Nothing is started. Exits with 3 and one sentence if something is wrong.
    """
    tables = checked_tables(file)
    for name in tables:
        try:
            ctx = parsed(command_of(name), ("--config", str(file)))
        except click.UsageError as error:
            raise misconfigured(error) or CommandError(
                f"{file} [{name}]: {error.format_message()}"
            ) from error
        if name == "node":
            _apply(ctx.params)
    click.echo(f"{file} is in order: {', '.join(tables) or 'it says nothing'}")
    return ExitCode.OK


def _split(words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Separate the name of a command from its options."""
    if not words or words[0].startswith("-"):
        return _DEFAULT, words
    if words[0] not in _COMMANDS:
        known = ", ".join(_COMMANDS)
        raise click.BadParameter(f"{words[0]!r} is none of {known}", param_hint="COMMAND")
    return words[0], words[1:]


def _apply(values: dict[str, object]) -> None:
    """Let every topic of the node read what its options name."""
    config = NodeConfig(domain=str(values["domain"] or _ANY_DOMAIN))
    for kind in topics():
        own = {field.name: values[field.name] for field in attrs.fields(kind)}
        config = kind(**own).applied(config)


def _line(option: Effective) -> str:
    if option.value is None:
        return f"# {option.name} is not set"
    return f"{option.name} = {_toml(option.value)}"


def _toml(value: Json) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return str(value)


def _comment(option: Effective) -> str:
    where = f" {option.where}" if option.where else ""
    return f"  # {option.origin}{where}"
