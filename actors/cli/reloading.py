"""Reloading of files at SIGHUP: first the file of options, then the files that options name."""

import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, final

import attrs
import click
import trio
from click.core import ParameterSource

from actors.cli.config_file import loaded, read_options, read_tables
from actors.cli.group import CommandError, echo
from actors.kit.log import Level, Style, configure_log, get_logger
from specs.errors import ProtoflyError

_log = get_logger("actors.commands")

_ELSEWHERE: Final = frozenset({ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT})


@final
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


@final
class _OptionFile:
    """The file of options of a running command, and the values of it that are in effect.

    Args:
        ctx: Context of the command.
        path: The file.
        named: Values in the file at the start.
        reloadable: Options that take effect without a restart.
    """

    def __init__(
        self,
        ctx: click.Context,
        path: Path,
        named: Mapping[str, object],
        reloadable: Sequence[ReloadableOptions],
    ) -> None:
        self._ctx = ctx
        self._path = path
        self._named = dict(named)
        self._reloadable = (_LOG, *reloadable)
        self._options = {one.name or "": one for one in ctx.command.params}

    async def reload(self) -> None:
        """Apply changed options; report those that need a restart or have no effect.

        Values are neither shown nor logged: some are secret.
        """
        await trio.lowlevel.checkpoint()
        try:
            fresh = self._read()
        except CommandError as error:
            _log.error("options kept", file=str(self._path), why=str(error))
            echo(f"protofly: {error}; all options stay as they are", err=True)
            return
        names = self._named.keys() | fresh.keys()
        changed = {one for one in names if self._named.get(one) != fresh.get(one)}
        hidden = {one for one in changed if self._is_hidden(one)}
        taken: set[str] = set()
        refused: dict[str, str] = {}
        for group in self._reloadable:
            mine = (changed - hidden) & group.names
            if not mine:
                continue
            try:
                values = {one: self._value(one, fresh) for one in group.names}
                taken |= mine if group.take(values) else set()
            except click.ClickException as error:
                refused |= dict.fromkeys(mine, error.format_message())
            except ProtoflyError as error:
                refused |= dict.fromkeys(mine, str(error))
        for name in taken:
            self._named.pop(name, None)
            self._named |= {name: fresh[name]} if name in fresh else {}
        self._report(taken, changed - hidden - taken - refused.keys(), hidden, refused)

    def _read(self) -> dict[str, object]:
        """Read the file.

        Raises:
            CommandError: Something in it is wrong.
        """
        tables, wrong = read_tables(self._path)
        command = self._ctx.info_name or ""
        named, more = read_options(
            self._path, command, self._ctx.command.params, tables.get(command, {})
        )
        for error in (*wrong, *more):
            raise error
        return named

    def _is_hidden(self, name: str) -> bool:
        return self._ctx.get_parameter_source(name) in _ELSEWHERE

    def _value(self, name: str, fresh: Mapping[str, object]) -> object:
        """Return the value of an option as the command gets it.

        Raises:
            BadParameter: The value is not valid for the option.
        """
        if self._is_hidden(name):
            value: object = self._ctx.params[name]
            return value
        option = self._options[name]
        default: object = option.default if isinstance(option.default, str) else None
        raw = fresh.get(name, default)
        return None if raw is None else option.process_value(self._ctx, raw)

    def _report(
        self,
        taken: AbstractSet[str],
        restart: AbstractSet[str],
        hidden: AbstractSet[str],
        refused: Mapping[str, str],
    ) -> None:
        parts = []
        for names, text in (
            (taken, "taken"),
            (restart, "a restart is needed for"),
            (hidden, "without effect, as the command line or the environment sets them"),
        ):
            if names:
                parts.append(f"{text}: {_listed(names)}")
        parts += [f"refused: {_listed([name])}: {why}" for name, why in sorted(refused.items())]
        if not parts:
            _log.info("options unchanged", file=str(self._path))
            return
        log = _log.warning if restart or refused else _log.info
        lists = {"taken": taken, "restart": restart, "hidden": hidden, "refused": refused}
        log("options changed", file=str(self._path), **{k: _listed(v) for k, v in lists.items()})
        echo(f"protofly: {self._path}: {'; '.join(parts)}", err=True)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(name.replace("_", "-") for name in names))


@asynccontextmanager
async def reloading(
    files: Sequence[Callable[[], Awaitable[object]]], reloadable: Sequence[ReloadableOptions] = ()
) -> AsyncIterator[None]:
    """Reload files at each SIGHUP while the context is open.

    Without files, the handling of the signal does not change.

    Args:
        files: Functions that reload files and log the outcome. They are called in order, after
            the reload of the file of options.
        reloadable: Options that take effect without a restart, besides those of the log.

    If cancelled, a reload that has begun may take effect.
    """
    ctx = click.get_current_context(silent=True)
    of_options = None if ctx is None else loaded(ctx)
    if ctx is not None and of_options is not None:
        path, named = of_options
        files = (_OptionFile(ctx, path, named, reloadable).reload, *files)
    if not files:
        yield
        return
    with trio.open_signal_receiver(signal.SIGHUP) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_reload_at_signals, files, signals)
            yield
            nursery.cancel_scope.cancel()


async def _reload_at_signals(
    files: Sequence[Callable[[], Awaitable[object]]], signals: AsyncIterator[int]
) -> None:
    async for _ in signals:
        for each in files:
            await each()
