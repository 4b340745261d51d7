"""A thousand peers do not read, all at once: what the others and the node notice (RELIABILITY L3).

By turns with the thousand reading and not reading what they are sent, against a real node
process; they are sent more than the node lets wait altogether.
"""

import gc
from collections.abc import Iterator
from itertools import cycle
from statistics import median
from typing import Final

import attrs
import click
import orjson
import trio

from bench.node.crowd import UNLIMITED, Crowded, Peer, quiet_node, raise_file_limit
from bench.node.slow_reader import CALM, Round, Taken, read_on
from bench.verdict import Verdict

REACH: Final = 3.0
"""p99 of the others while the crowd does not read, in p99s while it does (RELIABILITY L3)."""

MEMORY_REACH: Final = 300.0
"""MiB by which the node may grow (RELIABILITY L3)."""

_READERS: Final = 50
_RATE: Final = 500
_PIECES: Final = ["x" * 15_000] * 3
"""What one of the crowd is sent at a time."""

_FLOOD: Final = 400
"""Messages a second to the crowd."""

_AT_ONCE: Final = 32
_COMPLAINTS: Final = ("slow consumer", "link shed", "queue shed")


@attrs.frozen
class Pair:
    """One round with the crowd reading, one with the crowd not reading.

    Attributes:
        left: Links and queues that the node gave up in the second.
    """

    reading: Taken
    silent: Taken
    left: int


async def _come(node: Crowded, waiting: Iterator[Peer]) -> None:
    for peer in waiting:
        await peer.be_ours(node.place)


async def _flood(sender: Peer, crowd: list[Peer]) -> None:
    body = {"value": _PIECES}
    for number, peer in enumerate(cycle(crowd)):
        to, from_ = f"{peer.runtime}/ua", f"{sender.runtime}/ua"
        message = {"id": number, "type": "create", "from": from_, "to": to, "body": body}
        await sender.send(orjson.dumps(message))
        await trio.sleep(1 / _FLOOD)


async def _round(size: int, seconds: float, *, is_reading: bool) -> tuple[Taken, int]:
    async with quiet_node(*UNLIMITED) as node, trio.open_nursery() as nursery:
        readers = [Peer(f"r{number}") for number in range(_READERS)]
        crowd = [Peer(f"c{number}", receive_bytes=4096) for number in range(size)]
        publisher, sender = Peer("publisher"), Peer("sender")
        async with trio.open_nursery() as coming:
            waiting = iter([*readers, publisher, sender, *crowd])
            for _ in range(_AT_ONCE):
                coming.start_soon(_come, node, waiting)
        for peer in (sender, *(crowd if is_reading else ())):
            nursery.start_soon(read_on, peer)
        nursery.start_soon(_flood, sender, crowd)
        taken = await Round(node, readers, None).run(publisher, _RATE, seconds)
        left = sum(any(one in line for one in _COMPLAINTS) for _, line in node.complaints)
        nursery.cancel_scope.cancel()
    return taken, left


async def measure(size: int, seconds: float, rounds: int) -> list[Pair]:
    """Measure with the crowd reading and not reading, by turns."""
    taken = []
    for _ in range(rounds):
        reading, _ = await _round(size, min(seconds, CALM), is_reading=True)
        taken.append(Pair(reading, *await _round(size, seconds, is_reading=False)))
    return taken


@click.command()
@click.option("--size", default=1000, show_default=True, help="Peers that do not read.")
@click.option("--seconds", default=20.0, show_default=True, help="Length of a round.")
@click.option("--rounds", default=1, show_default=True, help="Rounds the medians are over.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(size: int, seconds: float, rounds: int, *, as_json: bool) -> None:
    """Measure what a crowd that does not read does to the others and to the node."""
    raise_file_limit()
    gc.disable()  # a pause of ours would be measured as the node's
    pairs = trio.run(measure, size, seconds, rounds)
    ratio = median(one.silent.p99_second / one.reading.p99_second for one in pairs)
    grown = max(one.silent.grown for one in pairs)
    slow = () if ratio <= REACH else ("the others wait too long",)
    large = () if grown <= MEMORY_REACH else (f"the node grew by {grown:.0f} MiB",)
    Verdict(
        bench="slow_crowd",
        what="ms p99 of the others in a second, the crowd not reading / reading",
        ours=median(one.silent.p99_second for one in pairs),
        peer=median(one.reading.p99_second for one in pairs),
        ratio=ratio,
        reach=REACH,
        missed=(*slow, *large),
        figures={
            "grown_mib": grown,
            "grown_reach": MEMORY_REACH,
            "rounds": [attrs.asdict(one) for one in pairs],
        },
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
