"""`python -m actors find`: find hyperties and data objects, and follow what is found."""

import json
import signal
from functools import partial
from typing import Final, final

import attrs
import click
import trio

from actors.cli import failure, group, options
from actors.commands.temporary_runtime import REGISTRY, TemporaryRuntime, temporary_runtime
from actors.runtime.runtime import Runtime
from fsm.registry.discovery import Criteria, FoundEntry, Query
from specs import errors, jsonvalue
from specs.addresses.address import canonical
from specs.limits.discovery import FOUND_AT_ONCE

_HEAD: Final = ("STATUS", "NAME", "USER", "RESOURCES", "SCHEMAS", "ADDRESS")
_NONE: Final = "-"


@final
class _Table:
    """A table that is printed row by row; columns widen as needed."""

    def __init__(self, *head: str) -> None:
        self._widths = [0] * len(head)
        self._head: tuple[str, ...] | None = head

    def print(self, rows: list[tuple[str, ...]]) -> None:
        """Print rows; the head precedes the first ones."""
        if self._head is not None and rows:
            rows, self._head = [self._head, *rows], None
        for cells in rows:
            self._widths = [max(pair) for pair in zip(self._widths, map(len, cells), strict=True)]
        for cells in rows:
            padded = (cell.ljust(width) for cell, width in zip(cells, self._widths, strict=True))
            group.echo("  ".join(padded).rstrip())


@final
@attrs.frozen
class _Search:
    """The criteria of the command and the format of its output."""

    criteria: Criteria
    registry: str | None
    is_json: bool

    async def find(self, runtime: Runtime) -> group.ExitCode:
        """Print all entries."""
        search = runtime.discoverer.discover(domain=self.registry, **self.criteria)
        if self.is_json:
            count = 0
            async for entry in search:
                failure.say("entry", **attrs.asdict(entry))
                count += 1
            return _exit_code(count)
        entries = await search.first(FOUND_AT_ONCE + 1)
        _Table(*_HEAD).print([_row(entry) for entry in entries[:FOUND_AT_ONCE]])
        if len(entries) > FOUND_AT_ONCE:
            group.echo(f"there are more; these are {FOUND_AT_ONCE}, --json shows all", err=True)
        return _exit_code(len(entries))

    async def watch(self, runtime: Runtime) -> group.ExitCode:
        """Print changes until SIGINT or SIGTERM."""
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._follow, runtime)
                async for _ in signals:
                    nursery.cancel_scope.cancel()
        return group.ExitCode.OK

    async def _follow(self, runtime: Runtime) -> None:
        table = _Table("CHANGE", *_HEAD)
        async for change in runtime.discoverer.watch(domain=self.registry, **self.criteria):
            if self.is_json:
                failure.say("change", change=change.change.value, **attrs.asdict(change.entry))
            else:
                table.print([(change.change.value, *_row(change.entry))])


async def _print_record(address: str, attribute: str | None, runtime: Runtime) -> group.ExitCode:
    """Print the record of one address, or one attribute of it, as JSON."""
    group.echo(json.dumps(await runtime.discoverer.record(address, attribute)))
    return group.ExitCode.OK


def _exit_code(count: int) -> group.ExitCode:
    if not count:
        raise group.CommandError(
            "no entry is found; change the criteria, or name another domain with --registry",
            group.ExitCode.FAILED,
        )
    return group.ExitCode.OK


def _row(entry: FoundEntry) -> tuple[str, ...]:
    lists = (",".join(texts) for texts in (entry.resources, entry.schemas))
    cells = (entry.status, entry.name, entry.user, *lists, entry.url)
    # The values come from other users.
    return tuple(jsonvalue.one_line(cell) if cell else _NONE for cell in cells)


@options.define_command("find", has_log=True)
def command(  # noqa: PLR0913 - one for each option
    *,
    temporary: TemporaryRuntime = temporary_runtime("find", "runtime_name"),
    registry: str | None = REGISTRY,
    user: str | None = options.argument("[USER]", required=False, read=options.read_user),
    name: str | None = options.option("Name of the hyperties or data objects.", "TEXT"),
    schema: str | None = options.option(
        "Scheme or schema of the data objects that the hyperties use.", "TEXT"
    ),
    resources: tuple[str, ...] = options.option(
        "Resource that they offer; repeatable.", "TEXT", flag="--resource"
    ),
    reporter: str | None = options.option(
        "Address of the hyperty that reports the data objects.", "ADDRESS"
    ),
    scheme: str = options.option(
        "Scheme of the addresses that are found, such as comm for data objects.",
        "TEXT",
        default="hyperty",
    ),
    address: str | None = options.option(
        "Address of one hyperty or data object: print its record as JSON.",
        "ADDRESS",
        read=canonical,
    ),
    attribute: str | None = options.option(
        "Print only this attribute of the record, such as status.", "PATH"
    ),
    is_json: bool = options.JSON_LINES,
    is_watch: bool = options.option("Follow what is found until Ctrl-C.", flag="--watch"),
) -> int:
    """Find the hyperties of USER, such as user://a.example/bob, or by name, schema or resource.

    An entry must meet all given criteria. Disconnected entries are shown only if none is live.
    With --watch, new, changed and vanished entries are shown as it happens. With --address, the
    one record of that address is read.
    """
    if address is not None:
        if is_watch or user or name or schema or resources or reporter:
            raise click.UsageError("--address reads one record; leave out criteria and --watch")
        return temporary.run(partial(_print_record, address, attribute or None))
    if attribute is not None:
        raise click.UsageError("--attribute needs --address")
    criteria = Criteria(
        user=user,
        name=name,
        schema=schema,
        resources=resources,
        reporter=reporter,
        scheme=scheme,
    )
    try:
        Query(**criteria)
    except TypeError as exc:
        wanted = "name a user, or --name, --schema, --resource or --reporter"
        raise click.UsageError(f"a criterion is missing; {wanted}") from exc
    except (ValueError, errors.BadUrlError) as exc:
        raise click.UsageError(str(exc)) from exc
    search = _Search(criteria, registry, is_json)
    return temporary.run(search.watch if is_watch else search.find)
