"""`python -m actors release`: give names of runtimes back to a node."""

import secrets
from functools import partial
from typing import Any, Final

from actors.cli import failure, group, node_access, options
from actors.kit.ids import fresh_ids
from actors.kit.trace import NULL_TRACER
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.stubs.credentials import ReleaseError
from specs.reply_code import Code
from transports.system import open_system_network

_REFUSED: Final = frozenset({Code.UNAUTHENTICATED, Code.FORBIDDEN, Code.NOT_FOUND})


@options.define_command("release", has_log=True)
def command(  # type: ignore[explicit-any] # values of fields
    *,
    own: dict[str, Any] = options.fields(
        RuntimeConfig,
        node=options.NODE,
        domain=options.OWN_DOMAIN,
        name=options.option(
            "Name of the runtime that logs in, for a token that is valid for one runtime only, or "
            "for a user that has too many names [default: a new one, which is given back too].",
            required=False,
            read=options.NAME,
        ),
        credentials=node_access.CREDENTIALS,
        tls=options.CLIENT_TLS,
        insecure=options.INSECURE,
    ),
    names: tuple[str, ...] = options.argument(
        "NAME...", nargs=-1, required=True, read=options.NAME
    ),
) -> int:
    """Give names of runtimes, such as alice, back to the node of a domain.

    Where users log in, a name belongs to the user who opens it first, until 30 days after its
    last session. Log in as this user; any user can open a name after its release, as soon as no
    runtime has it any more.
    """
    name = own["name"] or f"release-{secrets.token_hex(4)}"
    config = RuntimeConfig(**{**own, "name": name}, ids=fresh_ids())
    return failure.run(partial(_release, config, names, is_passing=own["name"] is None))


async def _release(
    config: RuntimeConfig, names: tuple[str, ...], *, is_passing: bool
) -> group.ExitCode:
    async with open_system_network(config.tls) as network:
        await node_access.check_node(network, config.node)
        async with open_runtime(config, network, NULL_TRACER) as runtime:
            await node_access.enter(runtime)
            try:
                if is_passing:
                    await runtime.release_name()
                for name in names:
                    await runtime.release_name(name)
                    failure.say("released", name=name)
            except ReleaseError as exc:
                code = group.ExitCode.REFUSED if exc.code in _REFUSED else group.ExitCode.FAILED
                raise group.CommandError(f"{exc}; log in as the user of the name", code) from exc
    return group.ExitCode.OK
