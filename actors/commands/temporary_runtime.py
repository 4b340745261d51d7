"""A runtime that exists for one command only."""

import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import attrs

from actors.catalogue.source import Places
from actors.cli.failure import run
from actors.cli.group import CommandError, ExitCode
from actors.cli.node_access import CREDENTIALS, check_node, enter
from actors.cli.options import (
    CLIENT_TLS,
    DOMAIN,
    IDENTITY,
    INSECURE,
    NAME,
    NODE,
    OWN_DOMAIN,
    TRACE,
    OpenTracer,
    fields,
    group,
    option,
)
from actors.commands.catalogues import (
    CATALOGUE,
    FOREIGN,
    TOPOLOGY,
    TRUST,
    catalogue_access,
    timed,
)
from actors.kit.ids import fresh_ids
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.discovery.search import SearchError
from actors.runtime.runtime import Runtime
from actors.runtime.stubs.credentials import NO_CREDENTIALS, ReleaseError
from specs.reply_code import Code
from transports.system import open_system_network

if TYPE_CHECKING:
    from actors.catalogue.client import CatalogueAccess

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


REGISTRY: Final = option(
    "Domain whose registry is searched [default: that of the node].", "DOMAIN", read=DOMAIN
)


def temporary_runtime(command: str, name_option: str) -> Any:  # type: ignore[explicit-any] # as `group`
    """Declare a parameter as the `TemporaryRuntime` of a command.

    Args:
        command: Name of the command, with which made names begin.
        name_option: Name of the option for the name of the runtime.
    """

    def access(
        *, places: Places | None = CATALOGUE, trust: Path | None = TRUST, domain: str
    ) -> "CatalogueAccess | None":
        return catalogue_access(places, trust, f"{domain}.{command}")

    same = fields(
        RuntimeConfig,
        node=NODE,
        domain=OWN_DOMAIN,
        name=option(
            "Name of the runtime that asks, for a token that is valid for one runtime only "
            "[default: a new one each time].",
            name=name_option,
            required=False,
            read=NAME,
        ),
        topology=TOPOLOGY,
        nodes=FOREIGN,
        catalogues=group(access),
        credentials=CREDENTIALS,
        tls=CLIENT_TLS,
        insecure=INSECURE,
        identity=IDENTITY,
    )

    def make(*, same: dict[str, Any] = same, trace: OpenTracer = TRACE) -> TemporaryRuntime:  # type: ignore[explicit-any] # values of fields
        name = same["name"] or f"{command}-{secrets.token_hex(4)}"
        config = RuntimeConfig(**{**same, "name": name}, ids=fresh_ids())
        return TemporaryRuntime(config, trace, same["name"] is None)

    return group(make)
