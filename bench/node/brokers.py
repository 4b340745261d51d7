"""What other brokers take for a message: how much of a node's time is Python's, and how much ours.

The same pairs as in `bench.node.routed`, with messages of 100 bytes, one in a frame or line. None
of the brokers does what a node does: they read a subject or channel and pass bytes on.

| broker | way | it checks |
|---|---|---|
| node | WebSocket | form, sender, loops, limits, policy; it counts what it drops |
| `bench.node.relay` | WebSocket | nothing; on Trio, in Python |
| NATS (`nats-server`) | its WebSocket port | form of its own lines; in Go |
| Redis (`redis-server`) | TCP, publish and subscribe | form of its own lines; in C |

A broker that is not installed is left out; `make bench` installs NATS.
"""

import gc
import shutil
import subprocess
import sys
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final, final

import attrs
import click
import orjson
import trio
from typing_extensions import override

from bench.node.crowd import UNLIMITED, Crowded, Peer, quiet_node
from bench.node.routed import PAIRS, Figures, Pair, flow, open_relay, routed
from bench.verdict import Verdict
from tests.support.ports import free_port

_BODY: Final = "x" * 100
_START: Final = 10
_NATS: Final = "port: {other}\nhttp: 0\nwebsocket {{ listen: '127.0.0.1:{port}', no_tls: true }}\n"
_BINARY: Final = 2


def _message(name: str) -> bytes:
    """Return the text of such a message, as the node gets it."""
    return orjson.dumps({
        "id": 1, "type": "create", "from": f"hyperty-runtime://a.example/s{name}/ua",
        "to": f"hyperty-runtime://a.example/r{name}/ua", "body": {"value": _BODY},
    })  # fmt: skip


