"""The file of `--config`: TOML, options by their names, in a table named like the command.

An error in it, or in an environment variable, is a wrong configuration (status 3),
not a wrong command line (2): a restart of the process would only fail again.
"""

import os
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

import click
from click.core import ParameterSource

from actors.cli.group import SUMMARIES, CommandError, ExitCode, did_you_mean, echo
from actors.kit.files import read_toml
from actors.kit.log import get_logger
from specs.jsonvalue import one_line

_log = get_logger("actors.commands")

_LOADED: Final = "actors.cli.config_file"
"""Key in the context for the path of the file that was read, and the options that it sets."""

PROFILE: Final = "profile"
"""Name of the option that names a set of options."""

CONFIG: Final = "config"
"""Name of the option `--config`, which a file cannot set."""

COMMANDS: Final = [name for name in SUMMARIES if name != CONFIG]
"""The commands whose options can stand in a file."""


def _load(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
    if path is not None:
        named = read_file(path, ctx)
        ctx.default_map = {**(ctx.default_map or {}), **named}
        ctx.meta[_LOADED] = path, named


def read_file(path: Path, ctx: click.Context) -> dict[str, object]:
    """Read the options of a command from a file.

    Raises:
        CommandError: The file has an error.
    """
    tables, wrong = read_tables(path)
    named, more = read_options(path, ctx.command, tables.get(ctx.info_name or "", {}))
    for error in (*wrong, *more):
        raise error
    return named


def read_options(
    path: Path, command: click.Command, table: object
) -> tuple[dict[str, object], list[CommandError]]:
    """Read the table of a command; keys are spelt as on the command line.

    Returns:
        Values by the names of parameters, and the errors of the other keys.
    """
    if not isinstance(table, dict):
        why = f"{path} has {command.name!r} where a table [{command.name}] belongs; correct it"
        return {}, [CommandError(why)]
    known = {each.name or "": each for each in command.params if each.name != CONFIG}
    named: dict[str, object] = {}
    wrong: list[str] = []
    for key, value in table.items():
        name = str(key).replace("-", "_")
        if isinstance(value, dict):  # as on the command line
            value = [f"{left}={right}" for left, right in value.items()]  # noqa: PLW2901
        if name not in known:
            nearest = did_you_mean(str(key), (each.replace("_", "-") for each in known))
            advice = f"{nearest} Correct or remove it" if nearest else "remove it"
            wrong.append(f"{path} sets {key!r}, which is no option of {command.name}; {advice}")
        elif needed := _needed_form(known[name], value):
            wrong.append(f"{path} [{command.name}]: {key} has to be {needed}; correct it")
        else:
            is_list = known[name].multiple and isinstance(value, str)
            named[name] = [value] if is_list else value
    return named, [CommandError(why) for why in wrong]


def warn_unknown(ctx: click.Context) -> None:
    """Warn of environment variables that look like options but are none.

    This is no error: Kubernetes makes such variables from the names of its services.
    """
    prefix = f"{ctx.auto_envvar_prefix}_"
    known = {f"{prefix}{(each.name or '').upper()}" for each in ctx.command.params}
    for name in sorted(os.environ):
        if name.startswith(prefix) and name not in known:
            echo(f"protofly: {name} is no option of {ctx.info_name}, and ignored", err=True)


def _needed_form(option: click.Parameter, value: object) -> str:
    """Return the required form of a value; empty if the value has it."""
    if option.multiple:
        return "" if isinstance(value, list | str) else "a list, or one text"
    if isinstance(option, click.Option) and option.is_flag:
        return "" if isinstance(value, bool | str) else "true or false"
    fits = isinstance(value, str | int | float) and not isinstance(value, bool)
    return "" if fits else "a text or a number"


def origin_of(ctx: click.Context, name: str) -> tuple[str, str]:
    """Return the source of the value of an option, and its exact place.

    Returns:
        `command line`, `environment`, `file`, `profile` or `default`; and the name of the
        environment variable, file and table, or the name of the profile; empty otherwise.
    """
    path, named = loaded_file(ctx) or (None, {})
    match ctx.get_parameter_source(name):
        case ParameterSource.COMMANDLINE:
            return "command line", ""
        case ParameterSource.ENVIRONMENT:
            return "environment", f"{ctx.auto_envvar_prefix}_{name.upper()}"
        case ParameterSource.DEFAULT_MAP if name in named:
            return "file", f"{path} [{ctx.info_name}]"
        case ParameterSource.DEFAULT_MAP:
            return PROFILE, str(ctx.params[PROFILE])
        case _:
            return "default", ""


def explain_option(error: click.ClickException) -> CommandError | None:
    """Return the error about a value from a file or the environment; None for any other."""
    if not isinstance(error, click.BadParameter) or error.ctx is None or error.param is None:
        return None
    _, where = origin_of(error.ctx, error.param.name or "")
    return CommandError(f"{where}: {error.format_message()}") if where else None


def loaded_file(ctx: click.Context) -> tuple[Path, Mapping[str, object]] | None:
    """Return the file that was read, and the options that it sets; None: there is no file."""
    return ctx.meta.get(_LOADED)


def log_loaded(ctx: click.Context) -> None:
    """Log which file was read, now that the log is configured."""
    if file := loaded_file(ctx):
        _log.info("configuration loaded", file=str(file[0]), options=len(file[1]))


def read_tables(path: Path) -> tuple[dict[str, object], list[CommandError]]:
    """Read a file of options; return the tables by command.

    Returns:
        Tables by command, and the errors of the rest of the file.

    Raises:
        CommandError: The file cannot be read, or is no TOML.
    """
    try:
        tables = read_toml(path.read_text())
    except OSError as exc:
        why = f"cannot read {path}: {exc.strerror}; name another file with --config"
        raise CommandError(why) from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise CommandError(f"{path} is no TOML: {exc}; correct it") from exc
    wrong = [
        CommandError(
            f"{path} sets {name!r}, and there is no such command, only {', '.join(COMMANDS)}; "
            f"{did_you_mean(name, COMMANDS) or 'no name is like it.'} Rename it, remove it or "
            "move it into a table"
        )
        for name in tables
        if name not in COMMANDS
    ]
    return {name: table for name, table in tables.items() if name in COMMANDS}, wrong


CONFIG_OPTION: Final = click.Option(
    ["--config"],
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    is_eager=True,
    expose_value=False,
    callback=_load,
    help="TOML file with options, in a table named like the command.",
)
"""The option `--config FILE`; the file sets the defaults of the other options."""


# The end of a command: an exit status, and one sentence if something went wrong.


def enter(command: click.Command, given: object = None) -> NoReturn:
    """Run a command with the arguments of this process and exit with its status.

    Args:
        command: The command.
        given: The object of its context; None: none.
    """
    try:
        code = command.main(prog_name="protofly", standalone_mode=False, obj=given)
    except click.ClickException as error:
        explained = explain_option(error)
        if explained is None:
            vars(error)["message"] = one_line(error.message)  # values may come from anybody
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
