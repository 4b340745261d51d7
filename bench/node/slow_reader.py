"""One peer among a hundred never reads: what the others notice of it (RELIABILITY L1).

By turns without and with the one that does not read, against a real node process: the
latency of the others, the memory of the node, and when and how the one is left.
"""

import gc
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from itertools import cycle
from statistics import median
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
from bench.verdict import Verdict
from specs.limits.protocol import FRAME_MESSAGES

REACH: Final = 2.0
"""p99 of the others with the one, in p99s without (RELIABILITY L1)."""

MEMORY_REACH: Final = 4.0
"""MiB by which the node may grow (RELIABILITY L1)."""

_TICK: Final = 0.01
_BODY: Final = "x" * 150
CALM: Final = 6.0
"""Seconds in which all read, at most: the other rounds last until the node leaves who does not."""

_LEFT_BY: Final = b"\x03\xf5slow-consumer"
_VICTIM_BYTES: Final = 4096
"""What the system receives for the one that never reads: so it is noticed early."""


@final
@attrs.frozen
class Taken:
    """One round.

    Attributes:
        p50: Milliseconds until a message was there.
        p99: The same of the slowest in a hundred.
        p99_second: The same of a usual second: the median of those of all seconds, so that
            what else the machine did for a moment does not count.
        cpu: Percent of one core that the node took.
        waited: Percent of the time in which it had to wait for a processor.
        grown: MiB that the node has more at most than when it began.
        left_after: Seconds from the first message to the one until it was left, if it was.
        left_by: What the one read when it began to read at last.
    """

    p50: float
    p99: float
    p99_second: float
    cpu: float
    waited: float
    grown: float
    left_after: float | None = None
    left_by: str = ""


@final
class Round:
    """A publisher and its readers."""

    def __init__(self, node: Crowded, readers: Sequence[Peer], victim: Peer | None) -> None:
        self._node = node
        self._readers = readers
        self._victim = victim
        self._latencies: list[tuple[float, float]] = []

    async def run(self, publisher: Peer, rate: int, seconds: float) -> Taken:
        """Publish for a while, and measure."""
        async with trio.open_nursery() as nursery:
            for reader in self._readers:
                nursery.start_soon(self._read, reader)
            nursery.start_soon(read_on, publisher)
            await self._publish(publisher, rate, 1.0)
            self._latencies.clear()
            began, memory = time.perf_counter(), self._node.memory()
            cpu, waited = self._node.cpu(), self._node.waited()
            nursery.start_soon(self._watch, memory)
            self._most = memory
            await self._publish(publisher, rate, seconds)
            share = 100 / (time.perf_counter() - began)
            cpu, waited = (self._node.cpu() - cpu) * share, (self._node.waited() - waited) * share
            await trio.sleep(0.5)
            nursery.cancel_scope.cancel()
        grown = (self._most - memory) / 2**20
        latencies = [taken for _, taken in self._latencies]
        p50, p99 = (percentile(latencies, percent) * 1e3 for percent in (50, 99))
        usual = _usual_p99(self._latencies, began)
        if self._victim is None:
            return Taken(p50, p99, usual, cpu, waited, grown)
        left = self._left_after(began), await _last_words(self._victim)
        return Taken(p50, p99, usual, cpu, waited, grown, *left)

    def _left_after(self, began: float) -> float | None:
        times = [at for at, line in self._node.complaints if "slow consumer" in line]
        return None if not times else times[-1] - began

    async def _watch(self, memory: int) -> None:
        self._most = memory
        while True:
            await trio.sleep(0.1)
            self._most = max(self._most, self._node.memory())

    async def _publish(self, publisher: Peer, rate: int, seconds: float) -> None:
        """Send to one after the other, so many a second altogether."""
        everybody = [*self._readers, *([self._victim] if self._victim else [])]
        targets = cycle(peer.runtime for peer in everybody)
        began, sent = time.perf_counter(), 0
        while (passed := time.perf_counter() - began) < seconds:
            lines = []
            while sent < passed * rate and len(lines) < FRAME_MESSAGES:
                sent += 1
                lines.append(_message(publisher.runtime, next(targets), sent))
            if lines:
                await publisher.send(b"\n".join(lines))
            await trio.sleep(_TICK)

    async def _read(self, reader: Peer) -> None:
        while True:
            text = await reader.receive()
            now = time.perf_counter()
            for line in text.split(b"\n"):
                sent_at = orjson.loads(line)["body"].get("at")
                if sent_at is not None:
                    self._latencies.append((sent_at, now - sent_at))


