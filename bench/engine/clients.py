"""What a message and a write cost over NATS: by our client on Trio, by `nats-py` in a thread.

| client | what it is |
|---|---|
| ours | `transports.engine.nats`, in the thread of Trio |
| `nats-py` | on asyncio in a thread of its own; calls cross in batches (`bench.engine.nats_py`) |
| bare | bytes written beforehand; what comes is counted: what the server can do |

Publisher and subscriber are one process, as a node is both. Each write expects the revision of its
row (bare: none does). Figures are of processor time of the client, with all its threads, and of
the server; by turns, medians over rounds.
"""

import itertools
import os
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Final, TypeAlias, final

import click
import trio
from typing_extensions import override

from bench.verdict import Verdict
from tests.support.nats_server import PROGRAM, NatsServer, run_server
from transports.engine.contract import Put, Written
from transports.engine.nats import open_engine
from transports.engine.nats_rows import bucket_of
from transports.nats.connection import NatsConnection, ServerUrl, Terms, dial_server
from transports.nats.wire import publication, subscription
from transports.sockets import open_background

_PAYLOAD: Final = b"x" * 300
_AT_ONCE: Final = 32
"""Payloads in one call: those of one turn of a busy node."""

_UNREAD: Final = 64 * _AT_ONCE
"""Payloads on their way at a time: fewer than an inbox holds."""

_CROSSING: Final = 256
"""Writes in one crossing."""

_NAMES: Final = ("us", "us of the server", "per second")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_ROWS: Final = itertools.count()
_GROUP: Final = "bench.example"

Taken: TypeAlias = dict[str, dict[str, list[tuple[float, float, float]]]]
"""Rounds by client and case; each as `_NAMES`."""


class _Client(ABC):
    """Publishes and receives payloads, and writes rows."""

    def __init__(self) -> None:
        self._row: Final = f"row{next(_ROWS)}"
        self._revisions: list[int] = [0] * _CROSSING
        self._count = 0
        self._moved = trio.Event()

    def took(self, count: int) -> None:
        """Count payloads that have come."""
        self._count += count
        self._moved.set()
        self._moved = trio.Event()

    async def _until(self, count: int) -> None:
        while self._count < count:
            await self._moved.wait()

    async def flow(self, count: int) -> None:
        """Publish payloads, and receive them."""
        self._count = 0
        for at in range(0, count, _AT_ONCE):
            await self.publish([_PAYLOAD] * _AT_ONCE)
            await self._until(at - _UNREAD)
        await self._until(count)

    async def write(self, count: int) -> None:
        """Write rows in crossings, each expecting its revision."""
        for _ in range(0, count, _CROSSING):
            puts = [
                Put(f"{self._row}/{at}", _PAYLOAD, revision)
                for at, revision in enumerate(self._revisions)
            ]
            self._revisions = [int(str(one)) for one in await self.put_all(puts)]

    async def write_singly(self, count: int) -> None:
        """Write a row again and again."""
        revision = 0
        row = f"row{next(_ROWS)}"
        for _ in range(count):
            (written,) = await self.put_all([Put(row, _PAYLOAD, revision)])
            revision = int(str(written))

    @abstractmethod
    async def publish(self, payloads: Sequence[bytes]) -> None:
        """Publish payloads to this process."""

    @abstractmethod
    async def put_all(self, puts: Sequence[Put]) -> Sequence[Written]:
        """Write rows."""


@final
class _Calls(_Client):
    """A client whose calls do that."""

    def __init__(
        self,
        publish: Callable[[str, Sequence[bytes]], Awaitable[None]],
        put_all: Callable[[Sequence[Put]], Awaitable[Sequence[Written]]],
    ) -> None:
        super().__init__()
        self._publish: Final = publish
        self._put_all: Final = put_all

    @override
    async def publish(self, payloads: Sequence[bytes]) -> None:
        await self._publish("n", payloads)

    @override
    async def put_all(self, puts: Sequence[Put]) -> Sequence[Written]:
        return await self._put_all(puts)


