"""The processes of the demonstration: the message node, and the runtimes bob and alice.

`python -m actors.demo.child node|bob|alice OPTIONS` runs one of them, and `run COMMAND...`
any other command. Each of them ends when the process that started it is gone.

Alice asks the hyperty of Bob, by the node and by a direct link: single requests, and thousands,
to show how long they take, and that none is lost or doubled.
"""

import os
import signal
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from random import SystemRandom
from typing import Final, TypeAlias, final

import attrs
import click
import trio
from typing_extensions import override

from actors.cli.command_error import CommandError, ExitCode
from actors.cli.entry import enter
from actors.cli.failure import run
from actors.cli.lifetime import serve, until_parent_ends
from actors.cli.options import check_domain, check_kinds
from actors.cli.output import say_ready
from actors.demo.script import Beat, ObservingTracer, What, report
from actors.hyperties import Caller, Counter
from actors.kit.ids import clock_offset, fresh_ids
from actors.kit.log import configure_log
from actors.kit.trace_file import open_trace
from actors.node.app import Node, open_node
from actors.node.config import NodeConfig
from actors.node.limits import UNLIMITED
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.testing.chaos.channels import ObservedEnd
from actors.testing.chaos.link_faults import LinkParties
from actors.testing.chaos.network import ChaosNetwork
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import P2P_TIMEOUT, REPLY_TIMEOUT
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.channel_terms import ChannelTerms
from transports.gate import EVERYBODY, Gate
from transports.link import (
    DEFAULT_PATHS,
    PROTOFLY_V1,
    ChannelEnd,
    Kind,
    Link,
    Listener,
    Network,
    ServedPaths,
)
from transports.system import open_system_network

__all__ = [
    "WORKERS",
    "Latencies",
    "NumberedRequests",
    "Scene",
    "WatchedNetwork",
    "compared",
    "main",
    "measure",
    "script",
    "until_stopped",
]

Ask: TypeAlias = Callable[[Json], Awaitable[Message]]
"""Asks the counting hyperty with a value; gives its answer."""

WORKERS: Final = 8
"""Requests under way at once while the link is cut (ours)."""


@final
@attrs.frozen
class Latencies:
    """Durations of requests, one after the other, in microseconds."""

    requests: int
    p50_us: float
    p99_us: float
    per_second: float

    def as_json(self) -> JsonObject:
        """The figures, rounded."""
        return {
            "requests": self.requests,
            "p50_us": round(self.p50_us, 1),
            "p99_us": round(self.p99_us, 1),
            "per_second": round(self.per_second),
        }


def compared(by_node: Latencies, by_link: Latencies) -> list[str]:
    """Return both side by side, as the lines of a table.

    Args:
        by_node: Latencies by the node.
        by_link: Latencies by the direct link.
    """
    ratios = (
        by_link.p50_us / by_node.p50_us,
        by_link.p99_us / by_node.p99_us,
        by_link.per_second / by_node.per_second,
    )
    return [
        f"{'':<12}{'requests':>9}{'p50':>12}{'p99':>12}{'per second':>12}",
        _row("by the node", by_node),
        _row("by the link", by_link),
        f"{'link / node':<21}" + "".join(f"{one:>12.2f}" for one in ratios),
    ]


def _row(route: str, taken: Latencies) -> str:
    p50, p99 = (f"{one:,.0f} us" for one in (taken.p50_us, taken.p99_us))
    return f"{route:<12}{taken.requests:>9,}{p50:>12}{p99:>12}{taken.per_second:>12,.0f}"