class _Subscriber(Pair):
    """Publisher and subscriber of a subject of their own."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.subject = f"r{name}"
        self.sender, self.receiver = Peer(f"s{name}"), Peer(f"r{name}")
        self.text: Final = _message(name)
        self._braces = 0

    def _whole(self, data: bytes) -> int:
        """Return how many messages end in what has come: a message has two closing braces."""
        count, self._braces = divmod(self._braces + data.count(b"}"), 2)
        return count

    @override
    def prepare(self, count: int) -> None:
        """Do nothing: all messages are the same."""

    @override
    async def write(self, count: int) -> None:
        await self.sender.write(self.line() * count)

    @abstractmethod
    def line(self) -> bytes:
        """Return a message as it is sent."""

    @abstractmethod
    async def next_bytes(self, peer: Peer) -> bytes:
        """Return what a client gets next."""

    @override
    async def receive(self) -> int:
        return self._whole(await self.next_bytes(self.receiver))

    @override
    async def drain(self) -> None:
        while True:
            await self.next_bytes(self.sender)

    @override
    def close(self) -> None:
        self.sender.close()
        self.receiver.close()


@final
class Nats(_Subscriber):
    """Two clients of NATS, by WebSocket."""

    @override
    async def connect(self, place: tuple[str, int]) -> None:
        for peer in (self.sender, self.receiver):
            await peer.connect(place)
            await peer.upgrade("/")
            await peer.receive()  # INFO
            await peer.send(b'CONNECT {"verbose":false}\r\nPING\r\n', _BINARY)
            await peer.receive()  # PONG
        await self.receiver.send(b"SUB %b 1\r\nPING\r\n" % self.subject.encode(), _BINARY)
        await self.receiver.receive()

    @override
    def line(self) -> bytes:
        head = b"PUB %b %d\r\n" % (self.subject.encode(), len(self.text))
        return Peer.framed(head + self.text + b"\r\n", _BINARY)

    @override
    async def next_bytes(self, peer: Peer) -> bytes:
        return await peer.receive()


@final
class _Redis(_Subscriber):
    """Two clients of Redis, by TCP."""

    @override
    async def connect(self, place: tuple[str, int]) -> None:
        for peer in (self.sender, self.receiver):
            await peer.connect(place)
        await self.receiver.write(b"SUBSCRIBE %b\r\n" % self.subject.encode())
        await self.receiver.read_bytes()

    @override
    def line(self) -> bytes:
        words = (b"PUBLISH", self.subject.encode(), self.text)
        return b"*3\r\n" + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)

    @override
    async def next_bytes(self, peer: Peer) -> bytes:
        return await peer.read_bytes()


@asynccontextmanager
async def open_broker(command: Callable[[Path, int], list[str]]) -> AsyncIterator[Crowded]:
    """Run a broker that is told its port."""
    with TemporaryDirectory() as folder:
        port = free_port()
        process = await trio.lowlevel.open_process(
            command(Path(folder), port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            with trio.fail_after(_START):
                while not await _listens(port):  # noqa: ASYNC110 - it does not say when it does
                    await trio.sleep(0.05)
            yield Crowded(process, ("127.0.0.1", port))
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()


async def _listens(port: int) -> bool:
    try:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
    except OSError:
        return False
    await stream.aclose()
    return True


def _program(name: str) -> str | None:
    """Return the path of a program, which may be beside the interpreter."""
    return shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))


def nats(folder: Path, port: int) -> list[str]:
    """Return the command of NATS with a WebSocket port."""
    (folder / "nats.conf").write_text(_NATS.format(port=port, other=free_port()))
    return [str(_program("nats-server")), "-c", str(folder / "nats.conf")]


def _redis(folder: Path, port: int) -> list[str]:
    words = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    return [str(_program("redis-server")), *words]


@final
@attrs.frozen
class _Way:
    """A broker, and how messages are sent by it."""

    server: Callable[[], AbstractAsyncContextManager[Crowded]]
    pair: Callable[[str], Pair] | None = None


def _ways() -> dict[str, _Way]:
    ways = {"node": _Way(partial(quiet_node, *UNLIMITED)), "relay": _Way(open_relay)}
    if _program("nats-server"):
        ways["nats"] = _Way(partial(open_broker, nats), Nats)
    if _program("redis-server"):
        ways["redis"] = _Way(partial(open_broker, _redis), _Redis)
    return ways


async def measure(messages: int, rounds: int) -> dict[str, list[Figures]]:
    """Measure all brokers there are, by turns; return the figures of each round."""
    figures: dict[str, list[Figures]] = {}
    for number in range(rounds):
        for name, way in _ways().items():
            async with way.server() as server:
                if way.pair is None:
                    taken = await routed(server, f"{number}", len(_BODY), messages)
                else:
                    pairs = [way.pair(f"{number}-{one}") for one in range(PAIRS)]
                    taken = await flow(server, pairs, messages)
            figures.setdefault(name, []).append(taken)
    return figures


@click.command()
@click.option("--messages", default=20_000, show_default=True, help="Messages of a round.")
@click.option("--rounds", default=3, show_default=True, help="Rounds the median is over.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(*, messages: int, rounds: int, as_json: bool) -> None:
    """Measure what a message costs a node and other brokers."""
    gc.disable()  # a pause of ours would be waited for by the broker
    taken = trio.run(measure, messages, rounds)
    cpu = {name: median(one.cpu for one in taken[name]) for name in taken}
    peer = min((name for name in cpu if name != "node"), key=cpu.__getitem__)
    Verdict(
        bench="brokers",
        what=f"us of CPU for a message of 100 B, of a node / of {peer}",
        ours=cpu["node"],
        peer=cpu[peer],
        ratio=cpu["node"] / cpu[peer],
        reach=None,
        not_measured=tuple(
            f"{name}: not installed" for name in ("nats", "redis") if name not in taken
        ),
        figures={
            name: {"cpu": cpu[name], "per second": median(one.per_second for one in taken[name])}
            for name in taken
        },
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
