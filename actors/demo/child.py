"""The processes of the demonstration: the message node, and the runtimes bob and alice.

`python -m actors.demo.child node|bob|alice OPTIONS` runs one of them, and `run COMMAND...`
any other command. Each of them ends when the process that started it is gone.
"""

import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, final

import attrs
import click
import trio
from typing_extensions import override

from actors.cli.command_error import ExitCode
from actors.cli.entry import enter
from actors.cli.failure import run
from actors.cli.lifetime import serve
from actors.cli.options import check_domain, check_kinds
from actors.cli.output import say_ready
from actors.demo.alice import Scene, script
from actors.demo.narration import ObservingTracer
from actors.demo.script import Beat, What, report
from actors.hyperties import Caller, Counter
from actors.kit.ids import clock_offset, fresh_ids
from actors.kit.log import configure_log
from actors.kit.trace_file import open_trace
from actors.node.app import Node, open_node
from actors.node.config import NodeConfig
from actors.node.limits import UNLIMITED
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from transports.chaos.cuttable import CuttableNetwork
from transports.gate import EVERYBODY, Gate
from transports.link import DEFAULT_PATHS, PROTOFLY_V1, Kind, Link, Listener, Network, ServedPaths
from transports.system import open_system_network

__all__ = ["WatchedNetwork", "main", "until_parent_ends", "until_stopped"]

_READ: Final = 64
"""Bytes read from stdin at once; nothing is expected (ours)."""

_DOMAIN: Final = click.option("--domain", required=True, callback=check_domain)
_TRACE: Final = click.option("--trace", required=True, type=click.Path(path_type=Path))
_MONITOR: Final = click.option("--monitor", is_flag=True)
_NODE: Final = click.option("--node", required=True)
_P2P: Final = click.option("--p2p", required=True, callback=check_kinds)


@click.group("child")
def main() -> None:
    """Run one process of the demonstration."""
    configure_log()


@main.command("node")
@_DOMAIN
@_TRACE
@_MONITOR
@click.option("--registry", required=True, type=click.Path(path_type=Path))
def _node(*, domain: str, registry: Path, trace: Path, monitor: bool) -> int:
    """Serve the domain until SIGTERM: the message node, watched."""
    config = NodeConfig(
        domain=domain,
        registry=registry,
        ids=fresh_ids(),
        limits=UNLIMITED,
        monitor=monitor,
    )
    service = partial(_open_node, config, trace)
    return run(partial(until_parent_ends, partial(serve, service, _say_node)))


@asynccontextmanager
async def _open_node(config: NodeConfig, trace: Path) -> AsyncIterator[Node]:
    async with (
        open_trace(trace, f"node.{config.domain}", bodies=True) as inner,
        open_system_network() as network,
        open_node(
            attrs.evolve(config, clock_offset=clock_offset()),
            network,
            ObservingTracer("node", inner),
        ) as node,
    ):
        yield node


def _say_node(node: Node) -> None:
    say_ready("node", node.domain, url=node.url)


@main.command("bob")
@_DOMAIN
@_TRACE
@_MONITOR
@_NODE
@_P2P
def _bob(*, domain: str, node: str, p2p: tuple[Kind, ...], trace: Path, monitor: bool) -> int:
    """Serve the counting hyperty until SIGTERM."""
    config = RuntimeConfig(
        domain=domain, name="bob", node=node, kinds=p2p, ids=fresh_ids(), monitor=monitor
    )
    announce = partial(say_ready, "runtime", domain)
    service = partial(_open_bob, config, trace)
    return run(partial(until_parent_ends, partial(serve, service, lambda url: announce(url=url))))


@asynccontextmanager
async def _open_bob(config: RuntimeConfig, trace: Path) -> AsyncIterator[str]:
    async with (
        open_trace(trace, config.name, bodies=True) as inner,
        open_system_network() as system,
        open_runtime(
            config,
            WatchedNetwork(config.name, system, config.node),
            ObservingTracer(config.name, inner),
        ) as runtime,
    ):
        yield await runtime.deploy("counter", Counter)


