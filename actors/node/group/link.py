"""The actors that talk with the engine: for the rows, for the logs, for what goes between nodes."""

from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, assert_never, final

import trio
from typing_extensions import override

from actors.kit.counters import Counters
from actors.kit.supervision.actor import Actor, ActorRef
from actors.node.group.messages import (
    AppendAll,
    AppendsAnswered,
    Arrivals,
    Carry,
    EngineBack,
    LeaseAnswered,
    LogsMoved,
    LogsReady,
    LogWork,
    LookUp,
    NotCarried,
    RowsAnswered,
    RowsCame,
    StoreReady,
    StoreWork,
    TrimLogs,
    WatchAnew,
    WriteRows,
)
from actors.node.group.wire import pairs, payloads, read_entry
from actors.node.messages import BusMessage
from fsm.group import durable
from fsm.group.kinds import Kind
from fsm.group.membership import (
    DropLease,
    PutLease,
)
from fsm.group.row_form import write_row
from fsm.group.rows_io import (
    Answered,
    Conflicted,
    Current,
    Gap,
    Put,
    Read,
    Seen,
    Unanswered,
    Written,
)
from specs.identity import READ
from specs.limits.group import DURABLE_LIFE, DURABLE_LISTING, GROUP_LEASE, GROUP_LEASES
from specs.message import Message
from specs.reply_code import DropReason
from transports.codec import decode_line
from transports.engine import contract
from transports.engine.contract import ConflictError, Engine, EngineDownError


@final
class GroupLink(Actor[Carry]):
    """Carries messages from and to other nodes.

    Args:
        engine: The engine.
        node: Id of this node.
        counters: Where the messages are counted that find no room.
        bus: The bus of this node.
    """

    def __init__(
        self, engine: Engine, node: str, counters: Counters, bus: ActorRef[BusMessage]
    ) -> None:
        self._engine: Final = engine
        self._node: Final = node
        self._counters: Final = counters
        self._bus: Final = bus
        self._is_open: Final = trio.Event()

    @override
    async def start(self) -> None:
        self.spawn(self._receive)
        await self._is_open.wait()

    @override
    async def handle(self, message: Carry) -> None:
        lines = (
            (one.head, b"" if one.entry is None else one.entry.line) for one in message.messages
        )
        try:
            await self._engine.publish(message.node, tuple(payloads(lines)))
        except EngineDownError:
            await self._bus.tell(NotCarried(message.node, message.messages))

    async def _receive(self) -> None:
        async with self._engine.inbox(self._node, self._lose) as came:
            self._is_open.set()
            async for batch in came:
                await self._bus.tell(Arrivals(batch))

    def _lose(self, payload: bytes) -> None:
        for _ in pairs(payload):
            self._counters.drop(DropReason.OVERFLOW)


@final
class GroupStore(Actor[StoreWork]):
    """Writes the rows of this node, and follows all rows of the domain.

    Args:
        engine: The engine.
        bus: The bus of this node.
        link: Carries messages.
        keep_secret: Writes the secret of the domain, if the engine has none.
    """

    def __init__(
        self,
        engine: Engine,
        bus: ActorRef[BusMessage],
        link: ActorRef[Carry],
        keep_secret: Callable[[], Awaitable[object]],
    ) -> None:
        self._engine: Final = engine
        self._keep_secret: Final = keep_secret
        self._bus: Final = bus
        self._link: Final = link
        self._watching: list[trio.CancelScope] = []
        self._leases: Final = deque[Answered](maxlen=GROUP_LEASES)

    @override
    async def start(self) -> None:
        await self._bus.tell(StoreReady(self.me, self._link, self._leases))
        self.spawn(self._notice)
        self._watch_anew()

    @override
    async def handle(self, message: StoreWork) -> None:
        match message:
            case WriteRows(puts):
                self.spawn(self._write, puts)
            case PutLease():
                self.spawn(self._renew, message)
            case DropLease(key, expected):
                await self._engine.put_all((contract.Put(key, None, expected),))
            case Read() | LookUp():
                self.spawn(self._read, message)
            case WatchAnew():
                self.spawn(self._keep_secret)
                self._watch_anew()
            case _:
                assert_never(message)

    async def _notice(self) -> None:
        while True:
            health = await self._engine.health_changed()
            if health.is_up:
                await self._bus.tell(EngineBack())

    def _watch_anew(self) -> None:
        for scope in self._watching:
            scope.cancel()
        self._watching = [trio.CancelScope() for _ in Kind]
        for kind, scope in zip(Kind, self._watching, strict=True):
            self.spawn(self._watch, f"{kind}/", scope)

    async def _watch(self, prefix: str, scope: trio.CancelScope) -> None:
        with scope:
            async with self._engine.watch(prefix) as seen:
                await self._bus.tell(RowsCame((Gap(prefix),)))
                async for batch in seen:
                    news = tuple(_news(one, prefix) for one in batch)
                    await self._bus.tell(RowsCame(news))

    async def _write(self, puts: Sequence[Put]) -> None:
        written = await self._engine.put_all(
            [contract.Put(one.key, one.value, one.expected) for one in puts]
        )
        answers = tuple(map(_answer, puts, written))
        await self._bus.tell(RowsAnswered(answers))

    async def _renew(self, lease: PutLease) -> None:
        row = lease.row
        put = contract.Put(row.key, write_row(row), lease.expected, GROUP_LEASE)
        (written,) = await self._engine.put_all((put,))
        self._leases.append(_answer(lease, written))
        self._bus.try_tell(LeaseAnswered())  # a bus whose mailbox is full looks without being told

    async def _read(self, wanted: Read | LookUp) -> None:
        asked = wanted if isinstance(wanted, LookUp) else None
        try:
            row = await self._engine.get(wanted.key)
        except EngineDownError:
            # The watch begins anew after that, and names what has gone.
            await self._bus.tell(RowsCame((), asked))
            return
        seen = (
            Seen(wanted.key, None, wanted.revision, is_read=True)
            if row is None
            else Seen(row.key, row.value, row.revision, is_read=True)
        )
        await self._bus.tell(RowsCame((seen,), asked))


