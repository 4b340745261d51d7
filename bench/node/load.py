"""Very many sessions on one node process: most are idle, some talk (RELIABILITY P1, R3).

Prints what a node needs for an idle session of upstream's plain stub, how fast sessions
come, what their heartbeats cost, how long messages take between those that talk, and how long it
takes until all are back that have lost their connections at once.
"""

import gc
import sys
import time
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Final, final

import attrs
import click
import orjson
import trio

from bench.node.crowd import (
    UNLIMITED,
    Crowded,
    CrowdError,
    Peer,
    percentile,
    quiet_node,
    raise_file_limit,
)
from bench.node.routed import be_known
from bench.verdict import Verdict

REACH: Final = 24.0
"""KiB of memory for an idle session (DESIGN section 11)."""

BACK: Final = 15.0
"""Seconds in which all sessions are back, whose connections were lost at once (R3)."""

_AT_ONCE: Final = 64
_OTHER: Final = "127.0.0.2"
_BODY: Final = "x" * 100


@final
@attrs.frozen
class Figures:
    """The measured figures.

    Attributes:
        sessions: How many there were, idle and active.
        errors: Connections that failed or were closed, and answers that were no message.
        kib_per_session: Memory of the node for an idle session.
        connects: Sessions that came in a second.
        connect_p99: Milliseconds a session took to come, of the slowest in a hundred.
        idle_cpu: Percent of one core that the node took while no peer sent messages.
        active_cpu: The same while the active ones talked.
        client_cpu: What the crowd's own process took of one core meanwhile, in percent.
        waited: Percent of that time in which the node had to wait for a processor.
        messages: Messages a second that the active ones sent.
        p50: Milliseconds of such a message.
        p99: The same of the slowest in a hundred.
        back: Seconds until all had their sessions again, after they had lost their connections.
    """

    sessions: int
    errors: int
    kib_per_session: float
    connects: float
    connect_p99: float
    idle_cpu: float
    active_cpu: float
    client_cpu: float
    waited: float
    messages: float
    p50: float
    p99: float
    back: float


@final
class _Crowd:
    """All peers; connected ones stay, and answer pings, in a nursery."""

    def __init__(self, node: Crowded, staying: trio.Nursery) -> None:
        self.node = node
        self._staying = staying
        self.errors = 0
        self.connected: list[float] = []
        self.latencies: list[float] = []

    async def come(self, peers: list[Peer], at_once: int = _AT_ONCE) -> None:
        """Connect all of them, a limited number at once."""
        waiting = iter(peers)
        async with trio.open_nursery() as nursery:
            for _ in range(at_once):
                nursery.start_soon(self._connect, waiting)

    async def _connect(self, waiting: Iterator[Peer]) -> None:
        for peer in waiting:
            began = time.perf_counter()
            try:
                await peer.be_plain(self.node.place)
            except (CrowdError, OSError) as exc:
                self.failed(exc)
            else:
                self._staying.start_soon(self._stay, peer)
            self.connected.append(time.perf_counter() - began)

    async def _stay(self, peer: Peer) -> None:
        """Read what comes, and note how long it took."""
        try:
            while True:
                sent_at = orjson.loads(await peer.receive())["body"].get("at")
                if sent_at is None:
                    self.errors += 1
                else:
                    self.latencies.append(time.perf_counter() - sent_at)
        except CrowdError as exc:
            self.failed(exc)

    def failed(self, error: Exception) -> None:
        """Note that a connection was refused, or has ended."""
        self.errors += 1
        print(f"failed: {error}", file=sys.stderr)

    async def talk(self, peer: Peer, other: Peer, pause: float) -> None:
        """Send a message, and another one, at an even pace."""
        began = trio.current_time()
        for number in count(1):
            body = {"at": time.perf_counter(), "value": _BODY}
            to, from_ = f"{other.runtime}/ua", f"{peer.runtime}/ua"
            message = {"id": number, "type": "create", "from": from_, "to": to, "body": body}
            try:
                await peer.send(orjson.dumps(message))
            except OSError as exc:
                self.failed(exc)
                return
            await trio.sleep_until(began + number * pause)  # late once is not late for ever

    async def cpu(self, seconds: float) -> float:
        """Return the percentage of a core that the node takes for a while."""
        began, spent = time.perf_counter(), self.node.cpu()
        await trio.sleep(seconds)
        return 100 * (self.node.cpu() - spent) / (time.perf_counter() - began)


