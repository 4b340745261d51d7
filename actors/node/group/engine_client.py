"""Actor of a node that uses the engine: for rows, durable logs and messages between nodes."""

from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVarTuple

import trio
from typing_extensions import override

from actors.kit.errors import ActorStoppedError
from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor, ActorRef
from actors.node.group import messages
from actors.node.messages import BusMessage
from fsm.group.durable import Kept
from fsm.group.kinds import Kind
from fsm.group.membership import PutLease
from fsm.group.row_form import write_row
from fsm.group.rows import Put
from specs.identity import READ
from specs.limits.group import (
    DURABLE_LIFE,
    DURABLE_LISTING,
    GROUP_LEASE,
    GROUP_LEASES,
    GROUP_RETRY,
)
from specs.message import Message
from specs.reply_code import DropReason
from transports.codec import decode_line
from transports.engine import contract
from transports.engine.contract import ConflictError, Engine, EngineDownError

if TYPE_CHECKING:
    from actors.node.group.shared import Shared

Ts = TypeVarTuple("Ts")

_log = get_logger("actors.node")


class EngineClient(Actor[messages.Carry]):
    """Use the engine of a domain: publish and receive messages, watch rows and logs, write both.

    `begin` starts a request to the engine. Its result is reported by a call of the node's bus.

    Args:
        shared: The engine, and the state that the node shares with others.
        bus: The bus of this node.

    Attributes:
        leases: Answers to renewals of the node's lease. They bypass the mailbox of the bus: after
            many other calls they could come so late that the node is fenced although it has renewed
            its lease.
    """

    def __init__(self, shared: "Shared", bus: ActorRef[BusMessage]) -> None:
        self.leases: Final = deque[tuple[PutLease, contract.Written]](maxlen=GROUP_LEASES)
        self._shared: Final = shared
        self._engine: Final = shared.engine
        self._bus: Final = bus
        self._is_open: Final = trio.Event()
        self._is_closing = False
        self._watching: list[trio.CancelScope] = []
        self._dropped: trio.Event | None = None

    @override
    async def start(self) -> None:
        self.spawn(self._receive)
        await self._is_open.wait()
        await self._bus.tell(lambda node: node.group.connect(self))
        self.spawn(self._shared.colleagues.receive)
        self.spawn(self._notice)
        self.spawn(self._follow_logs)
        self._follow_rows()

    def begin(self, work: Callable[[*Ts], Awaitable[object]], *args: *Ts) -> bool:
        """Start a request in a task; return False if this actor is closing."""
        if self._is_closing:
            return False
        try:
            self.spawn(work, *args)
        except ActorStoppedError:
            return False
        return True

    @override
    async def closing(self) -> None:
        self._is_closing = True
        # Other nodes should know at once that this node has left.
        if self._dropped is not None:
            await self._dropped.wait()

    # ---- messages

    @override
    async def handle(self, message: messages.Carry) -> None:
        to, outgoing = message
        lines = ((each.head, b"" if each.entry is None else each.entry.line) for each in outgoing)
        try:
            await self._engine.publish(to, tuple(messages.payloads(lines)))
        except EngineDownError:
            await self._bus.tell(lambda node: node.group.carrier.return_unsent(outgoing))

    async def _receive(self) -> None:
        async with self._engine.inbox(self._shared.node, self._lose) as batches:
            self._is_open.set()
            async for batch in batches:
                await self._take_in(batch)

    async def _take_in(self, payloads: Sequence[bytes]) -> None:
        await self._bus.tell(lambda node: node.group.carrier.take_messages(payloads))

    def _lose(self, payload: bytes) -> None:
        for _ in messages.pairs(payload):
            self._shared.counters.drop(DropReason.OVERFLOW)

    # ---- rows

    async def write_rows(self, puts: Sequence[Put]) -> None:
        """Write rows, and report for each row whether that succeeded."""
        written = await self._engine.put_all(
            [contract.Put(put.key, put.value, put.expected) for put in puts]
        )
        answers = tuple(zip(puts, written, strict=True))
        await self._bus.tell(lambda node: node.group.take_answers(answers))

    async def read_row(self, key: str, revision: int, lookup: messages.LookUp | None) -> None:
        """Read a row of the engine, and report its contents to the group.

        Args:
            key: Key of the row.
            revision: Revision to report if there is no row.
            lookup: The lookup of a receiver that needs the row; None: none.
        """
        row: contract.Row | None = None
        with suppress(EngineDownError):  # the watch starts again later, and reports removed rows
            row = await self._engine.get(key) or contract.Row(key, None, revision)
        await self._bus.tell(lambda node: node.group.take_row_read(row, lookup))

    async def renew_lease(self, lease: PutLease) -> None:
        """Write the node's own row, which renews its lease; the answer is added to `leases`."""
        if self._dropped is not None:
            await self._dropped.wait()
        row = lease.row
        put = contract.Put(row.key, write_row(row), lease.expected, GROUP_LEASE)
        (written,) = await self._engine.put_all((put,))
        self.leases.append((lease, written))
        # This wakes the bus; a bus with a full mailbox is awake anyway.
        self._bus.try_tell(lambda _: None)

    def drop_lease(self, key: str, expected: int) -> None:
        """Delete the node's own row, if its revision is as expected; report nothing."""
        self._dropped = trio.Event()
        self.begin(self._drop, contract.Put(key, None, expected), self._dropped)

    async def _drop(self, lease: contract.Put, dropped: trio.Event) -> None:
        await self._engine.put_all((lease,))
        dropped.set()

    def watch_anew(self) -> None:
        """Watch the rows from the beginning, so that all are reported again."""
        # An engine that returns empty has lost the secret: the next node would make another one.
        if self.begin(domain_secret, self._engine, self._shared.mint):
            self._follow_rows()

    def _follow_rows(self) -> None:
        for scope in self._watching:
            scope.cancel()
        self._watching = [trio.CancelScope() for _ in Kind]
        for kind, scope in zip(Kind, self._watching, strict=True):
            self.spawn(self._watch, f"{kind}/", scope)

    async def _watch(self, prefix: str, scope: trio.CancelScope) -> None:
        with scope:
            async with self._engine.watch(prefix) as batches:
                await self._take_rows(prefix, None)
                async for batch in batches:
                    await self._take_rows(prefix, batch)

    async def _take_rows(self, prefix: str, news: Sequence[contract.Seen] | None) -> None:
        await self._bus.tell(lambda node: node.group.take_rows(prefix, news))

    async def _notice(self) -> None:
        while True:
            health = await self._engine.health_changed()
            if health.is_up:
                await self._bus.tell(lambda node: node.group.renew())

    # ---- logs

    async def append(self, number: int, appends: Sequence[contract.Append]) -> None:
        """Append messages to logs, and report the outcomes together with the batch number."""
        outcomes = await self._engine.append_all(appends)
        await self._bus.tell(lambda node: node.group.durable.take_outcomes(number, outcomes))

    async def fetch(self, runtime: str, number: int, after: int, most: int) -> None:
        """Read messages of a log and report them; see `fsm.group.durable.LogPort`."""
        kept: Sequence[Kept] | None = None
        with suppress(EngineDownError):
            entries = await self._engine.fetch(runtime, after, most)
            offset = trio.current_time() - self._shared.wall()
            kept = tuple(_parse_entry(entry, offset) for entry in entries)
        await self._bus.tell(lambda node: node.group.durable.take_entries(runtime, number, kept))

    async def trim(self, reached: Mapping[str, int]) -> None:
        """Remove messages of logs, each up to a position, and report whether that succeeded."""
        is_done = False
        with suppress(EngineDownError):
            await self._engine.acknowledge(reached)
            is_done = True
        await self._bus.tell(lambda node: node.group.durable.end_trims(reached, is_done=is_done))

    async def _follow_logs(self) -> None:
        has_ended = False
        while not has_ended:
            with trio.move_on_after(DURABLE_LISTING) as turn:
                await self._bus.tell(lambda node: node.group.durable.begin_list())
                async with self._engine.follow_logs() as reached:
                    async for batch in reached:
                        await self._add_entries(batch)
            # Without a timeout, the engine was closed.
            has_ended = not turn.cancelled_caught

    async def _add_entries(self, entries: Sequence[tuple[str, int]]) -> None:
        await self._bus.tell(lambda node: node.group.durable.add_entries(entries))


