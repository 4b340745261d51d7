"""The command `config`: the options in force, where each comes from, and the check of a file.

The options of a command are read as that command reads them, without running it.
"""

import copy
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import Final, final

import attrs
import click
from click.core import ParameterSource

from actors.cli.config_file import (
    CONFIG,
    PROFILE,
    origin_of,
    read_options,
    read_tables,
    warn_unknown,
)
from actors.cli.failure import dry_run, say
from actors.cli.group import SUMMARIES, CommandError, ExitCode, command_of, echo
from actors.cli.options import FILE, if_given
from actors.keys.key_set import BadKeysError
from actors.keys.signing import SigningKey, read_key
from specs.jsonvalue import Json
from specs.limits.node import JWKS_BYTES

# Private keys that commands sign with.

_OTHERS: Final = 0o077
"""Rights that only its owner should have on a private key: a readable key protects nothing."""


def read_signer(path: Path) -> SigningKey:
    """Read a private key; warn if others can read it, too.

    Raises:
        CommandError: It cannot be read, or is none.
    """
    try:
        with path.open("rb") as file:
            signer = read_key(file.read(JWKS_BYTES))
            if os.fstat(file.fileno()).st_mode & _OTHERS:
                warning = "so others can sign as its owner; run chmod 600 on it"
                echo(f"protofly: not only you have rights on {path}, {warning}", err=True)
            return signer
    except OSError as exc:
        raise CommandError(
            f"cannot read the key {path}: {exc.strerror}; make one with `token keys`"
        ) from exc
    except BadKeysError as exc:
        raise CommandError(
            f"cannot sign with {path}: {exc.reason}; make a key with `token keys`"
        ) from exc


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
    command: click.Command,
    options: Sequence[click.Option],
    arguments: Sequence[str],
    defaults: Mapping[str, object] | None = None,
) -> click.Context:
    for one in options:
        if one.required:
            one.required = False
            one.callback = if_given(one.callback)
    name = command.name or ""
    twin = click.Command(name, params=[*options], add_help_option=False)
    prefix = f"{_PREFIX}_{name.upper()}"
    return twin.make_context(
        name, list(arguments), auto_envvar_prefix=prefix, default_map={**(defaults or {})}
    )


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
    echo(f"[{name}]")
    for one in found:
        echo(_line(one) + (_comment(one) if origin else ""))
    return ExitCode.OK


@command.command("check")
@click.argument("file", type=FILE)
@click.option("--ports", is_flag=True, help="Also check that the addresses to listen at are free.")
def check(*, file: Path, ports: bool) -> int:
    """Check a file of options as the commands read it, and all that it names.

    Everything is checked that a start checks before it serves: names, values, contradictions,
    keys, certificates, policies, hyperties, databases. Nothing is started or made. Prints each
    finding in a line, and exits with 3 if there is one.
    """
    tables, wrong = read_tables(file)
    shown = io.StringIO()
    with redirect_stderr(shown), dry_run(ports=ports):
        for name, table in tables.items():
            wrong += [*_Trial(file, command_of(name)).findings(table)]
    for line in dict.fromkeys(shown.getvalue().splitlines()):
        echo(line, err=True)
    for error in wrong:
        echo(f"protofly: {error}", err=True)
    if wrong:
        return ExitCode.CONFIGURATION
    echo(f"{file} is in order: {', '.join(tables) or 'it says nothing'}")
    return ExitCode.OK


_STARTED: Final = frozenset({"node", "runtime"})
"""Commands that are run up to the point where they serve."""

_STAND_INS: Final = {"domain": _ANY_DOMAIN, "name": "any", "node": f"wss://{_ANY_DOMAIN}/link"}
"""Values of options that a command needs and a file may leave to the command line."""

_LEAST: Final = 4
"""Minimum length of a value that is recognised in an error message."""


@final
class _Trial:
    """Tries the table of a command again and again, each time without what was wrong.

    Args:
        file: The file of the table.
        command: The command.
    """

    def __init__(self, file: Path, command: click.Command) -> None:
        self._file = file
        self._command = command
        self._name = command.name or ""
        self._removed: set[str] = set()

    def findings(self, table: object) -> Iterator[CommandError]:
        """Return everything that is wrong with a table."""
        options = _options(self._command)
        named, wrong = read_options(self._file, self._name, self._command.params, table)
        yield from wrong
        flags = {one.name or "": one.opts[0] for one in options}
        self._removed = {one.opts[0] for one in options if _is_named(one.opts[0], wrong)}
        while (finding := self._tried(named)) is not None:
            text = str(finding)
            if not _mentioned(text, self._removed):
                yield finding
            blamed = _blamed(text, named, flags)
            if not blamed:
                return
            for name in blamed:
                named = _without(named, name, text)
                if name not in named:
                    self._removed.add(flags[name])

    def _tried(self, named: Mapping[str, object]) -> CommandError | None:
        where = f"{self._file} [{self._name}]"
        try:
            self._run(named)
        except click.BadParameter as error:
            if error.ctx is None or error.param is None:
                return CommandError(f"{where}: {error.format_message()}")
            name = error.param.name or ""
            if error.ctx.get_parameter_source(name) is ParameterSource.ENVIRONMENT:
                where = f"{error.ctx.auto_envvar_prefix}_{name.upper()}"
            return CommandError(f"{where}: {error.format_message()}")
        except click.ClickException as error:
            return CommandError(f"{where}: {error.format_message()}")
        except CommandError as error:
            return CommandError(f"{where}: {error}")
        return None

    def _run(self, named: Mapping[str, object]) -> None:
        options = [copy.copy(one) for one in _options(self._command)]
        needed = {one.name for one in options if one.required}
        values = {name: value for name, value in _STAND_INS.items() if name in needed} | {**named}
        ctx = _context(self._command, options, (), values)
        if self._name in _STARTED and self._command.callback is not None:
            with ctx:
                ctx.invoke(self._command.callback, **ctx.params)


def _is_named(flag: str, errors: Iterable[CommandError]) -> bool:
    return any(re.search(rf"{flag[2:]}(?![-\w])", str(one)) for one in errors)


def _mentioned(text: str, flags: Iterable[str]) -> bool:
    return any(re.search(rf"{flag}(?![-\w])", text) for flag in flags)


def _blamed(text: str, named: Mapping[str, object], flags: Mapping[str, str]) -> list[str]:
    """Return the options of a table that an error message mentions, by name or else by value."""
    by_name = [name for name in named if _mentioned(text, [flags[name]])]
    return by_name or [name for name, value in named.items() if _is_in(text, value)]


def _is_in(text: str, value: object) -> bool:
    pieces = value if isinstance(value, list) else [value]
    return any(
        len(one) >= _LEAST and one in text
        for piece in pieces
        if isinstance(piece, str)
        for one in (piece, *re.split("[=:]", piece))
    )


def _without(named: Mapping[str, object], name: str, text: str) -> dict[str, object]:
    """Return options without one; of a list option, remove only the values in the error message."""
    value = named[name]
    rest = [one for one in value if not _is_in(text, one)] if isinstance(value, list) else []
    kept = {key: one for key, one in named.items() if key != name}
    if isinstance(value, list) and rest and len(rest) < len(value):
        return {**kept, name: rest}
    return kept


def _split(words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Separate the name of a command from its options."""
    if not words or words[0].startswith("-"):
        return _DEFAULT, words
    if words[0] not in _COMMANDS:
        known = ", ".join(_COMMANDS)
        raise click.BadParameter(f"{words[0]!r} is none of {known}", param_hint="COMMAND")
    return words[0], words[1:]


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
