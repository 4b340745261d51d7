"""Many updates at once to many subscribers that read: lost links and memory of the node (L2, L3).

Against a real node process: a publisher of upstream's plain form, whose subscribers need no
consent, writes all updates without waiting. Beside those that read there may be peers that do
not, each of which is sent messages of its own meanwhile: the node has to give them up.
"""

import gc
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, final

import attrs
import click
import orjson
import trio

from bench.node.crowd import (
    DOMAIN,
    UNLIMITED,
    Crowded,
    CrowdError,
    Peer,
    quiet_node,
    raise_file_limit,
)
from bench.node.slow_reader import read_on
from bench.verdict import Verdict

REACH: Final = 100.0
"""MiB by which the node may grow, while all that subscribe read."""

_NODE: Final = f"domain://msg-node.{DOMAIN}"
_AT_ONCE: Final = 32
_PATIENCE: Final = 300.0
"""Seconds after which what did not come is given up: it is lost, however busy the machine is."""

_PEAK: Final = re.compile(r"VmHWM:\s+(\d+) kB")
_LEFT: Final = ("link shed", "queue shed", "slow consumer", "link cut")
_OK: Final = 200
_MIB: Final = 2**20


@final
@attrs.frozen(kw_only=True)
class Size:
    """The size of a burst.

    Attributes:
        subscribers: Peers that subscribe, and read.
        updates: What each of them is sent.
        length: Bytes of the value of one update, and of what the silent ones are sent.
        silent: Peers that do not read.
        letters: Messages to each silent peer, all different.
    """

    subscribers: int = 1000
    updates: int = 100
    length: int = 10_000
    silent: int = 0
    letters: int = 100


@final
@attrs.frozen
class Burst:
    """The result of one burst.

    Attributes:
        links_lost: Links of peers that read which the node gave up.
        deliveries_lost: Updates that did not come, or not in their order.
        grown_mib: MiB that the node had more at most than before.
        last_ms: Milliseconds from the first update written until the last was delivered.
        left: Links and queues that the node gave up, as its log says.
    """

    links_lost: int
    deliveries_lost: int
    grown_mib: float
    last_ms: float
    left: int


@final
class _Reader:
    """A subscriber that reads: what it got."""

    def __init__(self, peer: Peer, updates: int) -> None:
        self.peer = peer
        self.missing = updates
        self.is_lost = False
        self.done_at = 0.0
        self._next = 1

    async def read(self) -> None:
        """Read until all has come, or the link is lost."""
        try:
            while self.missing:
                for line in (await self.peer.receive()).split(b"\n"):
                    await self._heard(orjson.loads(line))
        except CrowdError:
            self.is_lost = True

    async def _heard(self, message: dict) -> None:
        if message["type"] == "update" and message["id"] == self._next:
            self._next += 1
            self.missing -= 1
            self.done_at = time.perf_counter()
        elif message["type"] == "execute":  # the node asks for a sign of life
            pong = {
                "id": message["id"],
                "type": "response",
                "from": message["to"],
                "to": message["from"],
            }
            await self.peer.send(orjson.dumps({**pong, "body": {"code": _OK}}))


async def measure(size: Size, *options: str) -> Burst:
    """Run one burst; `options`: of the node.

    Raises:
        CrowdError: In groups: the run was not as it was to be measured.
    """
    async with quiet_node(*UNLIMITED, *options) as node, trio.open_nursery() as staying:
        publisher, sender = Peer("publisher"), Peer("sender")
        for peer in (publisher, sender):
            await peer.be_plain(node.place)
        thing = await _allocated(publisher)
        for peer in (publisher, sender):
            staying.start_soon(read_on, peer)
        readers = [_Reader(Peer(f"r{number}"), size.updates) for number in range(size.subscribers)]
        silent = [Peer(f"s{number}", receive_bytes=4096) for number in range(size.silent)]
        with trio.CancelScope() as patience:
            async with trio.open_nursery() as reading:
                async with trio.open_nursery() as coming:
                    waiting: Iterator[_Reader | Peer] = iter([*readers, *silent])
                    for _ in range(_AT_ONCE):
                        coming.start_soon(_come, node, waiting, thing, reading)
                patience.deadline = trio.current_time() + _PATIENCE
                base, began = node.memory(), time.perf_counter()
                reading.start_soon(_write, sender, _letters(sender, silent, size))
                reading.start_soon(_write, publisher, _updates(thing, size))
        burst = _taken(node, readers, base, began)
        staying.cancel_scope.cancel()
        for peer in (publisher, sender, *silent, *(one.peer for one in readers)):
            peer.close()
        return burst