def _parse_entry(entry: contract.Entry, offset: float) -> Kept:
    """Decode a message of a log, with its owner and expiry.

    Args:
        entry: The entry.
        offset: Value of the Trio clock minus the seconds since the epoch.
    """
    parsed = messages.read_entry(entry.payload)
    if parsed is None:
        return Kept(entry.position, None)
    owner, at, line = parsed
    message = decode_line(line, READ)
    if not isinstance(message, Message):
        return Kept(entry.position, None)
    return Kept(entry.position, message, owner, at + DURABLE_LIFE + offset)


_LOGGED_FAILURE: Final = 2
"""Failed attempts before a warning is logged; a single failure is normal at the start."""

_MINT: Final = "secret/mint"
"""Key of the row with the secret by which nodes recognise addresses of their domain."""


async def domain_secret(engine: Engine, fresh: bytes) -> bytes:
    """Return the secret of the domain from the engine; the first node of the domain stores it.

    Args:
        engine: The engine.
        fresh: The secret to store if the engine has none.
    """
    failures = 0
    while True:
        try:
            await engine.put(_MINT, fresh, 0)
        except ConflictError as exc:
            if exc.row is not None and exc.row.value is not None:
                return exc.row.value
        except EngineDownError as exc:
            failures += 1
            if failures == _LOGGED_FAILURE:
                _log.warning("waiting for the engine", why=exc.reason)
        else:
            return fresh
        await trio.sleep(GROUP_RETRY)
