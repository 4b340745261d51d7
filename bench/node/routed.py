"""Messages from runtime to runtime by the node: CPU of the node for each, and how many a second.

Four pairs of plain connections, each with so many messages on their way at a time; each message
is a frame of its own, or many are in one frame of `protofly.v1`. All checks of the node are on,
its limits on rates are off. Beside it `bench.node.relay` is measured in the same run, which only
reads and passes on; and with `--before` the node of another commit.
"""

import gc
import statistics
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, final

import attrs
import click
import orjson
import trio
from typing_extensions import override

from bench.node.crowd import DOMAIN, UNLIMITED, Crowded, CrowdError, Peer, quiet_node
from bench.verdict import Verdict

PAIRS: Final = 4
"""How many send at once."""

REACH: Final[dict[str, float]] = {"100": 12.0, "1000": 15.0, "10000": 30.0, "100 in lines": 6.0}
"""Microseconds of the node's CPU for a message, by bytes of its value."""

ALLOCATION: Final = f"domain://msg-node.{DOMAIN}/address-allocation"
"""The allocator of addresses of the node."""

_WINDOW: Final = 64
_LINES: Final = 32
_WARM: Final = 2000
_PATIENCE: Final = 120.0


@final
@attrs.frozen
class Figures:
    """One measurement.

    Attributes:
        cpu: Microseconds of CPU of the process for a message.
        per_second: Messages delivered in a second.
    """

    cpu: float
    per_second: float


class Pair(ABC):
    """A sender and a receiver."""

    def __init__(self) -> None:
        self._came = 0
        self._heard = trio.Event()

    @abstractmethod
    async def connect(self, place: tuple[str, int]) -> None:
        """Let both come."""

    @abstractmethod
    def prepare(self, count: int) -> None:
        """Make so many messages, which are sent later: what that costs is not measured."""

    @abstractmethod
    async def write(self, count: int) -> None:
        """Send so many messages."""

    @abstractmethod
    async def receive(self) -> int:
        """Wait for messages; return how many there are."""

    @abstractmethod
    async def drain(self) -> None:
        """Read what the sender gets, until cancelled."""

    @abstractmethod
    def close(self) -> None:
        """Hang up."""

    async def send(self, count: int) -> None:
        """Send so many messages, `_WINDOW` of them at most on their way."""
        sent, aim = 0, self._came + count
        base = self._came
        while sent < count:
            while sent - (self._came - base) > _WINDOW // 2:
                self._heard = trio.Event()
                await self._heard.wait()
            some = min(_WINDOW - (sent - (self._came - base)), count - sent)
            await self.write(some)
            sent += some
        while self._came < aim:
            self._heard = trio.Event()
            await self._heard.wait()

    async def read(self) -> None:
        """Count what comes, until cancelled."""
        while True:
            self._came += await self.receive()
            self._heard.set()


@final
class Runtimes(Pair):
    """Two runtimes of the domain.

    Args:
        name: Part of their names.
        size: Bytes of the value of a message.
        in_lines: Whether a frame has several messages.
        apart: Where the receiver connects; None: to the node of the sender.
    """

    def __init__(
        self, name: str, size: int, *, in_lines: bool, apart: tuple[str, int] | None = None
    ) -> None:
        super().__init__()
        self._sender, self._receiver = Peer(f"s{name}"), Peer(f"r{name}")
        self._in_lines = in_lines
        self._apart = apart
        self._value = "x" * size
        self._ready: deque[bytes] = deque()
        self._id = 100

    @override
    async def connect(self, place: tuple[str, int]) -> None:
        for peer, at in ((self._sender, place), (self._receiver, self._apart or place)):
            await (peer.be_ours if self._in_lines else peer.be_plain)(at)
            await be_known(peer)

    @override
    def prepare(self, count: int) -> None:
        for _ in range(count):
            self._id += 1
            self._ready.append(orjson.dumps({
                "id": self._id, "type": "create", "from": f"{self._sender.runtime}/ua",
                "to": f"{self._receiver.runtime}/ua", "body": {"value": self._value},
            }))  # fmt: skip

    @override
    async def write(self, count: int) -> None:
        texts = [self._ready.popleft() for _ in range(count)]
        step = _LINES if self._in_lines else 1
        groups = (texts[n : n + step] for n in range(0, count, step))
        await self._sender.write(b"".join(Peer.framed(b"\n".join(group)) for group in groups))

    @override
    async def receive(self) -> int:
        return (await self._receiver.receive()).count(b"\n") + 1

    @override
    async def drain(self) -> None:
        while True:
            await self._sender.receive()

    @override
    def close(self) -> None:
        self._sender.close()
        self._receiver.close()


@asynccontextmanager
async def open_relay() -> AsyncIterator[Crowded]:
    """Run the bare relay."""
    command = (sys.executable, "-m", "bench.node.relay")
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
    try:
        line = b""
        while process.stdout is not None and not line.endswith(b"\n"):
            line += await process.stdout.receive_some()
        yield Crowded(process, ("127.0.0.1", int(line)))
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


async def be_known(peer: Peer) -> None:
    """Let a node know that a peer is there: a plain session begins with its first message."""
    body = {"scheme": "hyperty", "value": {"number": 1}}
    message = {"id": 1, "type": "create", "from": f"{peer.runtime}/ua", "to": ALLOCATION}
    await peer.send(orjson.dumps({**message, "body": body}))
    answer = orjson.loads(await peer.receive())
    if answer["to"] != message["from"]:
        raise CrowdError(f"another message came first: {answer}")


