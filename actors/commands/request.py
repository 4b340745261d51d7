"""`python -m actors request`: send one request to an address or to a hyperty of a user."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import click

from actors.cli import own_runtime
from actors.cli.failure import say
from actors.cli.group import CommandError, ExitCode
from actors.cli.options import define_command, read_json
from fsm.commands.parameters import argument, option
from specs.addresses.address import canonical, scheme_of
from specs.jsonvalue import Json, one_line
from specs.limits.protocol import MAX_LIST
from specs.message import MessageType
from specs.reply_code import LAST_SUCCESS

if TYPE_CHECKING:
    from actors.runtime.runtime import Runtime

_USER: Final = frozenset({"user", "user-guid"})
"""Schemes of the addresses of users."""

_VERBS: Final = (
    MessageType.CREATE, MessageType.READ, MessageType.UPDATE, MessageType.DELETE,
    MessageType.EXECUTE,
)  # fmt: skip

_Rest: TypeAlias = tuple[tuple[str, ...], Json]
"""The names, and the value of the request."""


def _read(words: tuple[str, ...]) -> _Rest:
    """Return the words before the last one, and the last word as JSON."""
    *names, value = words
    return tuple(names), read_json(value)


@define_command("request", has_log=True)
def command(
    *,
    run: own_runtime.RunTemporary = own_runtime.temporary_runtime("request", "name"),
    registry: str | None = own_runtime.REGISTRY,
    to: str = argument("TO", read=canonical),
    rest: _Rest = argument("[NAME] JSON", nargs=-1, required=True, gather=_read),
    verb: MessageType = option(members=_VERBS, default=MessageType.CREATE),
    path: str = option(default="", show_default=False),
) -> int:
    """Send a request with the value JSON to the address TO and print the answer.

    If TO is a user, such as user://a.example/bob, the request goes to the hyperty of this user
    with the name NAME; exactly one must be live. The command sends the request by a temporary
    runtime.

    Args:
        verb: Verb of the request.
        path: Path that a handler takes, such as /items.
    """
    is_user = scheme_of(to) in _USER
    names, value = rest
    if len(names) != is_user:
        wanted = f"{to} NAME JSON" if is_user else f"{to} JSON"
        raise click.UsageError(f"the arguments are {wanted}")
    if registry is not None and not is_user:
        raise click.UsageError("--registry is for a request to a user")
    send = partial(_send, value, verb, path)
    if is_user:
        return run(partial(_send_to_user, send, to, names[0], registry))
    return run(partial(send, to))


async def _send(value: Json, verb: str, path: str, to: str, runtime: "Runtime") -> ExitCode:
    """Send a request, and print the answer."""
    caller = await own_runtime.deploy_caller(runtime)
    answer = await caller.request(to, value, verb, path=path)
    texts = {key: answer.body[key] for key in ("value", "description") if key in answer.body}
    say("answer", id=answer.id, code=answer.code, sender=answer.from_, **texts)
    if answer.code <= LAST_SUCCESS:
        return ExitCode.OK
    why = one_line(str(answer.body.get("description", "no reason given")))
    raise CommandError(
        f"{answer.from_} answered {answer.code}: {why}", own_runtime.exit_code(answer.code)
    )


async def _send_to_user(
    send: Callable[[str, "Runtime"], Awaitable[ExitCode]],
    user: str,
    name: str,
    registry: str | None,
    runtime: "Runtime",
) -> ExitCode:
    search = runtime.discoverer.discover(user=user, name=name, domain=registry)
    entries = await search.first(MAX_LIST)
    what = f"{one_line(name)!r} of {user}"
    where = f"the registry of {registry}" if registry else "the registry"
    if not entries:
        raise CommandError(
            f"{where} knows no hyperty {what}; see with `find` what there is, or name another "
            "domain with --registry",
            ExitCode.FAILED,
        )
    live = [entry for entry in entries if entry.is_live]
    if not live:
        why = f"the hyperty {what} is registered, but cannot be reached now; try again later"
        raise CommandError(why, ExitCode.CANNOT_CONNECT)
    if len(live) > 1:
        listed = ", ".join(f"{entry.url} in {entry.runtime}" for entry in live)
        why = f"there are {len(live)} hyperties {what}; name one of these addresses: {listed}"
        raise CommandError(why, ExitCode.REFUSED)
    return await send(live[0].url, runtime)