async def _back(crowd: _Crowd, peers: list[Peer]) -> float:
    """Cut all connections at once; return the seconds until each runtime was answered again."""
    for peer in peers:
        peer.close()
    began = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for peer in peers:
            nursery.start_soon(_return, crowd, peer.runtime.rpartition("/")[2])
    return time.perf_counter() - began


async def _return(crowd: _Crowd, name: str) -> None:
    peer = Peer(name, _OTHER)  # the ports of the connections that were cut are not free yet
    try:
        await peer.be_plain(crowd.node.place)
        await be_known(peer)
    except (CrowdError, OSError) as exc:
        crowd.failed(exc)


async def measure(idle: int, active: int, seconds: float) -> Figures:
    """Let idle sessions come, then active ones, then let these talk."""
    async with quiet_node(*UNLIMITED) as node:
        async with trio.open_nursery() as nursery:
            crowd = _Crowd(node, nursery)
            await crowd.come([Peer(f"warm-{number}") for number in range(20)])
            crowd.connected.clear()
            sleepers = [Peer(f"idle-{number}") for number in range(idle)]
            talkers = [Peer(f"active-{number}") for number in range(active)]

            memory, began = node.memory(), time.perf_counter()
            await crowd.come(sleepers)
            took = time.perf_counter() - began
            idle_cpu = await crowd.cpu(seconds)
            grown = node.memory() - memory

            await crowd.come(talkers)
            await trio.sleep(1.0)  # the last of them are let in, but have no session yet
            for number, peer in enumerate(talkers):
                nursery.start_soon(crowd.talk, peer, talkers[number - 1], 1.0)
                await trio.sleep(1.0 / active)
            await trio.sleep(2.0)
            crowd.latencies.clear()
            client, waited, began = time.process_time(), node.waited(), time.perf_counter()
            active_cpu = await crowd.cpu(seconds)
            share = 100 / (time.perf_counter() - began)
            client = (time.process_time() - client) * share
            waited = (node.waited() - waited) * share
            nursery.cancel_scope.cancel()
        back = await _back(crowd, [*sleepers, *talkers])
    return Figures(
        sessions=idle + active,
        errors=crowd.errors,
        kib_per_session=grown / idle / 1024,
        connects=idle / took,
        connect_p99=percentile(crowd.connected, 99) * 1e3,
        idle_cpu=idle_cpu,
        active_cpu=active_cpu,
        client_cpu=client,
        waited=waited,
        messages=len(crowd.latencies) / seconds,
        p50=percentile(crowd.latencies, 50) * 1e3,
        p99=percentile(crowd.latencies, 99) * 1e3,
        back=back,
    )


@click.command()
@click.option("--idle", default=1000, show_default=True, help="Sessions that say nothing.")
@click.option("--active", default=100, show_default=True, help="Sessions that send 1 message/s.")
@click.option("--seconds", default=25.0, show_default=True, help="Length of each measurement.")
@click.option("--full", is_flag=True, help="10,000 idle and 1,000 active sessions.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(idle: int, active: int, seconds: float, *, full: bool, as_json: bool) -> None:
    """Measure very many sessions on one node; exit 1 if one failed, or takes too much memory."""
    raise_file_limit()
    gc.disable()  # a second without reading would be measured as the node's
    sizes = (10_000, 1000) if full else (idle, active)
    figures = trio.run(partial(measure, *sizes, seconds))
    ratio = figures.kib_per_session / REACH
    too_large = () if ratio <= 1.0 else (f"an idle session takes more than {REACH:.0f} KiB",)
    failed = (f"{figures.errors} errors",) if figures.errors else ()
    late = () if figures.back <= BACK else (f"all are back after {figures.back:.1f} s",)
    Verdict(
        bench="load",
        what="KiB of the node for an idle session of upstream's plain form / KiB it may take",
        ours=figures.kib_per_session,
        peer=REACH,
        ratio=ratio,
        reach=1.0,
        missed=(*too_large, *failed, *late),
        not_measured=(*(() if full else ("10,000 sessions: --full",)), "upstream's node"),
        figures=attrs.asdict(figures),
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
