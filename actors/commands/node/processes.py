"""`node --processes`: several processes of one node command, which listen on one port.

The parent runs a NATS server and the processes, and no part of the message path. Each process runs
the same command line: it reads the decisions of the parent from stdin, and ends when that pipe
ends, so that no process outlives a parent that was killed.
"""

import base64
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final, Self

import attrs
import orjson
import trio
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typing_extensions import override

from actors.cli.group import CommandError, ExitCode
from actors.http.config import HttpPlaceError
from actors.keys import runtime_key, signing
from actors.kit.errors import PartEndedError
from actors.kit.supervision.actor import Actor, ActorRef, Reply
from actors.kit.supervision.supervisor import ChildSpec, Restart, Strategy, open_supervisor
from actors.node.config import NodeConfig
from specs.jsonvalue import JsonObject
from specs.limits.group import PROCESS_START
from specs.limits.protocol import DRAIN_TIMEOUT
from transports import errors, sockets
from transports.engine.nats import open_engine
from transports.engine.server import LocalServer, open_server
from transports.nats import connection, wire


@attrs.frozen
class Member:
    """The decisions of the parent for one process.

    Attributes:
        name: Name of the node.
        listen: Address that all processes share.
        http: Address of the HTTP service of the process; empty: no HTTP.
        server: URL of the NATS server.
        server_key: Key that the server accepts, in base64.
        domain_seed: Seed of the key of the domain, if none is configured, in base64.
    """

    name: str
    listen: str
    http: str
    server: str
    server_key: str = attrs.field(repr=False)
    domain_seed: str = attrs.field(repr=False)

    @classmethod
    def read(cls, line: bytes) -> Self:
        """Read a line of `Member.line`."""
        fields: dict[str, str] = orjson.loads(line)
        return cls(**fields)

    @property
    def line(self) -> bytes:
        """The decisions as a line of JSON, with secrets."""
        return orjson.dumps(attrs.asdict(self)) + b"\n"

    def configure(self, config: NodeConfig) -> NodeConfig:
        """Return the configuration of the node of this process.

        Args:
            config: The configuration of all processes.
        """
        key = Ed25519PrivateKey.from_private_bytes(base64.b64decode(self.server_key))
        server = LocalServer(connection.ServerUrl.read(self.server), wire.Credentials("", key))
        own = signing.make_domain_key(base64.b64decode(self.domain_seed))
        return attrs.evolve(
            config,
            listen=self.listen,
            http=config.http and attrs.evolve(config.http, listen=self.http),
            engine=partial(open_engine, server.terms(config.domain), config.domain),
            node_name=self.name,
            domain_keys=config.domain_keys or (own,),
            remarks=(),
        )


@attrs.frozen
class _Stop:
    """Drain a process; the reply is its exit status."""

    reply: Reply[int]


class _NodeProcess(Actor[_Stop | signal.Signals]):
    """One of the processes; signals are passed on to it, and only a stop may end it.

    Args:
        member: The decisions of the parent.
        ready: Receives the ready line.
    """

    def __init__(self, member: Member, ready: Callable[[JsonObject], None]) -> None:
        self._member: Final = member
        self._ready: Final = ready
        self._is_ready: Final = trio.Event()
        self._process: trio.Process | None = None
        self._stopped: Reply[int] | None = None

    @override
    async def start(self) -> None:
        self.spawn(self._live)
        with trio.move_on_after(PROCESS_START):
            await self._is_ready.wait()
            return
        why = f"node {self._member.name} was not ready within {PROCESS_START:g} s"
        raise PartEndedError(why) from CommandError(why, ExitCode.FAILED)

    @override
    async def handle(self, message: _Stop | signal.Signals) -> None:
        if self._process is None:
            return
        if isinstance(message, _Stop):
            self._stopped = message.reply
            message = signal.SIGTERM
        self._process.send_signal(message)

    async def _live(self) -> None:
        words = [sys.executable, "-m", "actors.commands.node.member", *sys.argv[1:]]
        self._process = process = await trio.lowlevel.open_process(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # the parent gets Ctrl-C of a terminal, and passes it on
        )
        try:
            status = await self._serve_process(process)
        finally:
            process.terminate()
            with trio.move_on_after(DRAIN_TIMEOUT, shield=True):
                await process.wait()
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
        if self._stopped is None:
            ended = _end_error(self._member.name, status)
            raise PartEndedError(str(ended)) from ended
        self._stopped.send(status)
        self.finish()

    async def _serve_process(self, process: trio.Process) -> int:
        """Send a process its decisions, receive its ready line, and return its exit status."""
        stdin, stdout = process.stdin, process.stdout
        if stdin is None or stdout is None:
            raise ValueError("the process has no pipes")
        async with stdin, stdout:
            with suppress(trio.BrokenResourceError):  # it has ended
                await stdin.send_all(self._member.line)
            line = b""
            while not line.endswith(b"\n") and (piece := await stdout.receive_some()):
                line += piece
            if line.endswith(b"\n"):
                self._ready(orjson.loads(line))
                self._is_ready.set()
            return await process.wait()