def _usual_p99(latencies: Sequence[tuple[float, float]], began: float) -> float:
    """Return the median of the p99s of all seconds, in milliseconds."""
    seconds = defaultdict[int, list[float]](list)
    for sent_at, taken in latencies:
        seconds[int(sent_at - began)].append(taken)
    return median(percentile(second, 99) for second in seconds.values()) * 1e3


def _message(from_: str, to: str, number: int) -> bytes:
    body = {"at": time.perf_counter(), "value": _BODY}
    message = {
        "id": number,
        "type": "create",
        "from": f"{from_}/ua",
        "to": f"{to}/ua",
        "body": body,
    }
    return orjson.dumps(message)


async def read_on(peer: Peer) -> None:
    """Read what a peer is sent, and forget it."""
    while True:
        await peer.receive()


async def _last_words(victim: Peer) -> str:
    with trio.move_on_after(10), suppress(CrowdError):
        await read_on(victim)
    return repr(victim.closed_by)


async def _round(peers: int, rate: int, seconds: float, *, with_victim: bool) -> Taken:
    if not with_victim:
        seconds = min(seconds, CALM)
    async with quiet_node(*UNLIMITED) as node:
        readers = [Peer(f"r{number}") for number in range(peers - with_victim)]
        publisher = Peer("publisher")
        victim = Peer("victim", receive_bytes=_VICTIM_BYTES) if with_victim else None
        for peer in (*readers, publisher, *([victim] if victim else [])):
            await peer.be_ours(node.place)
        return await Round(node, readers, victim).run(publisher, rate, seconds)


async def measure(peers: int, rate: int, seconds: float, rounds: int) -> list[tuple[Taken, Taken]]:
    """Measure without and with the one that never reads, by turns, each first by turns."""
    taken = []
    for number in range(rounds):
        first = await _round(peers, rate, seconds, with_victim=bool(number % 2))
        second = await _round(peers, rate, seconds, with_victim=not number % 2)
        taken.append((second, first) if number % 2 else (first, second))
    return taken


@click.command()
@click.option("--peers", default=100, show_default=True, help="Readers, the one included.")
@click.option("--rate", default=2000, show_default=True, help="Messages a second to all of them.")
@click.option("--seconds", default=20.0, show_default=True, help="Length of a round.")
@click.option("--rounds", default=3, show_default=True, help="Rounds the medians are over.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(peers: int, rate: int, seconds: float, rounds: int, *, as_json: bool) -> None:
    """Measure what one peer that never reads does to the others."""
    raise_file_limit()
    gc.disable()  # a pause of ours would be measured as the node's
    taken = trio.run(measure, peers, rate, seconds, rounds)
    ratio = median(with_.p99_second / without.p99_second for without, with_ in taken)
    grown = median(with_.grown for _, with_ in taken)
    is_left = all(one.left_after is not None and str(_LEFT_BY) == one.left_by for _, one in taken)
    slow = () if ratio <= REACH else ("the others wait too long",)
    large = () if grown <= MEMORY_REACH else (f"the node grew by {grown:.1f} MiB",)
    kept = () if is_left else ("the one that does not read was not left in time",)
    Verdict(
        bench="slow_reader",
        what="ms p99 of the others in a second, with the one that does not read / without",
        ours=median(with_.p99_second for _, with_ in taken),
        peer=median(without.p99_second for without, _ in taken),
        ratio=ratio,
        reach=REACH,
        missed=(*slow, *large, *kept),
        figures={
            "grown_mib": grown,
            "grown_reach": MEMORY_REACH,
            "rounds": [{"without": attrs.asdict(a), "with": attrs.asdict(b)} for a, b in taken],
        },
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
