"""`python -m actors find`: find hyperties and data objects, and follow what is found."""

import json
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs
import click

from actors.cli import options
from actors.cli.failure import Table, say
from actors.cli.group import CommandError, ExitCode, echo
from actors.cli.own_runtime import REGISTRY, RunTemporary, temporary_runtime, until_signal
from fsm.commands import parameters
from fsm.registry.discovery import Criteria, FoundEntry, Query
from specs import errors, jsonvalue
from specs.addresses.address import canonical
from specs.limits.discovery import FOUND_AT_ONCE

if TYPE_CHECKING:
    from actors.runtime.runtime import Runtime

_HEAD: Final = ("STATUS", "NAME", "USER", "RESOURCES", "SCHEMAS", "ADDRESS")
_NONE: Final = "-"


async def _find(
    criteria: Criteria, registry: str | None, runtime: "Runtime", *, is_json: bool
) -> ExitCode:
    """Print all entries that meet the criteria."""
    search = runtime.discoverer.discover(domain=registry, **criteria)
    count = 0
    if is_json:
        async for entry in search:
            say("entry", **attrs.asdict(entry))
            count += 1
    else:
        entries = await search.first(FOUND_AT_ONCE + 1)
        count = len(entries)
        Table(*_HEAD).print([_row(entry) for entry in entries[:FOUND_AT_ONCE]])
        if count > FOUND_AT_ONCE:
            echo(f"there are more; these are {FOUND_AT_ONCE}, --json shows all", err=True)
    if not count:
        raise CommandError(
            "no entry is found; change the criteria, or name another domain with --registry",
            ExitCode.FAILED,
        )
    return ExitCode.OK


async def _watch(
    criteria: Criteria, registry: str | None, runtime: "Runtime", *, is_json: bool
) -> ExitCode:
    """Print changes until SIGINT or SIGTERM."""

    async def follow() -> None:
        table = Table("CHANGE", *_HEAD)
        async for change in runtime.discoverer.watch(domain=registry, **criteria):
            if is_json:
                say("change", change=change.change.value, **attrs.asdict(change.entry))
            else:
                table.print([(change.change.value, *_row(change.entry))])

    return await until_signal(follow)


async def _print_record(address: str, attribute: str | None, runtime: "Runtime") -> ExitCode:
    """Print the record of one address, or one attribute of it, as JSON."""
    echo(json.dumps(await runtime.discoverer.record(address, attribute)))
    return ExitCode.OK


def _row(entry: FoundEntry) -> tuple[str, ...]:
    lists = (",".join(texts) for texts in (entry.resources, entry.schemas))
    cells = (entry.status, entry.name, entry.user, *lists, entry.url)
    # The values come from other users.
    return tuple(jsonvalue.one_line(cell) if cell else _NONE for cell in cells)


@options.define_command("find", has_log=True)
def command(
    *,
    run: RunTemporary = temporary_runtime("find", "runtime_name"),
    registry: str | None = REGISTRY,
    criteria: Criteria = parameters.fields(
        Query,
        user=parameters.argument("[USER]", required=False, read=options.read_user),
        name=parameters.option(text="Name of the hyperties or data objects."),
        schema=parameters.option(
            "TEXT", text="Scheme or schema of the data objects that the hyperties use."
        ),
        resources=parameters.option(
            "TEXT", text="Resource that they offer; repeatable.", flag="--resource"
        ),
        reporter=parameters.option(
            "ADDRESS", text="Address of the hyperty that reports the data objects."
        ),
        scheme=parameters.option(
            "TEXT", text="Scheme of the addresses that are found, such as comm for data objects."
        ),
    ),
    address: str | None = parameters.option("ADDRESS", read=canonical),
    attribute: str | None = parameters.option("PATH"),
    is_json: bool = options.JSON_LINES,
    is_watch: bool = parameters.option(flag="--watch"),
) -> int:
    """Find the hyperties of USER, such as user://a.example/bob, or by name, schema or resource.

    An entry must meet all given criteria. Disconnected entries are shown only if none is live.
    With --watch, new, changed and vanished entries are shown as it happens. With --address, the
    one record of that address is read.

    Args:
        address: Address of one hyperty or data object: print its record as JSON.
        attribute: Print only this attribute of the record, such as status.
        is_watch: Follow what is found until Ctrl-C.
    """
    if address is not None:
        if is_watch or any(each for name, each in criteria.items() if name != "scheme"):
            raise click.UsageError("--address reads one record; leave out criteria and --watch")
        return run(partial(_print_record, address, attribute or None))
    if attribute is not None:
        raise click.UsageError("--attribute needs --address")
    try:
        Query(**criteria)
    except TypeError as exc:
        wanted = "name a user, or --name, --schema, --resource or --reporter"
        raise click.UsageError(f"a criterion is missing; {wanted}") from exc
    except (ValueError, errors.BadUrlError) as exc:
        raise click.UsageError(str(exc)) from exc
    work = _watch if is_watch else _find
    return run(partial(work, criteria, registry, is_json=is_json))