def _end_error(name: str, status: int) -> CommandError:
    codes = {int(code): code for code in ExitCode if code is not ExitCode.OK}
    how = f"has ended with status {status}; its own messages say why"
    if status < 0:  # most real-time signals have no name
        known = -status in set(signal.Signals)
        how = f"was ended by {signal.Signals(-status).name if known else f'signal {-status}'}"
    return CommandError(f"node {name} {how}", codes.get(status, ExitCode.FAILED))


@asynccontextmanager
async def open_processes(
    config: NodeConfig, http: Sequence[str]
) -> AsyncIterator[Mapping[str, JsonObject]]:
    """Run the processes while the context is open; drain them at the end.

    A process that ends is restarted, without an effect on the others; when processes end too often,
    all end. A process that is not ready within `PROCESS_START` seconds is ended. SIGHUP is passed
    on to each.

    Args:
        config: The configuration of all processes.
        http: Address of the HTTP service of each; empty: no HTTP.

    Yields:
        The ready line of each, by the name of its node.

    If cancelled, the processes still end in order, within `DRAIN_TIMEOUT` seconds each.

    Raises:
        CommandError: A process does not start, does not drain, or ends too often.
        HttpPlaceError: The address of an HTTP service is in use or not allowed.
        ListenError: The address to listen at is in use or not allowed.
        LocalServerError: There is no NATS server, or it does not start.
        NatsError: The NATS server has ended.
    """
    await _check_free(http)
    ready: dict[str, JsonObject] = {}
    async with (
        sockets.reserve_tcp(config.listen) as listen,
        open_server() as server,
        open_supervisor("processes", Strategy.PEERS) as supervisor,
    ):
        key = base64.b64encode(server.key.key.private_bytes_raw()).decode()
        seed = base64.b64encode(secrets.token_bytes(runtime_key.SEED_BYTES)).decode()
        url = f"nats://{server.url.address}"
        members = [
            Member(str(number), listen, place, url, key, seed)
            for number, place in enumerate(http, start=1)
        ]
        processes: dict[str, ActorRef[_Stop | signal.Signals]] = {}

        async def start(member: Member) -> None:
            make = partial(_NodeProcess, member, partial(ready.__setitem__, member.name))
            spec = ChildSpec(f"node-{member.name}", make, Restart.TRANSIENT)
            processes[member.name] = await supervisor.start_child(spec)

        async with trio.open_nursery() as nursery:
            for member in members:
                nursery.start_soon(start, member)
        async with sockets.open_background() as nursery:
            nursery.start_soon(_pass_on, [*processes.values()])
            yield {member.name: ready[member.name] for member in members}
        async with trio.open_nursery() as nursery:
            for name, process in processes.items():
                nursery.start_soon(_drain, name, process)


async def _check_free(places: Sequence[str]) -> None:
    """Check that the processes will be able to listen at addresses.

    Raises:
        HttpPlaceError: A process will not be able to listen.
    """
    for place in filter(None, places):
        try:
            async with sockets.reserve_tcp(place):
                pass
        except errors.ListenError as exc:
            raise HttpPlaceError(exc.where, exc.reason) from exc


async def _pass_on(processes: Sequence[ActorRef[_Stop | signal.Signals]]) -> None:
    with trio.open_signal_receiver(signal.SIGHUP) as signals:
        async for number in signals:
            for process in processes:
                process.try_tell(signal.Signals(number))


async def _drain(name: str, process: ActorRef[_Stop | signal.Signals]) -> None:
    if status := await process.ask(_Stop):
        raise _end_error(name, status)
