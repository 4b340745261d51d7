"""A local environment for development: nodes with TLS and logins, runtimes, reloaded hyperties."""

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import cycle
from pathlib import Path
from typing import Final, TypeAlias

import attrs
import trio
from typing_extensions import override

from actors.dev.authority import BadSourceError, LocalTls, Source, Stamp
from actors.keys.signing import SigningKey
from actors.keys.token import login_claims
from actors.kit import ids, log
from actors.kit.supervision.supervisor import Crash
from actors.kit.trace import NULL_TRACER
from actors.node.app import Node, open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.hyperty.hyperty import Hyperty, Profile
from actors.runtime.registry.allocation import NotKeptError
from actors.runtime.runtime import Runtime
from actors.runtime.stubs.credentials import Credentials
from specs.limits.development import RELOAD_INTERVAL
from specs.limits.node import TOKEN_LIFE
from transports import link, system
from transports.tls import client_context

_log = log.get_logger("actors.dev")

_KINDS: Final = (link.Kind.UNIX, link.Kind.TCP, link.Kind.WEBSOCKET)


@attrs.frozen
class LocalLogin(Credentials):
    """Login tokens of one user, signed by a local key; each opens one session.

    Attributes:
        signer: Key that signs the tokens.
        user: Address of the user.
        issuer: Domain of the user, which issues the tokens.
    """

    signer: SigningKey
    user: str
    issuer: str

    @override
    async def token(self, audience: str) -> str:
        await trio.lowlevel.checkpoint()
        claims = login_claims(self.user, audience, time.time_ns() // 1_000_000_000, TOKEN_LIFE)
        return self.signer.signed({"iss": self.issuer, **claims})


ReportReload: TypeAlias = Callable[["Deployment", str, str], None]
"""Receives the outcome of a reload.

The arguments are the hyperty; why its changed code cannot be used, so that the previous code
continues to run, or an empty text; and the traceback of the error, or an empty text.
"""


@attrs.define(eq=False)
class Deployment:
    """Hyperty that runs in the development environment and is reloaded when its file changes.

    Attributes:
        source: Location of its class.
        runtime: Name of its runtime.
        url: Address of the hyperty; a reload keeps it.
        file: Watched file of the class.
    """

    source: Source
    runtime: str
    url: str
    file: Path
    _running: Runtime
    _made: type[Hyperty]
    _stamp: Stamp | None

    async def check(self, report: ReportReload) -> None:
        """Reload the hyperty if its file has changed.

        If cancelled, the hyperty may be stopped.

        Args:
            report: Receives the outcome.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        stamp = await trio.to_thread.run_sync(self.source.stamp, self.file)
        if stamp is None or stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            loaded = self.source.load()
        except BadSourceError as error:
            report(self, str(error), error.details)
            return
        await self._running.rest(self.url)
        with Crash() as crash:
            await self._deploy(loaded)
        if crash.error is None:
            self._made = loaded
            report(self, "", "")
            return
        _log.info("hyperty not reloaded", hyperty=str(self.source), exc_info=crash.error)
        why = f"{self.source} did not start: {type(crash.error).__name__}: {crash.error}"
        report(self, why, "")
        await self._deploy(self._made)

    async def _deploy(self, hyperty_class: type[Hyperty]) -> None:
        """Deploy a class at the hyperty's address, or at a new address if that one is lost."""
        name = self.source.name
        try:
            self.url = await self._running.deploy(Profile(name, address=self.url), hyperty_class)
        except NotKeptError:
            self.url = await self._running.deploy(name, hyperty_class)


@attrs.frozen
class Environment:
    """Running development environment: nodes, addresses of runtimes by name, and hyperties."""

    nodes: Sequence[Node]
    runtimes: Mapping[str, str]
    deployments: Sequence[Deployment]


@asynccontextmanager
async def open_environment(
    configs: Sequence[NodeConfig],
    tls: LocalTls,
    plans: Mapping[str, tuple[Credentials, Sequence[Source]]],
    report: ReportReload,
) -> AsyncIterator[Environment]:
    """Run nodes, runtimes and their hyperties while the context is open.

    Args:
        configs: Configuration of each node; several nodes share an engine. The runtimes are spread
            over the nodes.
        tls: Files of TLS; the runtimes trust the authority.
        plans: Credentials and hyperties of each runtime, by the name of the runtime.
        report: Receives the outcome of each reload.

    If cancelled, everything is closed in order, as by the end of the context.

    Raises:
        BadSourceError: A hyperty cannot be loaded.
        ListenError: A node cannot listen.
    """
    loaded = {
        name: [(each, *_load_class(each)) for each in sources]
        for name, (_, sources) in plans.items()
    }
    dials, offset = client_context(tls.ca), ids.clock_offset()
    async with AsyncExitStack() as stack:
        network = await stack.enter_async_context(system.open_system_network(dials))
        nodes = []
        for config in configs:
            timed = attrs.evolve(config, ids=ids.fresh_ids(), clock_offset=offset)
            nodes.append(await stack.enter_async_context(open_node(timed, network, NULL_TRACER)))
        runtimes: dict[str, str] = {}
        deployments: list[Deployment] = []
        for (name, (login, _)), node in zip(plans.items(), cycle(nodes)):
            own = RuntimeConfig(
                domain=node.domain,
                name=name,
                node=node.url,
                tls=dials,
                kinds=_KINDS,
                credentials=login,
                ids=ids.fresh_ids(),
                clock_offset=offset,
            )
            runtime = await stack.enter_async_context(open_runtime(own, network, NULL_TRACER))
            await runtime.enter()
            runtimes[name] = runtime.url
            for source, file, stamp, made in loaded[name]:
                url = await runtime.deploy(source.name, made)
                deployments.append(Deployment(source, name, url, file, runtime, made, stamp))
        nursery = await stack.enter_async_context(trio.open_nursery())
        nursery.start_soon(_watch, deployments, report)
        yield Environment(nodes, runtimes, deployments)
        nursery.cancel_scope.cancel()


def _load_class(source: Source) -> tuple[Path, Stamp | None, type[Hyperty]]:
    file = source.file()
    # Read before the file, so a change during the read is noticed.
    stamp = source.stamp(file)
    return file, stamp, source.load()


async def _watch(deployments: Sequence[Deployment], report: ReportReload) -> None:
    while True:
        await trio.sleep(RELOAD_INTERVAL)
        for deployment in deployments:
            await deployment.check(report)
