"""`python -m actors release`: give names of runtimes back to a node."""

import secrets
from functools import partial
from typing import Any, Final

import click

from actors.cli.config_file import config_option
from actors.cli.failure import run, say
from actors.cli.group import CommandError, ExitCode
from actors.cli.node_access import check_node, credentials_options, enter
from actors.cli.options import (
    check_domain,
    check_name,
    client_tls_options,
    if_given,
    log_option,
    node_option,
)
from actors.kit.ids import fresh_ids
from actors.kit.trace import NULL_TRACER
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.stubs.credentials import ReleaseError
from specs.reply_code import Code
from transports.system import open_system_network

_REFUSED: Final = frozenset({Code.UNAUTHENTICATED, Code.FORBIDDEN, Code.NOT_FOUND})


def _check_names(
    ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    return tuple(check_name(ctx, parameter, one) for one in value)


@click.command("release")
@node_option
@click.option("--domain", required=True, callback=check_domain, help="The domain of the node.")
@click.option(
    "--name",
    callback=if_given(check_name),
    help="Name of the runtime that logs in, for a token that is valid for one runtime only, or "
    "for a user that has too many names [default: a new one, which is given back too].",
)
@click.argument("names", metavar="NAME...", nargs=-1, required=True, callback=_check_names)
@credentials_options
@client_tls_options()
@config_option
@log_option
def command(  # type: ignore[explicit-any] # options with the names of fields
    *, domain: str, name: str | None, names: tuple[str, ...], **same: Any
) -> int:
    """Give names of runtimes, such as alice, back to the node of a domain.

    Where users log in, a name belongs to the user who opens it first, until 30 days after its
    last session. Log in as this user; any user can open a name after its release, as soon as no
    runtime has it any more.
    """
    config = RuntimeConfig(
        domain=domain,
        name=name or f"release-{secrets.token_hex(4)}",
        kinds=(),
        ids=fresh_ids(),
        **same,
    )
    return run(partial(_release, config, names, is_passing=name is None))


async def _release(config: RuntimeConfig, names: tuple[str, ...], *, is_passing: bool) -> ExitCode:
    async with open_system_network(config.tls) as network:
        await check_node(network, config.node)
        async with open_runtime(config, network, NULL_TRACER) as runtime:
            await enter(runtime)
            try:
                if is_passing:
                    await runtime.release_name()
                for name in names:
                    await runtime.release_name(name)
                    say("released", name=name)
            except ReleaseError as exc:
                code = ExitCode.REFUSED if exc.code in _REFUSED else ExitCode.FAILED
                raise CommandError(f"{exc}; log in as the user of the name", code) from exc
    return ExitCode.OK
