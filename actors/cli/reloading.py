"""Reloading of files at SIGHUP: first the file of options, then the files that options name."""

import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import attrs
import click
import trio
from click.core import ParameterSource

from actors.cli.config_file import loaded_file, read_file
from actors.cli.group import CommandError, echo
from actors.kit.log import Level, Style, configure_log, get_logger
from specs.errors import ProtoflyError

_log = get_logger("actors.commands")

_TYPED: Final = frozenset({ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT})

Reload: TypeAlias = Callable[[], Awaitable[object]]
"""Reloads a file, and logs the outcome."""


@attrs.frozen
class ReloadableOptions:
    """Options that take effect without a restart.

    Attributes:
        names: The options, by their names in Python.
        take: Applies the values of all of them. Returns False if they need a restart after all.
            If it raises a `ProtoflyError`, the former values stay.
    """

    names: AbstractSet[str]
    take: Callable[[Mapping[str, object]], bool]


def _take_log(values: Mapping[str, object]) -> bool:
    configure_log(Level(str(values["log"])), Style(str(values["log_style"])))
    return True


_LOG: Final = ReloadableOptions(frozenset({"log", "log_style"}), _take_log)


async def _reload_options(
    ctx: click.Context,
    path: Path,
    in_force: dict[str, object],
    reloadable: Sequence[ReloadableOptions],
) -> None:
    """Apply changed options; report those that need a restart or have no effect.

    Values are neither shown nor logged: some are secret.

    Args:
        ctx: Context of the command.
        path: The file of options.
        in_force: What of it is in effect.
        reloadable: Options that take effect without a restart.
    """
    await trio.lowlevel.checkpoint()
    try:
        fresh = read_file(path, ctx)
    except CommandError as error:
        _log.error("options kept", file=str(path), why=str(error))
        echo(f"protofly: {error}; all options stay as they are", err=True)
        return
    names = in_force.keys() | fresh.keys()
    changed = {name for name in names if in_force.get(name) != fresh.get(name)}
    hidden = {name for name in changed if ctx.get_parameter_source(name) in _TYPED}
    changed -= hidden
    taken: set[str] = set()
    refused: dict[str, str] = {}
    for group in (_LOG, *reloadable):
        if mine := changed & group.names:
            try:
                taken |= mine if group.take(_values(ctx, group.names, fresh)) else set()
            except click.ClickException as error:
                refused |= dict.fromkeys(mine, error.format_message())
            except ProtoflyError as error:
                refused |= dict.fromkeys(mine, str(error))
    for name in taken:
        in_force.pop(name, None)
        in_force |= {name: fresh[name]} if name in fresh else {}
    restart = changed - taken - refused.keys()
    texts = {
        "taken": taken,
        "a restart is needed for": restart,
        "without effect, as the command line or the environment sets them": hidden,
    }
    parts = [f"{text}: {_join_names(names)}" for text, names in texts.items() if names]
    parts += [f"refused: {_join_names([name])}: {why}" for name, why in sorted(refused.items())]
    if not parts:
        _log.info("options unchanged", file=str(path))
        return
    log = _log.warning if restart or refused else _log.info
    lists = {"taken": taken, "restart": restart, "hidden": hidden, "refused": refused}
    log("options changed", file=str(path), **{k: _join_names(v) for k, v in lists.items()})
    echo(f"protofly: {path}: {'; '.join(parts)}", err=True)


def _values(
    ctx: click.Context, names: AbstractSet[str], fresh: Mapping[str, object]
) -> dict[str, object]:
    """Return the values of options as the command gets them.

    Raises:
        BadParameter: A value is not valid for the option.
    """
    values: dict[str, object] = {}
    for option in ctx.command.params:
        if (name := option.name or "") in names:
            default = option.default if isinstance(option.default, str) else None
            raw = fresh.get(name, default)
            is_typed = ctx.get_parameter_source(name) in _TYPED
            values[name] = ctx.params[name] if is_typed else raw and option.process_value(ctx, raw)
    return values


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(sorted(name.replace("_", "-") for name in names))


@asynccontextmanager
async def reloading(
    files: Sequence[Reload], reloadable: Sequence[ReloadableOptions] = ()
) -> AsyncIterator[None]:
    """Reload files at each SIGHUP while the context is open.

    Without files, the handling of the signal does not change. If cancelled, a reload that has
    begun may take effect.

    Args:
        files: Called in order, after the reload of the file of options.
        reloadable: Options that take effect without a restart, besides those of the log.
    """
    ctx = click.get_current_context(silent=True)
    if ctx is not None and (file := loaded_file(ctx)):
        files = (partial(_reload_options, ctx, file[0], dict(file[1]), reloadable), *files)
    if not files:
        yield
        return
    with trio.open_signal_receiver(signal.SIGHUP) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_reload_at_signals, files, signals)
            yield
            nursery.cancel_scope.cancel()


async def _reload_at_signals(files: Sequence[Reload], signals: AsyncIterator[int]) -> None:
    async for _ in signals:
        for each in files:
            await each()