@final
class _Bare(_Client):
    """A connection; it sends what it has prepared, whatever it is asked to."""

    def __init__(self, connection: NatsConnection) -> None:
        super().__init__()
        self._link: Final = connection.link
        self._payloads: Final = publication(b"n", _PAYLOAD) * _AT_ONCE
        subject = b"$KV.%b.%b" % (bucket_of(_GROUP).encode(), self._row.encode())
        self._puts: Final = [
            publication(b"%b.%d" % (subject, at), _PAYLOAD, b"r") for at in range(_CROSSING)
        ]
        self._written = 0
        self._has_written = trio.Event()

    async def receive(self) -> None:
        """Count what comes, for ever."""
        rest = b""
        while True:
            data = rest + await self._link.receive()
            payloads, written = data.count(b"xxx\r\n"), data.count(b'"seq":')
            rest = data[-4:]  # too short for a mark that is counted
            if payloads:
                self.took(payloads)
            if written:
                self._written -= written
                self._has_written.set()

    @override
    async def publish(self, payloads: Sequence[bytes]) -> None:
        await self._link.send(self._payloads)

    @override
    async def put_all(self, puts: Sequence[Put]) -> Sequence[Written]:
        self._written = len(puts)
        await self._link.send(b"".join(self._puts[: len(puts)]))
        while self._written > 0:
            self._has_written = trio.Event()
            await self._has_written.wait()
        return [0] * len(puts)


@asynccontextmanager
async def _ours(server: NatsServer) -> AsyncIterator[_Client]:
    terms = Terms((ServerUrl.read(server.url),))
    async with open_engine(terms, _GROUP) as engine:
        while not engine.health.is_up:
            await engine.health_changed()
        client = _Calls(engine.publish, engine.put_all)

        async def receive() -> None:
            async for batch in inbox:
                client.took(len(batch))

        async with engine.inbox("n") as inbox, open_background() as nursery:
            nursery.start_soon(receive)
            yield client


@asynccontextmanager
async def _nats_py(server: NatsServer) -> AsyncIterator[_Client]:
    from bench.engine.nats_py import open_bridge  # noqa: PLC0415 - it may not be installed

    async with open_bridge(server.url, bucket_of(_GROUP)) as bridge:
        client = _Calls(bridge.publish, bridge.put_all)
        await bridge.receive("n", lambda _: client.took(1))
        yield client


@asynccontextmanager
async def _bare(server: NatsServer) -> AsyncIterator[_Client]:
    terms = Terms((ServerUrl.read(server.url),))
    connection = await dial_server(terms, terms.servers[0])
    await connection.link.send(subscription(1, b"n") + subscription(2, b"r"))
    client = _Bare(connection)
    async with connection.link, open_background() as nursery:
        nursery.start_soon(client.receive)
        yield client


_CLIENTS: Final[dict[str, Callable[[NatsServer], AbstractAsyncContextManager[_Client]]]] = {
    "ours": _ours,
    "nats-py": _nats_py,
    "bare": _bare,
}


def _server_seconds(server: NatsServer) -> float:
    words = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / _TICKS


async def _timed(
    server: NatsServer, work: Callable[[int], Awaitable[None]], count: int
) -> tuple[float, float, float]:
    """Return us of this process and of the server, and how many a second."""
    own, theirs, began = time.process_time(), _server_seconds(server), time.perf_counter()
    await work(count)
    spent = time.perf_counter() - began
    own, theirs = time.process_time() - own, _server_seconds(server) - theirs
    return 1e6 * own / count, 1e6 * theirs / count, count / spent


async def measure(messages: int, rounds: int) -> Taken:
    """Measure all clients there are, by turns; return the figures of each round."""
    found: Taken = {}
    names = [one for one in _CLIENTS if one != "nats-py" or find_spec("nats") is not None]
    with run_server() as server:
        for _, name in itertools.product(range(rounds), names):
            async with _CLIENTS[name](server) as client:
                for what, work, count in (
                    ("message", client.flow, messages),
                    ("write", client.write, messages),
                    ("write alone", client.write_singly, messages // 16),
                ):
                    taken = await _timed(server, work, count)
                    found.setdefault(name, {}).setdefault(what, []).append(taken)
    return found


@click.command()
@click.option("--messages", default=65_536, show_default=True, help="Messages of a round.")
@click.option("--rounds", default=5, show_default=True, help="Rounds the median is over.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(*, messages: int, rounds: int, as_json: bool) -> None:
    """Measure what messages and writes over NATS cost."""
    if PROGRAM is None:
        raise click.ClickException("nats-server is not installed")
    figures = {
        client: {
            what: {name: median(one[at] for one in rows) for at, name in enumerate(_NAMES)}
            for what, rows in cases.items()
        }
        for client, cases in trio.run(measure, messages, rounds).items()
    }
    other = "nats-py" if "nats-py" in figures else "bare"
    ours, peer = figures["ours"]["message"]["us"], figures[other]["message"]["us"]
    Verdict(
        bench="clients",
        what=f"us of CPU to publish and receive 300 B, by our client / by {other}",
        ours=ours,
        peer=peer,
        ratio=ours / peer,
        reach=None,
        not_measured=() if "nats-py" in figures else ("nats-py: not installed",),
        figures={"clients": figures},
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
