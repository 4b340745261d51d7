"""A runtime that exists for one command only."""

import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, final

import attrs
import click

from actors.catalogue.source import Places
from actors.cli.config_file import config_option
from actors.cli.failure import run
from actors.cli.group import CommandError, ExitCode
from actors.cli.node_access import check_node, credentials_options, enter
from actors.cli.options import (
    OpenTracer,
    Option,
    check_domain,
    check_name,
    client_tls_options,
    identity_option,
    if_given,
    log_option,
    made_from,
    node_option,
    trace_options,
)
from actors.commands.catalogues import (
    catalogue_access,
    catalogue_option,
    nodes_option,
    timed,
    topology_option,
    trust_option,
)
from actors.kit.ids import fresh_ids
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


@final
@attrs.frozen
class TemporaryRuntime:
    """A configured runtime, opened by `run`.

    Attributes:
        is_unnamed: Its name was generated; `run` gives it back to the node.
    """

    config: RuntimeConfig
    trace: OpenTracer
    is_unnamed: bool

    def run(self, work: Callable[[Runtime], Awaitable[ExitCode]]) -> int:
        """Open the runtime, and do some work; return the exit status.

        Raises:
            CommandError: The work, or the node, refuses.
        """
        return run(partial(self._run, work))

    async def _run(self, work: Callable[[Runtime], Awaitable[ExitCode]]) -> ExitCode:
        config = self.config
        async with open_system_network(config.tls) as network:
            await check_node(network, config.node)
            async with (
                self.trace(config.name) as tracer,
                open_runtime(timed(config), network, tracer) as runtime,
            ):
                await enter(runtime)
                if self.is_unnamed and config.credentials is not NO_CREDENTIALS:
                    # However it ends: the name is free when its session is over.
                    with suppress(ReleaseError):
                        await runtime.release_name()
                try:
                    return await work(runtime)
                except SearchError as error:
                    raise CommandError(f"{error}", exit_code(error.code)) from error


registry_option = click.option(
    "--registry",
    metavar="DOMAIN",
    callback=if_given(check_domain),
    help="Domain whose registry is searched [default: that of the node].",
)
"""The option `--registry` of commands that search."""


def temporary_runtime(command_name: str, name_option: str) -> Option:
    """Add the options of a runtime for one command; the command gets `temporary`.

    Args:
        command_name: Name of the command, with which made names begin.
        name_option: The option for the name of the runtime.
    """

    def make(  # type: ignore[explicit-any] # options with the names of fields
        *,
        name: str | None,
        domain: str,
        foreign: dict[str, str],
        places: Places | None,
        trust: Path | None,
        trace: OpenTracer,
        **same: Any,
    ) -> TemporaryRuntime:
        config = RuntimeConfig(
            domain=domain,
            name=name or f"{command_name}-{secrets.token_hex(4)}",
            kinds=(),
            nodes=foreign,
            catalogues=catalogue_access(places, trust, f"{domain}.{command_name}"),
            ids=fresh_ids(),
            **same,  # options with the names of fields
        )
        return TemporaryRuntime(config, trace, name is None)

    names = {
        name_option.removeprefix("--").replace("-", "_"): "name",
        **{one: one for one in _TAKEN},
    }
    return made_from(
        "temporary",
        make,
        node_option,
        click.option(
            "--domain", required=True, callback=check_domain, help="The domain of the node."
        ),
        click.option(
            name_option,
            callback=if_given(check_name),
            help="Name of the runtime that asks, for a token that is valid for one runtime only "
            "[default: a new one each time].",
        ),
        topology_option,
        nodes_option,
        catalogue_option,
        trust_option,
        credentials_options,
        client_tls_options("foreign"),
        identity_option,
        trace_options,
        config_option,
        log_option,
        names=names,
    )


_TAKEN: Final = (
    *("node", "domain", "topology", "foreign", "places", "trust", "credentials", "tls"),
    *("insecure", "identity", "trace"),
)
