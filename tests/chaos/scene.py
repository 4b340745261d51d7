"""The processes of a run: nodes of one domain, an engine behind proxies, and runtimes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import final

import attrs
import orjson
import trio

from actors.keys.signing import make_domain_key, make_key
from tests.chaos.faults import ENGINE, Fault, Wrong
from tests.chaos.proxy import Proxy, open_proxy
from tests.chaos.worker import Part
from tests.support.command import Serving, serving
from tests.support.nats_server import NatsServer, run_server
from tests.support.ports import free_port

DOMAIN = "a.example"

_START = 120.0
"""Seconds that a node has to serve, also while the engine starts again."""


@final
class Node:
    """A node of the domain, one life after the other.

    Attributes:
        url: Where it listens.
        killed: Directories of the traces of lives that were killed.
        is_up: Whether it has begun to serve.
    """

    def __init__(self, number: int, folder: Path, options: Sequence[str], proxy: Proxy) -> None:
        port = free_port()
        self.url = f"ws://127.0.0.1:{port}/link"
        self.killed: list[Path] = []
        self.is_up = False
        self.proxy = proxy
        self._trace = folder / "traces"
        self._name = f"n{number}"
        engine = f"nats://127.0.0.1:{proxy.port}"
        self._options = (*options, "--engine", engine, "--listen", f"127.0.0.1:{port}")
        self._lives = 0
        self._over = trio.Event()
        self._serving: Serving | None = None

    async def live(self) -> None:
        """Run until it is killed, or has left."""
        self._lives += 1
        self._over = over = trio.Event()
        its = ("--node-name", f"{self._name}-{self._lives}", "--trace", str(self._place))
        async with serving("node", *self._options, *its) as self._serving:
            self.is_up = True
            await over.wait()

    @property
    def _place(self) -> Path:
        return self._trace / f"{self._name}-{self._lives}"

    def kill(self) -> None:
        """Kill it at once (SIGKILL)."""
        self.is_up = False
        self.killed.append(self._place)
        self._over.set()

    def pause(self) -> None:
        """Let it stand still (SIGSTOP)."""
        self._serving.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Take `pause` back (SIGCONT)."""
        self._serving.process.send_signal(signal.SIGCONT)

    async def leave(self) -> int:
        """Have it go down in order; return its exit status."""
        self.is_up = False
        status = await self._serving.stop()
        self._over.set()
        return status


@attrs.define
class Scene:
    """All but the runtimes.

    Attributes:
        key: File of the key that signs logins.
        done: Faults that have begun.
        statuses: Exit statuses of nodes that went down in order.
    """

    folder: Path
    key: Path
    server: NatsServer
    nodes: list[Node]
    lives: trio.Nursery
    done: list[Fault] = attrs.field(factory=list)
    statuses: list[int] = attrs.field(factory=list)

    async def suffer(self, fault: Fault) -> None:
        """Have a fault begin and end; none of a node that does not serve yet.

        Nodes restart one after the other.
        """
        node = None if fault.where == ENGINE else self.nodes[fault.where]
        concerned = self.nodes if fault.wrong is Wrong.RESTART else [node]
        if not all(one is None or one.is_up for one in concerned):
            return
        self.done.append(fault)
        match fault.wrong:
            case Wrong.ENGINE:
                await trio.to_thread.run_sync(self.server.kill)
                await trio.sleep(fault.lasts)
                self.server.start()
            case Wrong.KILL:
                node.kill()
                await trio.sleep(fault.lasts)
                self.lives.start_soon(node.live)
            case Wrong.STOP:
                node.pause()
                await trio.sleep(fault.lasts)
                node.go_on()
            case Wrong.PARTITION:
                node.proxy.cut()
                await trio.sleep(fault.lasts)
                node.proxy.mend()
            case Wrong.RESTART:
                self.statuses.append(await node.leave())
                self.lives.start_soon(node.live)

    async def all_up(self) -> None:
        """Wait until all nodes serve; it is an error if one never does."""
        with trio.fail_after(_START):
            while not all(node.is_up for node in self.nodes):  # noqa: ASYNC110 - of other processes
                await trio.sleep(0.1)


@asynccontextmanager
async def open_scene(folder: Path, count: int) -> AsyncIterator[Scene]:
    """Run an engine and nodes, and wait until all serve.

    Args:
        folder: Where keys and traces are kept.
        count: Number of nodes.
    """
    signer = make_key("EdDSA")
    keys, domain_key, key = (folder / name for name in ("jwks.json", "domain.json", "key.json"))
    keys.write_bytes(orjson.dumps({"keys": [signer.public()]}))
    for file, private in ((domain_key, make_domain_key(os.urandom(32))), (key, signer)):
        file.write_bytes(orjson.dumps(private.private()))
        file.chmod(0o600)
    options = ("--domain", DOMAIN, "--jwks", str(keys), "--domain-key", str(domain_key))
    with run_server() as server:
        async with AsyncExitStack() as stack:
            proxies = [
                await stack.enter_async_context(open_proxy(server.port)) for _ in range(count)
            ]
            nodes = [Node(number, folder, options, one) for number, one in enumerate(proxies)]
            async with trio.open_nursery() as lives:
                scene = Scene(folder, key, server, nodes, lives)
                for node in nodes:
                    lives.start_soon(node.live)
                await scene.all_up()
                yield scene
                lives.cancel_scope.cancel()


class Runtimes:
    """The processes with the runtimes."""

    def __init__(self, processes: Sequence[trio.Process]) -> None:
        self._processes = processes
        self._rests = [bytearray() for _ in processes]

    async def say(self, **order: object) -> None:
        """Give an order to all."""
        line = json.dumps(order).encode() + b"\n"
        for process in self._processes:
            await process.stdin.send_all(line)

    async def hear(self) -> list[dict]:
        """Return what each says next."""
        return [await self._line(at) for at in range(len(self._processes))]

    async def _line(self, at: int) -> dict:
        rest, out = self._rests[at], self._processes[at].stdout
        while (end := rest.find(b"\n")) < 0:
            piece = await out.receive_some(1 << 20)
            assert piece, "a process of runtimes has ended"
            rest += piece
        line = bytes(rest[:end])
        del rest[: end + 1]
        return json.loads(line)

    async def ended(self) -> list[int]:
        """Wait until all have ended; return their exit statuses."""
        return [await process.wait() for process in self._processes]


@asynccontextmanager
async def open_runtimes(parts: Sequence[Part]) -> AsyncIterator[Runtimes]:
    """Run the processes with the runtimes; they are gone afterwards."""
    processes = []
    try:
        for part in parts:
            said = json.dumps(attrs.asdict(part))
            command = [sys.executable, "-m", "tests.chaos.worker", said]
            processes.append(
                await trio.lowlevel.open_process(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
            )
        yield Runtimes(processes)
    finally:
        for process in processes:
            process.kill()
        with trio.CancelScope(shield=True):
            for process in processes:
                await process.wait()
