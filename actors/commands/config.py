"""The command `config`: the options in force, their origins, and the check of a file.

It reads the options of a command in the same way as the command, without running the command.
"""

import copy
import io
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from actors.cli import config_file, failure, group, options
from actors.keys import key_set, signing
from fsm.commands import parameters
from specs.jsonvalue import Json
from specs.limits.node import JWKS_BYTES

# Private keys of commands.

_OTHERS: Final = 0o077
"""Rights on a private key that only its owner should have."""


def read_signer(path: Path) -> signing.SigningKey:
    """Read a private key; warn if others can read the file, too.

    Raises:
        CommandError: The file cannot be read, or has no private key.
    """
    what, advice = f"cannot read the key {path}", "make one with `token keys`"
    with group.advise_on(OSError, what=what, advice=advice), path.open("rb") as file:
        content, mode = file.read(JWKS_BYTES), os.fstat(file.fileno()).st_mode
    what, advice = f"cannot sign with {path}", "make a key with `token keys`"
    with group.advise_on(key_set.BadKeysError, what=what, advice=advice):
        signer = signing.read_key(content)
    if mode & _OTHERS:
        warning = "so others can sign as its owner; run chmod 600 on it"
        group.echo(f"protofly: not only you have rights on {path}, {warning}", err=True)
    return signer


_SET: Final = "(set)"
"""Text in place of a secret."""


def read_context(
    command: click.Command,
    arguments: Sequence[str] = (),
    defaults: Mapping[str, object] | None = None,
    *,
    is_raw: bool = False,
) -> click.Context:
    """Read the options of a command as the command does; required ones may be missing.

    Args:
        command: The command.
        arguments: Command line of the command.
        defaults: Values of the options that are not set.
        is_raw: Whether values stay as they are written.

    Raises:
        click.UsageError: There is no such option, or a value is invalid.
        CommandError: The file of options has an error.
    """
    params = [copy.copy(each) for each in command.params if isinstance(each, click.Option)]
    for each in params:
        each.required = False
        if is_raw and each.name not in {config_file.CONFIG, config_file.PROFILE}:
            each.callback = None
    name = command.name or ""
    twin = click.Command(name, params=[*params], add_help_option=False)
    prefix = f"{group.SETTINGS['auto_envvar_prefix']}_{name.upper()}"
    return twin.make_context(
        name, list(arguments), auto_envvar_prefix=prefix, default_map={**(defaults or {})}
    )


def _json_of(value: object) -> Json:
    """Return a value in the form of a file of options; None: there is none."""
    if isinstance(value, tuple):
        return [str(each) for each in value] or None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


_DEFAULT: Final = "node"

_ANY_DOMAIN: Final = "a.example"
"""Domain for a file that names none."""


@click.group("config", context_settings=parameters.HELP_OPTIONS)
def command() -> None:
    """Show the options in force and where each comes from, or check a file of them."""


@options.define_command("show", command, context_settings={"ignore_unknown_options": True})
def show(
    *,
    words: tuple[str, ...] = parameters.argument(
        "[COMMAND] [OPTIONS OF COMMAND]...", nargs=-1, type=click.UNPROCESSED
    ),
    origin: bool = parameters.option(),
    as_json: bool = parameters.option(flag="--json"),
) -> int:
    """Print the options that COMMAND, by default node, would run with, as a file of them.

    The command line comes before the environment, then the file that --config names, then a
    profile, then the default. A secret is shown as (set).

    Args:
        origin: Show where each value comes from.
        as_json: Print one JSON object per option.
    """
    name, arguments = _split(words)
    command = group.command_of(name)
    config_file.warn_unknown(read_context(command, arguments))
    ctx = read_context(command, arguments, is_raw=True)
    if not as_json:
        group.echo(f"[{name}]")
    for each in ctx.command.params:
        key = each.name or ""
        if key not in ctx.params:
            continue
        value, label = _json_of(ctx.params[key]), key.replace("_", "-")
        if getattr(each, "hide_input", False) and value is not None:
            value = _SET
        source, where = config_file.origin_of(ctx, key)
        if as_json:
            more = {"value": value, "origin": source, "where": where}
            failure.say("option", command=name, name=label, flag=each.opts[0], **more)
            continue
        # A text, a list or a number is written in TOML as in JSON.
        line = f"{label} = {json.dumps(value, ensure_ascii=False)}"
        comment = f"  # {source} {where}".rstrip() if origin else ""
        group.echo((f"# {label} is not set" if value is None else line) + comment)
    return group.ExitCode.OK