def _news(one: contract.Seen, prefix: str) -> Seen | Current:
    match one:
        case contract.Row(key, value, revision):
            return Seen(key, value, revision)
        case contract.Current():
            return Current(prefix)


def _answer(put: Put | PutLease, written: contract.Written) -> Answered:
    match written:
        case ConflictError(row=row):
            there = (None, put.expected) if row is None else (row.value, row.revision)
            return Conflicted(put.number, *there)
        case EngineDownError(reason=reason):
            return Unanswered(put.number, reason)
        case revision:
            return Written(put.number, revision)


@final
class LogKeeper(Actor[LogWork]):
    """Adds to the logs of runtimes, reads and trims them, and follows which of them get entries.

    Args:
        engine: The engine.
        bus: The bus of this node.
        wall: Returns the seconds since the epoch.
    """

    def __init__(
        self, engine: Engine, bus: ActorRef[BusMessage], wall: Callable[[], float]
    ) -> None:
        self._engine: Final = engine
        self._bus: Final = bus
        self._wall: Final = wall

    @override
    async def start(self) -> None:
        await self._bus.tell(LogsReady(self.me))
        self.spawn(self._follow)

    @override
    async def handle(self, message: LogWork) -> None:
        match message:
            case AppendAll():
                self.spawn(self._append, message)
            case durable.Fetch():
                self.spawn(self._fetch, message)
            case TrimLogs(reached):
                self.spawn(self._trim, reached)
            case _:
                assert_never(message)

    async def _append(self, batch: AppendAll) -> None:
        outcomes = await self._engine.append_all(batch.appends)
        await self._bus.tell(AppendsAnswered(batch.number, outcomes))

    async def _fetch(self, wanted: durable.Fetch) -> None:
        runtime, number = wanted.runtime, wanted.number
        outcome: durable.Fetched | durable.Unfetched = durable.Unfetched(runtime, number)
        with suppress(EngineDownError):
            entries = await self._engine.fetch(runtime, wanted.after, wanted.most)
            offset = trio.current_time() - self._wall()
            outcome = durable.Fetched(
                runtime, number, tuple(_kept(entry, offset) for entry in entries)
            )
        await self._bus.tell(LogsMoved((outcome,)))

    async def _trim(self, reached: Mapping[str, int]) -> None:
        is_done = False
        with suppress(EngineDownError):
            await self._engine.acknowledge(reached)
            is_done = True
        news = tuple(durable.Trimmed(*one, is_done) for one in reached.items())
        await self._bus.tell(LogsMoved(news))

    async def _follow(self) -> None:
        has_ended = False
        while not has_ended:
            with trio.move_on_after(DURABLE_LISTING) as turn:
                await self._bus.tell(LogsMoved((durable.Listing(),)))
                async with self._engine.follow_logs() as reached:
                    async for batch in reached:
                        news = tuple(durable.Reached(one.log, one.position) for one in batch)
                        await self._bus.tell(LogsMoved(news))
            # It has ended with the engine's handle, if not by the clock.
            has_ended = not turn.cancelled_caught


def _kept(entry: contract.Entry, offset: float) -> durable.Kept:
    """Return what an entry of a log holds.

    Args:
        entry: The entry.
        offset: What is added to seconds since the epoch for those of the host's clock.
    """
    read = read_entry(entry.payload)
    message = None if read is None else decode_line(read.line, READ)
    if read is None or not isinstance(message, Message):
        return durable.Kept(entry.position, None)
    return durable.Kept(entry.position, message, read.whose, read.at + DURABLE_LIFE + offset)