@final
class NumberedRequests:
    """Gives every request a number of its own and keeps which were answered well.

    Attributes:
        answered: Requests that were answered 200.
    """

    def __init__(self) -> None:
        self.sent = 0
        self.answered = 0
        self.failures: list[int] = []
        self._progress = trio.Event()

    async def one(self, ask: Ask) -> None:
        """Ask once."""
        self.sent += 1
        answer = await ask({"number": self.sent})
        if answer.code == Code.OK:
            self.answered += 1
        else:
            self.failures.append(answer.code)
        self._progress.set()
        self._progress = trio.Event()

    async def keep_asking(self, ask: Ask, enough: trio.Event) -> None:
        """Ask from several tasks at once until it is enough; all answers are awaited.

        Args:
            ask: Sends one request.
            enough: Is set when no more requests are to be sent.
        """
        async with trio.open_nursery() as nursery:
            for _ in range(WORKERS):
                nursery.start_soon(self._work, ask, enough)

    async def _work(self, ask: Ask, enough: trio.Event) -> None:
        while not enough.is_set():
            await self.one(ask)

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until something holds; looked at after each answer."""
        while not reached():
            await self._progress.wait()


async def measure(requests: NumberedRequests, ask: Ask, count: int) -> Latencies:
    """Ask `count` times, one after the other.

    Args:
        requests: The numbered requests.
        ask: Sends one request.
        count: Number of requests.
    """
    taken: list[int] = []
    began = time.perf_counter_ns()
    for _ in range(count):
        start = time.perf_counter_ns()
        await requests.one(ask)
        taken.append(time.perf_counter_ns() - start)
    total = time.perf_counter_ns() - began
    taken.sort()
    return Latencies(
        requests=count,
        p50_us=taken[count // 2] / 1e3,
        p99_us=taken[min(count - 1, count * 99 // 100)] / 1e3,
        per_second=count * 1e9 / total,
    )


NAME: Final = "alice"
WARM_UP: Final = 50
"""Requests before anything is measured (ours)."""
_LIVE: Final = "live"
IN_FLIGHT: Final = 200
"""Requests before the link is cut, and after it is back (ours)."""


@attrs.frozen
class Scene:
    """The objects that Alice uses."""

    caller: Caller
    bob: str
    network: ChaosNetwork
    seen: ObservingTracer

    async def by_any(self, value: Json) -> Message:
        """Ask Bob by any route."""
        return await self.caller.request(self.bob, value)

    async def by_node(self, value: Json) -> Message:
        """Ask Bob by the message node, link or no link."""
        body: JsonObject = {"value": value, "p2p": False}
        return await self.caller.ask(self.bob, MessageType.CREATE, body)


async def script(scene: Scene, requests: int) -> None:
    """Act what Alice does; each line she prints reports what happened to her.

    Args:
        scene: Participants and links of the demonstration.
        requests: Number of requests.

    Raises:
        CommandError: Something was to be otherwise.
    """
    numbered = NumberedRequests()
    base = scene.network.links
    await _meet(scene, numbered)
    by_node, by_link = await _compare(scene, numbered, requests)
    fell_back = await _cut(scene, numbered, base)
    await _reckon(scene, numbered)
    report(
        NAME,
        What.FIGURES,
        f"{numbered.sent:,} numbered requests: none lost, none doubled",
        Beat.RECKONED,
        node=by_node.as_json(),
        link=by_link.as_json(),
        p50_ratio=round(by_link.p50_us / by_node.p50_us, 3),
        p99_ratio=round(by_link.p99_us / by_node.p99_us, 3),
        numbered=numbered.sent,
        lost=0,
        doubled=0,
        fell_back=fell_back,
    )


async def _meet(scene: Scene, numbered: NumberedRequests) -> None:
    """Ask once: it goes by the node, and a link is set up beside it."""
    await numbered.one(scene.by_any)
    _check(numbered.answered == 1, f"bob answered the first request {numbered.failures}")
    _check(scene.seen.sent_by_node() == 1, "the first request did not go by the node")
    text = "the first request is answered by the node"
    report(NAME, What.NOTE, text, Beat.ANSWERED)
    with _in_time("the link did not become live"):
        await scene.seen.until(lambda: scene.seen.link == _LIVE)


async def _compare(
    scene: Scene, numbered: NumberedRequests, requests: int
) -> tuple[Latencies, Latencies]:
    """Measure the same requests by the node and by the link."""
    seen = scene.seen
    await measure(numbered, scene.by_node, WARM_UP)
    before = seen.sent_by_node()
    by_node = await measure(numbered, scene.by_node, requests)
    _check(seen.sent_by_node() - before == requests, "not all requests went by the node")
    report(
        NAME, What.NOTE, f"{requests:,} requests by the node are measured", Beat.MEASURED_BY_NODE
    )

    await measure(numbered, scene.by_any, WARM_UP)
    before = seen.sent_by_link()
    by_link = await measure(numbered, scene.by_any, requests)
    _check(seen.sent_by_link() - before == requests, "not all requests went by the link")
    report(
        NAME, What.NOTE, f"{requests:,} requests by the link are measured", Beat.MEASURED_BY_LINK
    )
    for row in compared(by_node, by_link):
        report(NAME, What.ROW, row, Beat.COMPARED)
    return by_node, by_link


async def _cut(scene: Scene, numbered: NumberedRequests, base: tuple[LinkParties, ...]) -> int:
    """Close the socket under the link while requests are under way; return how many fell back."""
    seen, enough = scene.seen, trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(numbered.keep_asking, scene.by_any, enough)
        with _in_time("the link did not come back"):
            goal = numbered.answered + IN_FLIGHT
            await numbered.until(lambda: numbered.answered >= goal)
            node_before = seen.sent_by_node()
            report(NAME, What.NOTE, "cuts the socket under the link, requests under way", Beat.CUT)
            _check(scene.network.reset(NAME, None, base) > 0, "there was no socket")
            await seen.until(lambda: seen.lives > 1)
            link_before = seen.sent_by_link()
            await numbered.until(lambda: seen.sent_by_link() >= link_before + IN_FLIGHT)
            fell_back = seen.sent_by_node() - node_before
        enough.set()
    _check(fell_back > 0, "no request fell back to the node")
    text = f"{fell_back} requests went by the node meanwhile; traffic is back on the link"
    report(NAME, What.NOTE, text, Beat.CAUGHT_UP, fell_back=fell_back)
    return fell_back


async def _reckon(scene: Scene, numbered: NumberedRequests) -> None:
    """Ask Bob what came, and compare with what was sent."""
    report = (await scene.by_any("report")).body.get("value")
    _check(not numbered.failures, f"some requests were answered {sorted(set(numbered.failures))}")
    _check(
        report == {"distinct": numbered.sent, "doubled": 0},
        f"{numbered.sent} requests were sent and bob counted {report}",
    )


@contextmanager
def _in_time(complaint: str) -> Iterator[None]:
    try:
        with trio.fail_after(P2P_TIMEOUT + REPLY_TIMEOUT):
            yield
    except trio.TooSlowError as exc:
        raise CommandError(f"the demonstration failed: {complaint}", ExitCode.TIMEOUT) from exc


def _check(holds: object, complaint: str) -> None:
    if not holds:
        raise CommandError(f"the demonstration failed: {complaint}", ExitCode.FAILED)


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
def _alice(
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
        network = ChaosNetwork(WatchedNetwork(name, system, config.node), SystemRandom())
        async with open_runtime(config, network.end(name), seen) as runtime:
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


@final
class WatchedNetwork(Network):
    """Another network; its listeners and dials are printed.

    Args:
        node: Where the message node is: a link there is none between runtimes.
    """

    def __init__(self, who: str, network: Network, node: str | None) -> None:
        self._who: Final = who
        self._network: Final = network
        self._node: Final = node

    @override
    async def dial(
        self,
        kind: Kind,
        address: str,
        subprotocol: str | None = PROTOFLY_V1,
        tls: ssl.SSLContext | None = None,
    ) -> Link:
        link = await self._network.dial(kind, address, subprotocol, tls)
        if address != self._node:
            report(self._who, What.STEP, f"dials the candidate {kind} {address}", Beat.DIALLED)
        return link

    @override
    def listen(
        self, kind: Kind, where: str, paths: ServedPaths = DEFAULT_PATHS, gate: Gate = EVERYBODY
    ) -> AbstractAsyncContextManager[Listener]:
        return self._listening(kind, where, paths, gate)

    @override
    @asynccontextmanager
    async def negotiate(self, terms: ChannelTerms) -> AsyncIterator[ChannelEnd]:
        async with self._network.negotiate(terms) as end:
            what = "answers the offer of" if terms.offer else "offers"
            text = f"{what} a data channel"
            report(self._who, What.STEP, text, Beat.CANDIDATE, kind=Kind.WEBRTC, address=terms.host)
            yield ObservedEnd(end, lambda link: link, self._answered)

    def _answered(self, _sdp: str) -> None:
        report(self._who, What.STEP, "tries the data channel that is answered", Beat.DIALLED)

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
