"""The file of `--config`: TOML, options by their names, in a table named like the command."""

import tomllib
from pathlib import Path
from typing import Final

import click
import structlog

from actors.commands.command_error import CommandError
from actors.commands.exit_code import ExitCode

__all__ = ["CONFIG", "config_option", "file_of", "tables_of", "tell_loaded"]

_log = structlog.get_logger("actors.commands")

_LOADED: Final = "actors.commands.config_file"
"""Where a context keeps the path of the file that was read."""

CONFIG: Final = "config"
"""Name of the option, which cannot stand in a file itself."""


def _read(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
    if path is None:
        return
    options = _table(path, ctx.info_name or "")
    known = {one.name for one in ctx.command.params if one.name} - {CONFIG}
    named = {key.replace("-", "_"): _flat(value) for key, value in options.items()}
    unknown = sorted(named.keys() - known)
    if unknown:
        raise CommandError(
            f"{path} sets {unknown[0]!r}, which is no option of {ctx.info_name}; remove it",
            ExitCode.CONFIGURATION,
        )
    ctx.default_map = named
    ctx.meta[_LOADED] = path


def file_of(ctx: click.Context) -> Path | None:
    """Return the file whose options are in force; None: there is none."""
    found: object = ctx.meta.get(_LOADED)
    return found if isinstance(found, Path) else None


def tell_loaded(ctx: click.Context) -> None:
    """Tell the log which file was read; when it was read there was no log yet."""
    path = file_of(ctx)
    if path is not None:
        _log.info("configuration loaded", file=str(path), options=len(ctx.default_map or {}))


def tables_of(path: Path) -> dict[str, object]:
    """Read a file of options.

    Raises:
        CommandError: It cannot be read, or is no TOML.
    """
    try:
        return tomllib.loads(path.read_text())
    except OSError as exc:
        raise CommandError(
            f"cannot read {path}: {exc.strerror}; name another file with --config",
            ExitCode.CONFIGURATION,
        ) from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise CommandError(f"{path} is no TOML: {exc}; correct it", ExitCode.CONFIGURATION) from exc


def _flat(value: object) -> object:
    """Return a table as the `NAME=VALUE`s that an option is given on the command line."""
    return [f"{key}={one}" for key, one in value.items()] if isinstance(value, dict) else value


def _table(path: Path, command: str) -> dict[str, object]:
    table = tables_of(path).get(command, {})
    if not isinstance(table, dict):
        raise CommandError(
            f"{path} has {command!r} where a table [{command}] belongs; correct it",
            ExitCode.CONFIGURATION,
        )
    return {str(key): value for key, value in table.items()}


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