@main.command("alice")
@_DOMAIN
@_TRACE
@_MONITOR
@_NODE
@_P2P
@click.option("--to", "bob", required=True)
@click.option("--requests", type=int, required=True)
def _alice(  # noqa: PLR0913 - one for each option
    *,
    domain: str,
    node: str,
    p2p: tuple[Kind, ...],
    trace: Path,
    monitor: bool,
    bob: str,
    requests: int,
) -> int:
    """Act the script and end."""
    config = RuntimeConfig(
        domain=domain, name="alice", node=node, kinds=p2p, ids=fresh_ids(), monitor=monitor
    )
    act = partial(_act, config, trace, bob, requests)
    return run(partial(until_parent_ends, partial(until_stopped, act)))


async def _act(config: RuntimeConfig, trace: Path, bob: str, requests: int) -> None:
    name = config.name
    async with open_trace(trace, name, bodies=True) as inner, open_system_network() as system:
        seen = ObservingTracer(name, inner, bob)
        network = CuttableNetwork(WatchedNetwork(name, system, config.node))
        async with open_runtime(config, network, seen) as runtime:
            caller = Caller()
            url = await runtime.deploy("caller", lambda: caller)
            report(name, What.NOTE, f"ready: {url}", Beat.SERVES, url=url, pid=os.getpid())
            await script(Scene(caller, bob, network, seen), requests)
            text = "unregisters, takes its routes down, closes its session"
            report(name, What.NOTE, text, Beat.LEAVES)
    report(name, What.DONE, "closed in good order", Beat.GONE)


@main.command("run", context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def _run(command: tuple[str, ...]) -> int:
    """Run a command, and exit with its status."""
    statuses: list[int] = []

    async def work() -> None:
        ended = await trio.run_process(command, stdin=b"", check=False)
        statuses.append(ended.returncode)

    code = run(partial(until_parent_ends, partial(until_stopped, work)))
    return statuses[0] if statuses else code


async def until_parent_ends(work: Callable[[], Awaitable[ExitCode]]) -> ExitCode:
    """Do some work; the end of stdin is a SIGTERM to this process.

    The other end of stdin is a pipe that the parent holds: when the parent is gone,
    killed or not, the pipe has come to its end.
    """
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_watch_parent)
        code = await work()
        nursery.cancel_scope.cancel()
    return code


async def until_stopped(work: Callable[[], Awaitable[None]]) -> ExitCode:
    """Do some work to its end, or until SIGTERM cancels it."""
    is_stopped = False
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:

            async def heed() -> None:
                nonlocal is_stopped
                async for _ in signals:
                    is_stopped = True
                    nursery.cancel_scope.cancel()

            nursery.start_soon(heed)
            await work()
            nursery.cancel_scope.cancel()
    return ExitCode.INTERRUPTED if is_stopped else ExitCode.OK


async def _watch_parent() -> None:
    async with trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())) as stream:
        while await stream.receive_some(_READ):
            pass
    signal.raise_signal(signal.SIGTERM)


@final
class WatchedNetwork(Network):
    """Another network; its listeners and dials are printed.

    Args:
        node: Where the message node is: a link there is none between runtimes.
    """

    def __init__(self, who: str, network: Network, node: str) -> None:
        self._who: Final = who
        self._network: Final = network
        self._node: Final = node

    @override
    async def dial(self, kind: Kind, address: str, subprotocol: str | None = PROTOFLY_V1) -> Link:
        link = await self._network.dial(kind, address, subprotocol)
        if address != self._node:
            report(self._who, What.STEP, f"dials the candidate {kind} {address}", Beat.DIALLED)
        return link

    @override
    def listen(
        self, kind: Kind, where: str, paths: ServedPaths = DEFAULT_PATHS, gate: Gate = EVERYBODY
    ) -> AbstractAsyncContextManager[Listener]:
        return self._listening(kind, where, paths, gate)

    @asynccontextmanager
    async def _listening(
        self, kind: Kind, where: str, paths: ServedPaths, gate: Gate
    ) -> AsyncIterator[Listener]:
        async with self._network.listen(kind, where, paths, gate) as listener:
            text = f"offers the candidate {kind} {listener.address}"
            report(self._who, What.STEP, text, Beat.CANDIDATE, kind=kind, address=listener.address)
            yield listener


if __name__ == "__main__":
    enter(main)
