"""A runtime that exists for one command only."""

import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from actors.catalogue.source import Places
from actors.cli import failure, node_access, options
from actors.cli.group import CommandError, ExitCode
from actors.commands import catalogues
from actors.kit.ids import fresh_ids
from actors.resources import open_tracer
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.discovery.search import SearchError
from actors.runtime.runtime import Runtime
from actors.runtime.stubs.credentials import NO_CREDENTIALS, ReleaseError
from specs.reply_code import Code
from transports.system import open_system_network

_MEANING: Final = {
    Code.UNAUTHENTICATED: ExitCode.REFUSED,
    Code.FORBIDDEN: ExitCode.REFUSED,
    Code.TIMEOUT: ExitCode.TIMEOUT,
    Code.BACKEND_TIMEOUT: ExitCode.TIMEOUT,
    Code.UNAVAILABLE: ExitCode.CANNOT_CONNECT,
}
"""Exit statuses of answers; other refusals are `ExitCode.FAILED`."""


def exit_code(code: int) -> ExitCode:
    """Return the exit status for a reply code that refuses."""
    known = code in set(Code)
    return _MEANING.get(Code(code), ExitCode.FAILED) if known else ExitCode.FAILED


Work: TypeAlias = Callable[[Runtime], Awaitable[ExitCode]]

RunTemporary: TypeAlias = Callable[[Work], ExitCode]
"""Opens a runtime, and does some work; returns the exit status.

Raises `CommandError` if the work, or the node, refuses.
"""


def runtime_opener(  # type: ignore[explicit-any] # values of fields
    command: str,
    same: dict[str, Any],
    trace: options.OpenTracer = partial(open_tracer, None),  # noqa: B008 - none is opened
) -> RunTemporary:
    """Return what opens a runtime of these fields.

    Without a name, one is made of that of the command, and given back to the node at the end.
    """
    name = same["name"] or f"{command}-{secrets.token_hex(4)}"
    config = RuntimeConfig(**{**same, "name": name}, ids=fresh_ids())

    async def open_runtime_for(work: Work) -> ExitCode:
        async with open_system_network(config.tls) as network:
            await node_access.check_node(network, config.node)
            async with (
                trace(config.name) as tracer,
                open_runtime(catalogues.timed(config), network, tracer) as runtime,
            ):
                await node_access.enter(runtime)
                if same["name"] is None and config.credentials is not NO_CREDENTIALS:
                    # However it ends: the name is free when its session is over.
                    with suppress(ReleaseError):
                        await runtime.release_name()
                try:
                    return await work(runtime)
                except SearchError as error:
                    raise CommandError(f"{error}", exit_code(error.code)) from error

    return lambda work: failure.run(partial(open_runtime_for, work))


REGISTRY: Final = options.option(
    "DOMAIN",
    text="Domain whose registry is searched [default: that of the node].",
    read=options.DOMAIN,
)


def temporary_runtime(command: str, name_option: str) -> Any:  # type: ignore[explicit-any] # as `group`
    """Declare a parameter as the `RunTemporary` of a command.

    Args:
        command: Name of the command, with which made names begin.
        name_option: Name of the option for the name of the runtime.
    """
    same = options.fields(
        RuntimeConfig,
        node=options.NODE,
        domain=options.OWN_DOMAIN,
        name=options.option(
            text=(
                "Name of the runtime that asks, for a token that is valid for one runtime only "
                "[default: a new one each time]."
            ),
            name=name_option,
            required=False,
            read=options.NAME,
        ),
        topology=options.option(),
        nodes=catalogues.FOREIGN,
        credentials=node_access.CREDENTIALS,
        tls=options.CLIENT_TLS,
        insecure=options.option(),
        identity=options.option(),
    )

    def make(  # type: ignore[explicit-any] # values of fields
        *,
        same: dict[str, Any] = same,
        places: Places | None = catalogues.CATALOGUE,
        trust: Path | None = catalogues.TRUST,
        trace: options.OpenTracer = options.TRACE,
    ) -> RunTemporary:
        access = catalogues.catalogue_access(places, trust, f"{same['domain']}.{command}")
        return runtime_opener(command, {**same, "catalogues": access}, trace)

    return options.group(make)
