"""`python -m actors report`: report a data object that lines of the standard input change."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from actors.cli import options, own_runtime
from actors.cli.failure import say
from actors.cli.group import CommandError, ExitCode
from actors.cli.lines import for_each_line
from fsm.commands.parameters import argument, option
from specs.addresses.address import canonical
from specs.jsonvalue import JsonObject

if TYPE_CHECKING:
    from actors.runtime.objects.reported_object import ReportedObject
    from actors.runtime.runtime import Runtime


@options.define_command("report", has_log=True)
def command(
    *,
    run: own_runtime.RunTemporary = own_runtime.temporary_runtime("report", "runtime_name"),
    name: str = argument("NAME"),
    schema: str = option("SCHEMA", default="ctxt"),
    value: str = option("JSON", default="{}"),
    allow: tuple[str, ...] = option("ADDRESS", read=canonical),
) -> int:
    """Report a data object with the name NAME, and change it by each line of the standard input.

    A line is a JSON object: each of its keys is a path in the value, such as `room.degrees`, and
    gets the value beside it; null removes the attribute. The first printed line has the URL of the
    object. The object is deleted at the end of the input, or by Ctrl-C.

    Args:
        schema: Schema of the object: comm, ctxt, or a catalogue address.
        value: The first value.
        allow: Only the hyperties with these addresses may observe; repeatable [default: all may].
    """
    first = options.read_json(value)
    if not isinstance(first, dict):
        raise click.BadParameter(f"{value!r} is no JSON object", param_hint="'--value'")
    return run(partial(_report, name, schema, first, allow))


async def _report(
    name: str, schema: str, first: JsonObject, allow: Sequence[str], runtime: "Runtime"
) -> ExitCode:
    from actors.runtime.objects.participant import SchemaError  # noqa: PLC0415 - slow to import

    caller = await own_runtime.deploy_caller(runtime)

    async def report() -> None:
        access = {"allow": tuple(allow)} if allow else {"public": True}
        async with caller.report(schema, first, name=name, **access) as reported:
            say("object", url=reported.url, version=reported.version)
            await for_each_line(partial(_change, reported))

    try:
        return await own_runtime.until_signal(report)
    except SchemaError as exc:
        raise CommandError(f"{exc}; correct --value, or the line", ExitCode.USAGE) from exc


async def _change(reported: "ReportedObject", line: object) -> None:
    """Make the changes of one line.

    Raises:
        CommandError: The line is no JSON object.
    """
    if not isinstance(line, dict):
        raise CommandError('a line is no JSON object such as {"degrees": 24}', ExitCode.USAGE)
    for path, value in line.items():
        await reported.set(path, value)
