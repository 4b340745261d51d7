"""`python -m actors request`: ask an address once."""

import secrets
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import click
import orjson

from actors.catalogue.source import Places
from actors.cli.command_error import CommandError, ExitCode
from actors.cli.config_file import config_option
from actors.cli.failure import run
from actors.cli.node_access import check_node, credentials_options, enter
from actors.cli.options import (
    OpenTracer,
    check_address,
    check_domain,
    check_name,
    client_tls_options,
    identity_option,
    if_given,
    log_option,
    node_option,
    trace_options,
)
from actors.cli.output import say
from actors.commands.catalogues import (
    catalogue_access,
    catalogue_option,
    nodes_option,
    timed,
    topology_option,
    trust_option,
)
from actors.hyperties import Caller
from actors.kit.ids import fresh_ids
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.runtime import Runtime
from actors.runtime.stubs.credentials import NO_CREDENTIALS, Credentials, ReleaseError
from fsm.registry.resolve.config import Topology
from specs.jsonvalue import Json
from specs.message import Message
from specs.reply_code import LAST_SUCCESS, Code
from transports.system import open_system_network

__all__ = ["command"]

_MEANING: Final = {
    Code.UNAUTHENTICATED: ExitCode.REFUSED,
    Code.FORBIDDEN: ExitCode.REFUSED,
    Code.TIMEOUT: ExitCode.TIMEOUT,
    Code.BACKEND_TIMEOUT: ExitCode.TIMEOUT,
    Code.UNAVAILABLE: ExitCode.CANNOT_CONNECT,
}
"""Exit statuses of answers; other refusals are `ExitCode.FAILED`."""


def _check_json(_: click.Context, __: click.Parameter, value: str) -> Json:
    try:
        parsed: Json = orjson.loads(value)
    except orjson.JSONDecodeError as exc:
        raise click.BadParameter(f"{value!r} is no JSON: {exc}") from exc
    return parsed


@click.command("request")
@node_option
@click.option("--domain", required=True, callback=check_domain, help="The domain of the node.")
@click.option(
    "--name",
    callback=if_given(check_name),
    help="Name of the runtime that sends the request, for a token that is valid for one "
    "runtime only [default: a new one each time].",
)
@click.argument("to", metavar="TO", callback=check_address)
@click.argument("value", metavar="JSON", callback=_check_json)
@topology_option
@nodes_option
@catalogue_option
@trust_option
@credentials_options
@client_tls_options("foreign")
@identity_option
@trace_options
@config_option
@log_option
def command(  # noqa: PLR0913 - one for each option
    *,
    node: str,
    domain: str,
    name: str | None,
    to: str,
    value: Json,
    topology: str,
    foreign: dict[str, str],
    places: Places | None,
    trust: Path | None,
    credentials: Credentials,
    tls: ssl.SSLContext | None,
    insecure: bool,
    identity: Path | None,
    trace: OpenTracer,
) -> int:
    """Send a request with the value JSON to the address TO and print the answer.

    A runtime is made for the question and taken down after it.
    """
    config = RuntimeConfig(
        domain=domain,
        name=name or f"request-{secrets.token_hex(4)}",
        node=node,
        tls=tls,
        insecure=insecure,
        kinds=(),
        topology=Topology(topology),
        nodes=foreign,
        catalogues=catalogue_access(places, trust, f"{domain}.request"),
        credentials=credentials,
        identity=identity,
        ids=fresh_ids(),
    )
    is_passing = name is None and credentials is not NO_CREDENTIALS
    return run(partial(_ask, config, trace, partial(_asked, to, value, is_passing=is_passing)))


async def _ask(
    config: RuntimeConfig, trace: OpenTracer, ask: Callable[[Runtime], Awaitable[Message]]
) -> ExitCode:
    async with open_system_network(config.tls) as network:
        await check_node(network, config.node)
        async with (
            trace(config.name) as tracer,
            open_runtime(timed(config), network, tracer) as runtime,
        ):
            await enter(runtime)
            answer = await ask(runtime)
    return _print(answer)


async def _asked(to: str, value: Json, runtime: Runtime, *, is_passing: bool) -> Message:
    """Send the request; give a name that was made for it back first, however it ends."""
    if is_passing:
        with suppress(ReleaseError):
            await runtime.release_name()
    caller = Caller()
    await runtime.deploy("caller", lambda: caller)
    return await caller.request(to, value)


def _print(answer: Message) -> ExitCode:
    say("answer", code=answer.code, sender=answer.from_, **_shown(answer))
    if answer.code <= LAST_SUCCESS:
        return ExitCode.OK
    why = answer.body.get("description", "no reason given")
    known = answer.code in set(Code)
    code = _MEANING.get(Code(answer.code), ExitCode.FAILED) if known else ExitCode.FAILED
    raise CommandError(f"{answer.from_} answered {answer.code}: {why}", code)


def _shown(answer: Message) -> dict[str, Json]:
    return {key: answer.body[key] for key in ("value", "description") if key in answer.body}
