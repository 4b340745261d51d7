"""The file of `--config`: TOML, options by their names, in a table named like the command.

An error in it, or in an environment variable, is a wrong configuration (status 3),
not a wrong command line (2): a restart of the process would only fail again.
"""

import os
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NoReturn

import click
from click.core import ParameterSource

from actors.cli.group import SUMMARIES, CommandError, ExitCode, did_you_mean, echo
from actors.kit.log import get_logger
from actors.kit.toml import read_toml
from specs.jsonvalue import one_line

_log = get_logger("actors.commands")

_LOADED: Final = "actors.cli.config_file"
"""Key of the path of the file that was read, in the context."""

_NAMED: Final = "actors.cli.config_file.named"
"""Key of the options that the file sets, in the context."""

PROFILE: Final = "profile"
"""Name of the option that names a set of options."""

CONFIG: Final = "config"
"""Name of the option, which cannot stand in a file itself."""

_COMMANDS: Final = [name for name in SUMMARIES if name != "config"]


def _read(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
    if path is None:
        return
    tables, wrong = read_tables(path)
    name = ctx.info_name or ""
    named, more = read_options(path, name, ctx.command.params, tables.get(name, {}))
    for error in (*wrong, *more):
        raise error
    ctx.default_map = {**(ctx.default_map or {}), **named}
    ctx.meta[_LOADED] = path
    ctx.meta[_NAMED] = named


def read_options(
    path: Path, command: str, params: Iterable[click.Parameter], table: object
) -> tuple[dict[str, object], list[CommandError]]:
    """Read the table of a command.

    Args:
        path: File of the table.
        command: Name of the command.
        params: Parameters of the command.
        table: The table, by keys as they are written.

    Returns:
        Values by the names of parameters, and what is wrong with the others.
    """
    if not isinstance(table, dict):
        why = f"{path} has {command!r} where a table [{command}] belongs; correct it"
        return {}, [CommandError(why)]
    known = {one.name or "": one for one in params if one.name not in {None, CONFIG}}
    named: dict[str, object] = {}
    wrong: list[CommandError] = []
    for key, value in table.items():
        name = str(key).replace("-", "_")
        flat, why = _flat(value), ""
        if name not in known:
            advice = _advice(str(key), (one.replace("_", "-") for one in known))
            why = f"{path} sets {key!r}, which is no option of {command}; {advice}"
        elif needed := _shape_wanted(known[name], flat):
            why = f"{path} [{command}]: {key} has to be {needed}; correct it"
        if why:
            wrong.append(CommandError(why))
        else:
            is_list = known[name].multiple and isinstance(flat, str)
            named[name] = [flat] if is_list else flat
    return named, wrong


def _advice(word: str, known: Iterable[str]) -> str:
    asked = did_you_mean(word, known)
    return f"{asked} Correct or remove it" if asked else "remove it"


def warn_unknown(ctx: click.Context) -> None:
    """Warn of environment variables that look like options and are none.

    No error: Kubernetes makes such variables of the names of its services.
    """
    prefix = f"{ctx.auto_envvar_prefix}_"
    known = {f"{prefix}{(one.name or '').upper()}" for one in ctx.command.params}
    for name in sorted(os.environ):
        if name.startswith(prefix) and name not in known:
            echo(f"protofly: {name} is no option of {ctx.info_name}, and ignored", err=True)


def _shape_wanted(option: click.Parameter, value: object) -> str:
    """Return what a value has to be, if it would be taken for something else as a text."""
    is_flag = isinstance(option, click.Option) and option.is_flag
    if option.multiple:
        wanted, fits = "a list, or one text", isinstance(value, list | str)
    elif is_flag:
        wanted, fits = "true or false", isinstance(value, bool | str)
    else:
        wanted = "a text or a number"
        fits = isinstance(value, str | int | float) and not isinstance(value, bool)
    return "" if fits else wanted


def origin_of(ctx: click.Context, name: str) -> tuple[str, str]:
    """Return where an option's value comes from, and where exactly that is.

    Args:
        ctx: Context of the command.
        name: Name of the option.

    Returns:
        `command line`, `environment`, `file`, `profile` or `default`; and the name of the
        environment variable, file and table, or the name of the profile; empty otherwise.
    """
    match ctx.get_parameter_source(name):
        case ParameterSource.COMMANDLINE:
            return "command line", ""
        case ParameterSource.ENVIRONMENT:
            return "environment", f"{ctx.auto_envvar_prefix}_{name.upper()}"
        case ParameterSource.DEFAULT_MAP if name not in ctx.meta.get(_NAMED, ()):
            return PROFILE, str(ctx.params[PROFILE])
        case ParameterSource.DEFAULT_MAP:
            return "file", f"{ctx.meta[_LOADED]} [{ctx.info_name}]"
        case _:
            return "default", ""


def misconfigured(error: click.ClickException) -> CommandError | None:
    """Return what is wrong with a value that was not typed; None: it was, or there is none."""
    if not isinstance(error, click.BadParameter) or error.ctx is None or error.param is None:
        return None
    _, where = origin_of(error.ctx, error.param.name or "")
    if not where:
        return None
    return CommandError(f"{where}: {error.format_message()}")


def loaded(ctx: click.Context) -> tuple[Path, Mapping[str, object]] | None:
    """Return the file that was read, and the options that it sets; None: there is no file."""
    return (ctx.meta[_LOADED], ctx.meta[_NAMED]) if _LOADED in ctx.meta else None


def log_loaded(ctx: click.Context) -> None:
    """Log which file was read; when it was read there was no log yet."""
    path: object = ctx.meta.get(_LOADED)
    if path is not None:
        _log.info("configuration loaded", file=str(path), options=len(ctx.meta[_NAMED]))


def read_tables(path: Path) -> tuple[dict[str, object], list[CommandError]]:
    """Read a file of options by the commands that they are for.

    Args:
        path: The file.

    Returns:
        Tables by commands, and what is wrong with the rest of the file.

    Raises:
        CommandError: It cannot be read, or is no TOML.
    """
    found = _tables(path)
    wrong = [
        CommandError(
            f"{path} sets {name!r}, and there is no such command, only {', '.join(_COMMANDS)}; "
            f"{did_you_mean(name, _COMMANDS) or 'no name is like it.'} Rename it, remove it or "
            "move it into a table"
        )
        for name in found
        if name not in _COMMANDS
    ]
    return {name: table for name, table in found.items() if name in _COMMANDS}, wrong


def _tables(path: Path) -> dict[str, object]:
    try:
        return read_toml(path.read_text())
    except OSError as exc:
        raise CommandError(
            f"cannot read {path}: {exc.strerror}; name another file with --config"
        ) from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise CommandError(f"{path} is no TOML: {exc}; correct it") from exc


def _flat(value: object) -> object:
    """Return a table as the `NAME=VALUE`s that an option is given on the command line."""
    return [f"{key}={one}" for key, one in value.items()] if isinstance(value, dict) else value


config_option = click.option(
    "--config",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    is_eager=True,
    expose_value=False,
    callback=_read,
    help="TOML file with options, in a table named like the command.",
)
"""The option `--config FILE`; what the file says is the default of the other options."""


# The end of a command: an exit status, and one sentence if something went wrong.


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
