"""`python -m actors send`: send events to a hyperty."""

from functools import partial
from typing import TYPE_CHECKING

from actors.cli import options, own_runtime
from actors.cli.failure import say
from actors.cli.group import CommandError, ExitCode
from actors.cli.lines import for_each_line
from fsm.commands.parameters import argument
from specs.addresses.address import canonical
from specs.errors import ProtoflyError
from specs.jsonvalue import Json

if TYPE_CHECKING:
    from actors.runtime.runtime import Runtime


@options.define_command("send", has_log=True)
def command(
    *,
    run: own_runtime.RunTemporary = own_runtime.temporary_runtime("send", "name"),
    to: str = argument("TO", read=canonical),
    value: str = argument("[JSON]", required=False, default="-"),
) -> int:
    """Send the event JSON to the hyperty with the address TO; there is no answer.

    Without JSON, or if JSON is `-`, each line of the standard input is an event.
    """
    values = None if value == "-" else [options.read_json(value)]
    return run(partial(_send, to, values))


async def _send(to: str, values: list[Json] | None, runtime: "Runtime") -> ExitCode:
    caller = await own_runtime.deploy_caller(runtime)
    count = 0

    async def send(value: Json) -> None:
        nonlocal count
        try:
            await caller.send(to, value)
        except (ProtoflyError, ValueError) as exc:
            raise CommandError(str(exc), ExitCode.USAGE) from exc
        count += 1

    if values is None:
        await for_each_line(send)
    else:
        await send(values[0])
    say("sent", to=to, events=count)
    return ExitCode.OK