async def routed(
    server: Crowded, name: str, size: int, count: int, *, in_lines: bool = False
) -> Figures:
    """Let four pairs send so many messages together, beyond some that warm up.

    Args:
        server: The node, or what stands for it.
        name: Part of the names of the peers, which the server has not seen.
        size: Bytes of the value of a message.
        count: Messages of all pairs.
        in_lines: Whether a frame has several of them.
    """
    pairs = [
        Runtimes(f"{name}-{number}-{size}-{in_lines}", size, in_lines=in_lines)
        for number in range(PAIRS)
    ]
    return await flow(server, pairs, count)


async def flow(server: Crowded, pairs: Sequence[Pair], count: int) -> Figures:
    """Let pairs come and send so many messages together, beyond some that warm up."""
    with trio.fail_after(_PATIENCE):
        async with trio.open_nursery() as reading:
            for pair in pairs:
                await pair.connect(server.place)
                reading.start_soon(pair.read)
                reading.start_soon(pair.drain)
            each = count // len(pairs)
            for pair in pairs:
                pair.prepare(_WARM // PAIRS + each)
            await _all(pairs, _WARM // PAIRS)
            cpu, began = server.cpu(), time.perf_counter()
            await _all(pairs, each)
            cpu, took = server.cpu() - cpu, time.perf_counter() - began
            reading.cancel_scope.cancel()
    for pair in pairs:
        pair.close()
    return Figures(cpu / count * 1e6, count / took)


async def _all(pairs: Sequence[Pair], count: int) -> None:
    async with trio.open_nursery() as nursery:
        for pair in pairs:
            nursery.start_soon(pair.send, count)


@contextmanager
def _version(commit: str | None) -> Iterator[Path | None]:
    """Check out a commit in a folder of its own; None: there is none to compare with."""
    if commit is None:
        yield None
        return
    with TemporaryDirectory() as folder:
        code = Path(folder, "code")
        git = ("git", "worktree")
        made = subprocess.run([*git, "add", "--quiet", "--detach", code, commit], check=False)  # noqa: S603
        if made.returncode:
            raise click.BadParameter(f"git cannot check out {commit!r}", param_hint="--before")
        try:
            yield code
        finally:
            subprocess.run([*git, "remove", "--force", code], check=True)  # noqa: S603


async def measure(
    work: str, count: int, rounds: int, before: Path | None = None
) -> dict[str, list[Figures]]:
    """Measure the node, the relay and an earlier node in turn; return the figures of all rounds.

    The relay does not know frames of several messages: it stands beside one message a frame.
    """
    size, in_lines = int(work.split(maxsplit=1)[0]), work.endswith("lines")
    figures: dict[str, list[Figures]] = {"node": [], "relay": [], "before": []}
    async with AsyncExitStack() as opened:
        servers = {
            "node": await opened.enter_async_context(quiet_node(*UNLIMITED)),
            "relay": await opened.enter_async_context(open_relay()),
        }
        if before is not None:
            earlier = quiet_node(*UNLIMITED, code=before)
            servers["before"] = await opened.enter_async_context(earlier)
        for number in range(rounds):
            for name, server in servers.items():
                lines = in_lines and name != "relay"
                taken = await routed(server, f"{number}", size, count, in_lines=lines)
                figures[name].append(taken)
    return figures


def _figures(taken: dict[str, list[Figures]]) -> dict[str, float]:
    """Return the medians of all rounds, and the ratios of the rounds."""
    figures: dict[str, float] = {}
    ours = taken["node"]
    for name, theirs in taken.items():
        if theirs:
            figures[f"{name}_cpu"] = statistics.median(one.cpu for one in theirs)
            figures[f"{name}_per_second"] = statistics.median(one.per_second for one in theirs)
            ratios = (a.cpu / b.cpu for a, b in zip(ours, theirs, strict=True))
            figures[f"in_{name}"] = statistics.median(ratios)
    del figures["in_node"]
    return figures


@click.command()
@click.option("--messages", default=20_000, show_default=True, help="Messages of a round.")
@click.option("--rounds", default=5, show_default=True, help="Rounds the median is over.")
@click.option("--before", metavar="COMMIT", help="A commit whose node is measured, too.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of a table.")
def main(*, messages: int, rounds: int, before: str | None, as_json: bool) -> None:
    """Measure what the node takes for a message that it routes."""
    gc.disable()  # a pause of ours would be waited for by the node
    figures: dict[str, dict[str, float]] = {}
    missed = []
    with _version(before) as code:
        for work, reach in REACH.items():
            taken = trio.run(measure, work, messages, rounds, code)
            cpu = statistics.median(one.cpu for one in taken["node"])
            figures[work] = _figures(taken)
            if cpu > reach:
                missed.append(f"{work} B: {cpu:.1f} us, reach {reach:g} us")
    first = figures[next(iter(REACH))]
    Verdict(
        bench="routed",
        what="us of the node's CPU for a message of 100 B, a frame each / of a bare relay",
        ours=first["node_cpu"],
        peer=first["relay_cpu"],
        ratio=first["in_relay"],
        reach=None,
        missed=tuple(missed),
        not_measured=("hop tracing", "a policy with rules", "TLS"),
        figures={"messages": messages, "rounds": rounds, "works": figures},
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
