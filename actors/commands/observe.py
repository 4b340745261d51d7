"""`python -m actors observe`: follow a data object, its changes as JSON lines."""

from functools import partial
from typing import TYPE_CHECKING

from actors.cli import options, own_runtime
from actors.cli.failure import say
from actors.cli.group import ExitCode
from fsm.commands.parameters import argument, option
from specs.addresses.address import canonical

if TYPE_CHECKING:
    from actors.runtime.runtime import Runtime


@options.define_command("observe", has_log=True)
def command(
    *,
    run: own_runtime.RunTemporary = own_runtime.temporary_runtime("observe", "name"),
    url: str = argument("URL", read=canonical),
    once: bool = option(),
) -> int:
    """Print the value of the data object URL, and then each change, until Ctrl-C.

    Each line is a JSON object: first the value, then one for each change with its path, the old
    and the new value. The command ends when the object is deleted. `find --scheme comm` and
    `find --scheme ctxt` list data objects.

    Args:
        once: Print the value only.
    """
    return run(partial(_observe, url, once=once))


async def _observe(url: str, runtime: "Runtime", *, once: bool) -> ExitCode:
    caller = await own_runtime.deploy_caller(runtime)

    async def follow() -> None:
        async with caller.observe(url) as copy:
            changes = copy.changes()
            say("value", url=url, version=copy.version, value=copy.value)
            if once:
                return
            async for change in changes:
                texts = {"path": change.path, "old": change.old, "new": change.new}
                say("update", url=url, version=change.version, **texts)
            say("end", url=url)

    return await own_runtime.until_signal(follow)
