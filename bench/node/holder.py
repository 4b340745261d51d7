"""A process that has many sessions at nodes: a part of the crowd of `bench.node.processes`.

Each line on stdin is something to do with all sessions, and each answer is a line of JSON:
`open` opens them, `ask` sends a request over each, `resume` cuts all connections and resumes the
sessions over new ones. Meanwhile the sessions answer the pings of their nodes.
"""

import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Final, final

import click
import orjson
import trio

from bench.node.crowd import CrowdError, Peer, raise_file_limit
from bench.node.routed import ALLOCATION

_AT_ONCE: Final = 64
_ID: Final = 100
_PATIENCE: Final = 60.0
_LINE: Final = 64


@final
class _Session:
    """One session, over one connection after another."""

    def __init__(self, name: str, source: str, failed: Callable[[object], None]) -> None:
        self._name = name
        self._source = source
        self._failed = failed
        self._peer: Peer | None = None
        self._answered = trio.Event()
        self._reading = trio.CancelScope()

    async def open(self, place: tuple[str, int], nursery: trio.Nursery) -> None:
        """Open the session, or resume it by its token."""
        peer = Peer(self._name, self._source)
        peer.token = None if self._peer is None else self._peer.token
        self._peer = peer
        with trio.fail_after(_PATIENCE):
            await peer.be_ours(place)
        self._reading = trio.CancelScope()
        nursery.start_soon(self._read, peer)

    async def ask(self) -> None:
        """Send a request to the node, and wait for its answer."""
        if self._peer is None:
            return
        self._answered = trio.Event()
        body = {"scheme": "hyperty", "value": {"number": 1}}
        sender = f"{self._peer.runtime}/ua"
        message = {"id": _ID, "type": "create", "from": sender, "to": ALLOCATION, "body": body}
        await self._peer.send(orjson.dumps(message))
        with trio.fail_after(_PATIENCE):
            await self._answered.wait()

    def cut(self) -> None:
        """Lose the connection."""
        self._reading.cancel()
        if self._peer is not None:
            self._peer.close()

    async def _read(self, peer: Peer) -> None:
        with self._reading:
            try:
                while True:
                    for line in (await peer.receive()).split(b"\n"):
                        await self._take(peer, orjson.loads(line))
            except (CrowdError, OSError) as exc:
                if not self._reading.cancel_called:
                    self._failed(exc)

    async def _take(self, peer: Peer, message: dict[str, object]) -> None:
        if message["type"] == "response":
            self._answered.set()
            return
        answer = {"id": message["id"], "type": "response", "from": message["to"]}
        await peer.send(orjson.dumps({**answer, "to": message["from"], "body": {"code": 200}}))


@final
class _Holder:
    """All sessions."""

    def __init__(self, place: tuple[str, int], name: str, count: int, source: str) -> None:
        self._place = place
        self._sessions = [_Session(f"{name}-{one}", source, self.failed) for one in range(count)]
        self._errors = 0

    def failed(self, error: object) -> None:
        """Count an error."""
        self._errors += 1
        print(f"failed: {error!r}", file=sys.stderr)

    async def run(self) -> None:
        """Do what stdin says, until it ends."""
        async with (
            trio.lowlevel.FdStream(sys.stdin.fileno()) as orders,
            trio.open_nursery() as nursery,
        ):
            while order := (await orders.receive_some(_LINE)).strip():
                began = time.perf_counter()
                if order == b"ask":
                    await self._all(_Session.ask)
                else:
                    for one in self._sessions:
                        one.cut()
                    await self._all(lambda one: one.open(self._place, nursery))
                took = time.perf_counter() - began
                print(orjson.dumps({"errors": self._errors, "seconds": took}).decode(), flush=True)
            nursery.cancel_scope.cancel()

    async def _all(self, do: Callable[[_Session], Awaitable[None]]) -> None:
        waiting = iter(self._sessions)
        async with trio.open_nursery() as nursery:
            for _ in range(_AT_ONCE):
                nursery.start_soon(self._some, waiting, do)

    async def _some(
        self, waiting: Iterator[_Session], do: Callable[[_Session], Awaitable[None]]
    ) -> None:
        for one in waiting:
            try:
                await do(one)
            except (CrowdError, OSError, trio.TooSlowError) as exc:
                self.failed(exc)


@click.command()
@click.option("--host", required=True)
@click.option("--port", type=int, required=True)
@click.option("--name", required=True)
@click.option("--source", required=True)
@click.option("--count", type=int, required=True)
def main(*, host: str, port: int, name: str, source: str, count: int) -> None:
    """Hold sessions until stdin ends."""
    raise_file_limit()
    with suppress(KeyboardInterrupt):
        trio.run(_Holder((host, port), name, count, source).run)


if __name__ == "__main__":
    main()
