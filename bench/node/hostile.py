"""What does one bad peer cost the others of a node, and a crowd of them?

Ordinary case for all others: two sessions exchange requests, and honest ones come, while peers do
not read what they are sent, begin handshakes that never end, or send as fast as they can; beside
the same node without that. Then many updates at once to many that read, of which none may be lost.
"""

import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from itertools import count, cycle
from pathlib import Path
from typing import Final, TypeAlias

import attrs
import orjson
import trio

from bench.asking import Asked, open_asking
from bench.peers import Peer, Sockets, at_once, message, polled, prepare_client
from bench.report import BenchError, Row, program
from bench.servers import UNLIMITED, Server, open_node_process

Attack: TypeAlias = Callable[[int, Server, trio.Nursery], Awaitable[None]]

REACH: Final = 100.0
"""Target: MiB by which a node may grow in a burst of updates, if all subscribers read."""

_USUAL: Final = ("--log", "warning")
"""Options of a node with its default limits."""

_PIECES: Final = ["x" * 15_000] * 3
_FLOOD: Final = 400
_PER_HOST: Final = 100
_PAUSE: Final = 1.0
_LINES: Final = 32
_PEAK: Final = re.compile(r"VmHWM:\s+(\d+) kB")
_LEFT: Final = ("link shed", "queue shed", "slow consumer", "link cut")
_MIB: Final = 2**20


# --- attacks


async def _silent(size: int, node: Server, nursery: trio.Nursery, *, is_reading: bool) -> None:
    """Connect `size` peers that are sent more than a node queues; they read it all, or nothing."""
    crowd = [Peer(f"c{number}-{is_reading}", receive_bytes=4096) for number in range(size)]
    sender = Peer(f"sender-{is_reading}")
    await at_once(lambda peer: peer.be_ours(node.place), [*crowd, sender])
    for peer in (sender, *(crowd if is_reading else ())):
        nursery.start_soon(peer.stay)

    async def flood() -> None:
        for number, peer in enumerate(cycle(crowd)):
            ends = f"{sender.runtime}/ua", f"{peer.runtime}/ua"
            await sender.send(message(number, "create", *ends, {"value": _PIECES}))
            await trio.sleep(1 / _FLOOD)

    nursery.start_soon(flood)


async def _handshakes(size: int, node: Server, nursery: trio.Nursery) -> None:
    """Keep `size` unfinished handshakes open, from several hosts."""

    async def begin(number: int) -> None:
        await trio.sleep(number / 1000)
        while True:
            peer = Peer(f"attacker{number}", f"127.0.1.{1 + number // _PER_HOST}")
            try:
                await peer.knock(node.place, "/link", "Sec-WebSocket-Protocol: protofly.v1")
                await peer.receive()
            except (BenchError, OSError):
                peer.close()
            await trio.sleep(_PAUSE)

    for number in range(size):
        nursery.start_soon(begin, number)
    await trio.sleep(size / 1000)


async def _flood(_: int, node: Server, nursery: trio.Nursery) -> None:
    """Send messages to an unknown address without a pause; reconnect when the link is closed."""

    async def send(peer: Peer) -> None:
        ends = f"{peer.runtime}/ua", f"{peer.runtime}x/ua"
        for number in count(1):
            lines = [message(number, "create", *ends, {"value": "x" * 100})] * _LINES
            await peer.send(b"\n".join(lines))

    async def come() -> None:
        for number in count(1):
            peer = Peer(f"flooder{number}", "127.0.0.3")
            try:
                await peer.be_ours(node.place)
                async with trio.open_nursery() as flooding:
                    flooding.start_soon(peer.stay)
                    flooding.start_soon(send, peer)
            except* (BenchError, OSError):
                peer.close()
            await trio.sleep(_PAUSE)

    nursery.start_soon(come)


@attrs.frozen
class _Kind:
    """One kind of attack on a node, with the targets for its effects.

    Attributes:
        attack: Function that performs the attack with a number of peers.
        quiet: Function that is run for comparison, without attack; None: nothing is run.
        slower, grown: Targets: how many times slower requests may be, and growth in MiB.
    """

    what: str
    attack: Attack
    quiet: Attack | None = None
    options: tuple[str, ...] = UNLIMITED
    slower: float | None = None
    grown: float | None = None


_READING, _NOT_READING = (partial(_silent, is_reading=is_reading) for is_reading in (True, False))
_ONE: Final = (
    _Kind("one does not read", _NOT_READING, _READING, slower=2.0, grown=4.0),
    _Kind("one floods", _flood, options=_USUAL),
)
_MANY: Final = (
    _Kind("{:,} do not read", _NOT_READING, _READING, slower=3.0, grown=300.0),
    _Kind("{:,} handshakes do not end", _handshakes, options=_USUAL),
)
_COMING: Final = 500.0
"""Target: milliseconds within which another peer can open a session during the attack."""


async def _measured(node: Server, attack: Attack | None, size: int, seconds: float) -> Asked:
    async with trio.open_nursery() as nursery:
        if attack is not None:
            await attack(size, node, nursery)
        async with open_asking(node.place, seconds) as asked:
            pass
        nursery.cancel_scope.cancel()
    return asked