def _taken(node: Crowded, readers: Sequence[_Reader], base: int, began: float) -> Burst:
    last = max(one.done_at for one in readers)
    return Burst(
        links_lost=sum(one.is_lost for one in readers),
        deliveries_lost=sum(one.missing for one in readers),
        grown_mib=round(max(0, _peak(node) - base) / _MIB, 1),
        last_ms=round((last - began) * 1e3, 1),
        left=sum(any(word in line for word in _LEFT) for _, line in node.complaints),
    )


async def _come(
    node: Crowded, waiting: Iterator[_Reader | Peer], thing: str, reading: trio.Nursery
) -> None:
    for one in waiting:
        peer = one.peer if isinstance(one, _Reader) else one
        await peer.be_ours(node.place)
        if isinstance(one, _Reader):
            body = {"resources": [f"{thing}/changes"]}
            await _ask(peer, "subscribe", f"{peer.runtime}/sm", f"{_NODE}/sm", body)
            reading.start_soon(one.read)


async def _allocated(publisher: Peer) -> str:
    body = {"scheme": "comm", "value": {"number": 1}}
    to = f"{_NODE}/address-allocation"
    answer = await _ask(publisher, "create", f"{publisher.runtime}/ua", to, body)
    return answer["body"]["value"]["allocated"][0]


async def _ask(peer: Peer, kind: str, from_: str, to: str, body: object) -> dict:
    await peer.send(orjson.dumps({"id": 7, "type": kind, "from": from_, "to": to, "body": body}))
    answer = orjson.loads(await peer.receive())
    if answer["body"].get("code") != _OK:
        raise CrowdError(f"{kind} to {to}: {answer['body']}")
    return answer


async def _write(peer: Peer, frames: Iterator[bytes]) -> None:
    for frame in frames:
        await peer.send(frame)


def _updates(thing: str, size: Size) -> Iterator[bytes]:
    for number in range(1, size.updates + 1):
        message = {"id": number, "type": "update", "from": thing, "to": f"{thing}/changes"}
        yield orjson.dumps({**message, "body": {"value": "x" * size.length}})


def _letters(sender: Peer, silent: Sequence[Peer], size: Size) -> Iterator[bytes]:
    """Events: a lost one needs no answer."""
    for number in range(1, size.letters + 1 if silent else 1):
        for peer in silent:
            message = {"id": number, "type": "response", "from": f"{sender.runtime}/ua"}
            body = {"code": _OK, "value": f"{number:08}" + "y" * size.length}
            yield orjson.dumps({**message, "to": f"{peer.runtime}/ua", "body": body})


def _peak(node: Crowded) -> int:
    """Return the bytes of memory that a node had at most."""
    found = _PEAK.search(Path(f"/proc/{node.process.pid}/status").read_text())
    return int(found[1]) * 1024 if found else node.memory()


@click.command()
@click.option("--subscribers", default=1000, show_default=True, help="Peers that subscribe.")
@click.option("--updates", default=100, show_default=True, help="Updates at once.")
@click.option("--length", default=10_000, show_default=True, help="Bytes of an update's value.")
@click.option("--silent", default=0, show_default=True, help="Peers that do not read.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(*, as_json: bool, **size: int) -> None:
    """Measure what a burst of updates costs: exit 1 if a link or a delivery is lost."""
    raise_file_limit()
    gc.disable()  # a pause of ours would be measured as the node's
    burst = trio.run(measure, Size(**size))
    reach = REACH if not size["silent"] else 3 * REACH
    losses = (
        (burst.links_lost, "links of peers that read were lost"),
        (burst.deliveries_lost, "deliveries were lost"),
    )
    lost = tuple(f"{count} {of_what}" for count, of_what in losses if count)
    is_small = burst.grown_mib <= reach
    large = () if is_small else (f"the node grew by {burst.grown_mib:.0f} MiB",)
    Verdict(
        bench="burst",
        what="MiB by which the node grew / MiB it may grow by",
        ours=burst.grown_mib,
        peer=reach,
        ratio=burst.grown_mib / reach,
        reach=1.0,
        missed=(*lost, *large),
        figures={**size, **attrs.asdict(burst)},
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