@options.define_command("check", command)
def check(*, file: Path = parameters.argument(), ports: bool = parameters.option()) -> int:
    """Check a file of options as the commands read it, and all that it names.

    Everything is checked that a start checks before it serves: names, values, contradictions,
    keys, certificates, policies, hyperties, databases. Nothing is started or made. Prints each
    finding in a line, and exits with 3 if there is one.

    Args:
        ports: Also check that the addresses to listen at are free.
    """
    tables, wrong = config_file.read_tables(file)
    warnings = io.StringIO()
    with redirect_stderr(warnings), failure.dry_run(ports=ports):
        for name, table in tables.items():
            wrong += [*_findings(file, group.command_of(name), table)]
    for line in dict.fromkeys(warnings.getvalue().splitlines()):
        group.echo(line, err=True)
    for error in wrong:
        group.echo(f"protofly: {error}", err=True)
    if wrong:
        return group.ExitCode.CONFIGURATION
    group.echo(f"{file} is in order: {', '.join(tables) or 'it says nothing'}")
    return group.ExitCode.OK


_STARTED: Final = frozenset({"node", "runtime"})
"""Commands that are run up to the point at which they would serve."""

_STAND_INS: Final = {"domain": _ANY_DOMAIN, "name": "any", "node": f"wss://{_ANY_DOMAIN}/link"}
"""Values of required options that a file may leave to the command line."""

_LEAST: Final = 4
"""Minimum length of a value that is recognised in an error message."""


def _findings(file: Path, command: click.Command, table: object) -> Iterator[group.CommandError]:
    """Check the table of a command repeatedly, each time without the values of the last error."""
    named, wrong = config_file.read_options(file, command, table)
    yield from wrong
    own = [each for each in command.params if isinstance(each, click.Option)]
    flags = {each.name or "": each.opts[0] for each in own}
    removed = {
        flag for flag in flags.values() if any(_mentions(str(each), flag[2:]) for each in wrong)
    }
    while text := _failure(f"{file} [{command.name}]", command, named):
        if not any(_mentions(text, flag) for flag in removed):
            yield group.CommandError(text)
        faulty = [name for name in named if _mentions(text, flags.get(name, name))]
        faulty = faulty or [name for name, value in named.items() if _is_in(text, value)]
        for name in faulty:
            named = _without(named, name, text)
            if name not in named:
                removed.add(flags.get(name, name))
        if not faulty:
            return


def _failure(where: str, command: click.Command, named: Mapping[str, object]) -> str:
    """Return the first error in the options of a command; empty: there is none."""
    needed = {each.name for each in command.params if each.required}
    values = {name: value for name, value in _STAND_INS.items() if name in needed} | {**named}
    try:
        ctx = read_context(command, defaults=values)
        if command.name in _STARTED and command.callback is not None:
            with ctx:
                ctx.invoke(command.callback, **ctx.params)
    except click.ClickException as error:
        if isinstance(error, click.BadParameter) and error.ctx and error.param:
            name = error.param.name or ""
            if error.ctx.get_parameter_source(name) is ParameterSource.ENVIRONMENT:
                where = f"{error.ctx.auto_envvar_prefix}_{name.upper()}"
        return f"{where}: {error.format_message()}"
    except group.CommandError as error:
        return f"{where}: {error}"
    return ""


def _mentions(text: str, flag: str) -> bool:
    return re.search(rf"{flag}(?![-\w])", text) is not None


def _is_in(text: str, value: object) -> bool:
    return any(
        len(part) >= _LEAST and part in text
        for piece in (value if isinstance(value, list) else [value])
        if isinstance(piece, str)
        for part in (piece, *re.split("[=:]", piece))
    )


def _without(named: Mapping[str, object], name: str, text: str) -> dict[str, object]:
    """Return options without `name`; of a list, remove the values that the error `text` names."""
    value = named[name]
    rest = [each for each in value if not _is_in(text, each)] if isinstance(value, list) else []
    others = {key: each for key, each in named.items() if key != name}
    return {**others, name: rest} if rest and rest != value else others


def _split(words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Separate the name of a command from its options."""
    if not words or words[0].startswith("-"):
        return _DEFAULT, words
    if words[0] not in config_file.COMMANDS:
        known = ", ".join(config_file.COMMANDS)
        raise click.BadParameter(f"{words[0]!r} is none of {known}", param_hint="COMMAND")
    return words[0], words[1:]