async def _attacked(kind: _Kind, size: int, seconds: float) -> list[Row]:
    """Measure the requests of other peers without and with an attack, at one node each."""
    async with open_node_process(*kind.options) as node:
        quiet = await _measured(node, kind.quiet, size, seconds)
    async with open_node_process(*kind.options) as node:
        before = node.memory()
        loud = await _measured(node, kind.attack, size, seconds)
        grown = max(0, _peak(node) - before) / _MIB
    what = kind.what.format(size)
    reach = _COMING if kind.attack is _handshakes else None
    return [
        Row(f"{what}: requests of others, 99 of 100 take less", loud.p99, "ms"),
        Row(f"{what}: the same, in times of quiet ones", loud.p99 / quiet.p99, "x",
            reach=kind.slower),
        Row(f"{what}: an honest one comes, 99 of 100 take less", loud.coming, "ms", reach=reach),
        Row(f"{what}: honest ones that could not come", loud.refused, "", reach=0),
        Row(f"{what}: the node grows by", grown, "MiB", reach=kind.grown),
    ]  # fmt: skip


def _peak(node: Server) -> int:
    """Return the highest number of bytes of memory that a node has used so far."""
    peak = _PEAK.search(Path(f"/proc/{node.pid}/status").read_text())
    return int(peak[1]) * 1024 if peak else node.memory()


# --- a burst


@attrs.frozen(kw_only=True)
class Size:
    """The size of a burst of updates.

    Attributes:
        subscribers: Number of peers that subscribe, and read.
        updates: Number of updates that each of them is sent.
        length: Bytes of the value of one update, and of a message to a silent peer.
        silent: Number of peers that do not read.
        letters: Number of different messages to each silent peer.
    """

    subscribers: int = 1000
    updates: int = 100
    length: int = 10_000
    silent: int = 0
    letters: int = 100


@attrs.frozen
class Burst:
    """The measured effects of one burst of updates.

    Attributes:
        grown: Largest growth of the node's memory in MiB.
        last: Seconds from the first update sent until the last one was delivered.
        left: Links and queues that the node closed, according to its log.
    """

    grown: float
    last: float
    left: int


async def burst(size: Size, *options: str) -> Burst:
    """Send all updates of an object at once to a node with some options, and measure the effects.

    Raises:
        BenchError: In groups: a subscriber that reads lost its link or an update.
    """
    async with open_node_process(*UNLIMITED, *options) as node, trio.open_nursery() as staying:
        publisher, sender = Peer("publisher"), Peer("sender")
        for peer in (publisher, sender):
            await peer.be_plain(node.place)
        [url] = await publisher.allocate("comm")
        for peer in (publisher, sender):
            staying.start_soon(peer.stay)
        readers = [Peer(f"r{number}") for number in range(size.subscribers)]
        silent = [Peer(f"s{number}", receive_bytes=4096) for number in range(size.silent)]

        async def subscribe(peer: Peer) -> None:
            await peer.be_ours(node.place)
            await peer.subscribe(url)

        await at_once(subscribe, readers)
        await at_once(lambda peer: peer.be_ours(node.place), silent)
        base, began = node.memory(), time.perf_counter()
        with polled(readers) as sockets:
            async with trio.open_nursery() as writing:
                writing.start_soon(_write, sender, _letters(sender, silent, size))
                writing.start_soon(_write, publisher, _updates(url, size))
                await trio.to_thread.run_sync(_read, sockets, size)
        last, grown = time.perf_counter() - began, max(0, _peak(node) - base) / _MIB
        staying.cancel_scope.cancel()
    for peer in (publisher, sender, *silent, *readers):
        peer.close()
    return Burst(grown, last, sum(any(word in line for word in _LEFT) for line in node.log))


def _read(sockets: Sockets, size: Size) -> None:
    """Read until all subscribers have received all updates in order."""
    missing, had = size.subscribers * size.updates, Counter[int]()
    while missing > 0:
        for number, line in sockets.receive():
            missing -= 1
            had[number] += 1
            if orjson.loads(line)["id"] != had[number]:
                raise BenchError("an update was lost")


async def _write(peer: Peer, texts: Iterator[bytes]) -> None:
    for text in texts:
        await peer.send(text)


def _updates(url: str, size: Size) -> Iterator[bytes]:
    for number in range(1, size.updates + 1):
        yield message(number, "update", url, f"{url}/changes", {"value": "x" * size.length})


def _letters(sender: Peer, silent: Sequence[Peer], size: Size) -> Iterator[bytes]:
    """Yield the messages to the silent peers: answers, for whose loss the node reports nothing."""
    for number in range(1, size.letters + 1 if silent else 1):
        for peer in silent:
            body = {"code": 200, "value": f"{number:08}" + "y" * size.length}
            yield message(number, "response", f"{sender.runtime}/ua", f"{peer.runtime}/ua", body)


async def measure(crowd: int, seconds: float, updates: int) -> list[Row]:
    """Measure the effects of all attacks, then of a burst of updates."""
    prepare_client()
    rows: list[Row] = []
    for kinds, size in ((_ONE, 1), (_MANY, crowd)):
        for kind in kinds:
            rows += await _attacked(kind, size, seconds)
    taken = await burst(Size(subscribers=crowd, updates=updates))
    what = f"{updates} updates of 10 kB at once to {crowd:,} that read"
    return [
        *rows,
        Row(f"{what}: the node grows by", taken.grown, "MiB", reach=REACH),
        Row(f"{what}: until the last", taken.last, "s"),
    ]


main = program(measure, {"crowd": (1000, 20), "seconds": (2.5, 0.5), "updates": (100, 5)})

if __name__ == "__main__":
    main()
