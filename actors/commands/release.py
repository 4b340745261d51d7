"""`python -m actors release`: give names of runtimes back to a node."""

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from actors.cli import options
from actors.cli.failure import say
from actors.cli.group import CommandError, ExitCode
from actors.cli.own_runtime import LOGIN, OF_NODE, runtime_opener
from actors.runtime.config import RuntimeConfig
from actors.runtime.stubs.credentials import ReleaseError
from fsm.commands import parameters
from specs.reply_code import Code

if TYPE_CHECKING:
    from actors.runtime.runtime import Runtime

_REFUSED: Final = frozenset({Code.UNAUTHENTICATED, Code.FORBIDDEN, Code.NOT_FOUND})


@options.define_command("release", has_log=True)
def command(  # type: ignore[explicit-any] # values of fields
    *,
    own: dict[str, Any] = parameters.fields(
        RuntimeConfig,
        **OF_NODE,
        name=parameters.option(
            text="Name of the runtime that logs in, for a token that is valid for one runtime "
            "only, or for a user that has too many names [default: a new one, which is given back "
            "too].",
            required=False,
            read=options.NAME,
        ),
        **LOGIN,
    ),
    names: tuple[str, ...] = parameters.argument(
        "NAME...", nargs=-1, required=True, read=options.NAME
    ),
) -> int:
    """Give names of runtimes, such as alice, back to the node of a domain.

    Where users log in, a name belongs to the user who opens it first, until 30 days after its
    last session. Log in as this user; any user can open a name after its release, as soon as no
    runtime has it any more.
    """
    return runtime_opener("release", own)(partial(_release, names))


async def _release(names: tuple[str, ...], runtime: "Runtime") -> ExitCode:
    try:
        for name in names:
            await runtime.release_name(name)
            say("released", name=name)
    except ReleaseError as exc:
        code = ExitCode.REFUSED if exc.code in _REFUSED else ExitCode.FAILED
        raise CommandError(f"{exc}; log in as the user of the name", code) from exc
    return ExitCode.OK
