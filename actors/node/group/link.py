"""The actors that talk with the engine: for the rows, for the logs, for what goes between nodes."""

import math
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Never, TypeVarTuple, final

import trio
from typing_extensions import override

from actors.kit.counters import Counters, Tally
from actors.kit.errors import ActorStoppedError
from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor, ActorRef
from actors.node.group import messages
from actors.node.links.connection import Connection
from actors.node.messages import BusMessage
from actors.node.session.exchange import Exchange
from fsm.effects import Refused
from fsm.group.durable import Kept
from fsm.group.kinds import Kind, RowRefusal
from fsm.group.membership import PutLease
from fsm.group.moves import GiveUp
from fsm.group.row_form import write_row
from fsm.group.rows import Put
from specs.identity import READ
from specs.limits.group import (
    DURABLE_LIFE,
    DURABLE_LISTING,
    GROUP_ADDRESS,
    GROUP_LEASE,
    GROUP_LEASES,
    GROUP_READ_OUT,
    GROUP_TERM,
)
from specs.limits.node import HAND_OVER_TIMEOUT
from specs.message import Message
from specs.reply_code import Code, DropReason
from transports.codec import decode_line
from transports.engine import contract
from transports.engine.contract import Engine, EngineDownError

Ts = TypeVarTuple("Ts")

# The links that are answered later; part of the bus's task.


class HeldLinks:
    """Counts for how many writes each link waits.

    Args:
        ports: The links, by number.
    """

    def __init__(self, ports: Mapping[int, Connection]) -> None:
        self._ports: Final = ports
        self._waits: Counter[int] = Counter()

    def hold(self, port: Connection | None) -> int | None:
        """Have a link wait for one write more; return its number, None if there is no link."""
        if port is None:
            return None
        port.hold()
        self._waits[port.number] += 1
        return port.number

    def release(self, number: int | None) -> None:
        """Note that a link waits for one write less."""
        if number is None:
            return
        self._waits[number] -= 1
        if self._waits[number] <= 0:
            del self._waits[number]
            port = self._ports.get(number)
            if port is not None:
                port.release()

    def release_all(self, numbers: Iterable[int]) -> None:
        """Note that links wait for one write less, each time that one is named."""
        for number in numbers:
            self.release(number)

    def forget(self, number: int) -> None:
        """Note that a link is to be left. Idempotent."""
        self._waits.pop(number, None)

    def clear(self) -> None:
        """Wait for nothing any more: all links are left."""
        self._waits.clear()


class LeftBehind:
    """The links of runtimes that have just come from other nodes.

    Args:
        held: The links that are held.
    """

    def __init__(self, held: HeldLinks) -> None:
        self._held: Final = held
        self._awaited: dict[str, tuple[str, int | None, float]] = {}

    def begin(self, runtime: str, node: str, link: int | None, now: float) -> None:
        """Note that a link is held until a node has handed over what waits there.

        Args:
            runtime: Address of the runtime.
            node: The node that had its session.
            link: Number of the link; None: there is none.
            now: Seconds on the host's clock.
        """
        self.over(runtime)
        # The other node does not know yet; this one is fenced if it cannot say so.
        self._awaited[runtime] = node, link, now + GROUP_TERM

    def written(self, key: str, now: float) -> None:
        """Note that a row is written: if it is a session's, the other node can know of it.

        Args:
            key: Key of the row.
            now: Seconds on the host's clock.
        """
        kind, _, runtime = key.partition("/")
        awaited = self._awaited.get(runtime) if kind == Kind.SESSION else None
        if awaited is not None:
            by, link, until = awaited
            self._awaited[runtime] = by, link, min(until, now + HAND_OVER_TIMEOUT)

    def is_from(self, runtime: str, node: str) -> bool:
        """Return whether what a node sends for a runtime was left there.

        Args:
            runtime: Address of the runtime.
            node: The node that sends it.
        """
        awaited = self._awaited.get(runtime)
        return awaited is not None and awaited[0] == node

    def over(self, runtime: str) -> None:
        """Note that everything is handed over, or nothing comes any more. Idempotent."""
        awaited = self._awaited.pop(runtime, None)
        if awaited is not None:
            self._held.release(awaited[1])

    def lose(self, node: str) -> None:
        """Note that a node is gone."""
        for runtime, (by, _, _) in tuple(self._awaited.items()):
            if by == node:
                self.over(runtime)

    def deadline(self) -> float:
        """Return when `tick` is due."""
        return min((until for _, _, until in self._awaited.values()), default=math.inf)

    def tick(self, now: float) -> None:
        """Wait no longer for nodes that take too long.

        Args:
            now: Seconds on the host's clock.
        """
        for runtime, (_, _, until) in tuple(self._awaited.items()):
            if until <= now:
                self.over(runtime)


class ReadOut:
    """The sessions that other nodes have taken up while this one still reads their links.

    Args:
        exchange: The sessions of this node.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange: Final = exchange
        self._given_up: Final[dict[str, tuple[GiveUp, float]]] = {}

    def waits(self, given_up: GiveUp, now: float) -> bool:
        """Return whether a session that another node has taken up stays here for a moment.

        It does while its link is read: what the runtime sent over it was sent before it went.

        Args:
            given_up: The session.
            now: Seconds on the host's clock.
        """
        if not self._exchange.departure.has_begun or not self._is_read(given_up.runtime):
            return False
        self._given_up[given_up.runtime] = (given_up, now + GROUP_READ_OUT)
        return True

    def is_moved(self, runtime: str) -> bool:
        """Return whether a session that is here for a moment is another node's.

        Args:
            runtime: Address of the runtime.
        """
        return runtime in self._given_up

    def over(self, now: float) -> list[GiveUp]:
        """Return the sessions that are waited for no longer.

        Args:
            now: Seconds on the host's clock.
        """
        done = [
            runtime
            for runtime, (_, until) in self._given_up.items()
            if until <= now or not self._is_read(runtime)
        ]
        return [self._given_up.pop(runtime)[0] for runtime in done]

    def _is_read(self, runtime: str) -> bool:
        session = self._exchange.sessions.get(runtime)
        return session is not None and session.port is not None

    def deadline(self) -> float:
        """Return when `over` is due."""
        return next((until for _, until in self._given_up.values()), math.inf)


# What a node of a group refuses: requests, and rows of the engine that are none of ours.

_log = get_logger("actors.node")

FENCED: Final = Refused(Code.UNAVAILABLE, "this node is no member of its group now")
DOWN: Final = Refused(Code.UNAVAILABLE, "the engine of the domain cannot be reached now")
FULL: Final = Refused(Code.UNAVAILABLE, "too much waits to be written to the engine")
LOG_FULL: Final = Refused(Code.UNAVAILABLE, "the log of the receiver's runtime is full")
NOT_KEPT: Final = Refused(Code.UNAVAILABLE, "the engine of the domain has not kept the message")
UNKNOWN: Final = Refused(
    Code.UNAVAILABLE, "it is not known whether the engine of the domain has kept the message"
)
LONG: Final = Refused(Code.TOO_LARGE, f"the address has more than {GROUP_ADDRESS} bytes")
ELSEWHERE: Final = Refused(Code.CONFLICT, "another node has the session, and cannot hand it over")

_KEY: Final = 120
"""Characters of a key in the log."""


def report_refusal(counters: Counters, key: str, reason: RowRefusal) -> None:
    """Count and log a row that is none of ours, or one too many.

    Args:
        counters: Where it is counted.
        key: Its key.
        reason: Why it is not taken.
    """
    counters.count(Tally.ROWS, reason)
    _log.warning("row of the engine refused", key=key[:_KEY], why=str(reason))


class GroupLink(Actor[messages.Carry]):
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
    async def handle(self, message: messages.Carry) -> None:
        to, outgoing = message
        lines = ((one.head, b"" if one.entry is None else one.entry.line) for one in outgoing)
        try:
            await self._engine.publish(to, tuple(messages.payloads(lines)))
        except EngineDownError:
            await self._bus.tell(lambda node: node.group.return_unsent(outgoing))

    async def _receive(self) -> None:
        async with self._engine.inbox(self._node, self._lose) as came:
            self._is_open.set()
            async for batch in came:
                await self._take_in(batch)

    async def _take_in(self, payloads: Sequence[bytes]) -> None:
        await self._bus.tell(lambda node: node.group.take_messages(payloads))

    def _lose(self, payload: bytes) -> None:
        for _ in messages.pairs(payload):
            self._counters.drop(DropReason.OVERFLOW)


class EngineTasks(Actor[Never]):
    """Work with the engine, a task each; its results go to the mailbox of the bus."""

    _is_closing = False

    @final
    def begin(self, work: Callable[[*Ts], Awaitable[object]], *args: *Ts) -> bool:
        """Begin a piece of work; return False if nothing is begun any more."""
        if self._is_closing:
            return False
        try:
            self.spawn(work, *args)
        except ActorStoppedError:
            return False
        return True

    @override
    async def handle(self, message: Never) -> None:
        """It gets no messages."""

    @override
    async def closing(self) -> None:
        self._is_closing = True


class GroupStore(EngineTasks):
    """Writes the rows of this node, and follows all rows of the domain.

    Its methods return whether the work has begun.

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
        link: ActorRef[messages.Carry],
        keep_secret: Callable[[], Awaitable[object]],
    ) -> None:
        self._engine: Final = engine
        self._keep_secret: Final = keep_secret
        self._bus: Final = bus
        self._link: Final = link
        self._watching: list[trio.CancelScope] = []
        self._dropped: trio.Event | None = None
        self._leases: Final = deque[tuple[PutLease, contract.Written]](maxlen=GROUP_LEASES)

    @override
    async def start(self) -> None:
        await self._bus.tell(lambda node: node.group.begin(self, self._link, self._leases))
        self.spawn(self._notice)
        self._follow_all()

    def write_rows(self, puts: Sequence[Put]) -> bool:
        """Write rows, and report what has become of each."""
        return self.begin(self._write, puts)

    def renew(self, lease: PutLease) -> bool:
        """Renew the node's lease."""
        return self.begin(self._renew, lease)

    def drop_lease(self, key: str, expected: int) -> bool:
        """Delete the node's own row, if it has the expected revision; nothing is reported."""
        self._dropped = trio.Event()
        return self.begin(self._drop, contract.Put(key, None, expected), self._dropped)

    @override
    async def closing(self) -> None:
        await super().closing()
        # Other nodes are to know at once that this one has left.
        if self._dropped is not None:
            await self._dropped.wait()

    def read(self, key: str, revision: int = 0, lookup: messages.LookUp | None = None) -> bool:
        """Read a row, and report it.

        Args:
            key: Key of the row.
            revision: That of the report, if there is no row.
            lookup: The receiver that is looked up by that; None: none.
        """
        return self.begin(self._read, key, revision, lookup)

    def watch_anew(self) -> None:
        """Bring all rows again; the next store does so anyway."""
        if self.begin(self._keep_secret):
            self._follow_all()

    async def _drop(self, lease: contract.Put, dropped: trio.Event) -> None:
        await self._engine.put_all((lease,))
        dropped.set()

    async def _notice(self) -> None:
        while True:
            health = await self._engine.health_changed()
            if health.is_up:
                await self._bus.tell(lambda node: node.group.renew())

    def _follow_all(self) -> None:
        for scope in self._watching:
            scope.cancel()
        self._watching = [trio.CancelScope() for _ in Kind]
        for kind, scope in zip(Kind, self._watching, strict=True):
            self.spawn(self._watch, f"{kind}/", scope)

    async def _watch(self, prefix: str, scope: trio.CancelScope) -> None:
        with scope:
            async with self._engine.watch(prefix) as seen:
                await self._take_rows(prefix, None)
                async for batch in seen:
                    await self._take_rows(prefix, batch)

    async def _take_rows(self, prefix: str, news: Sequence[contract.Seen] | None) -> None:
        await self._bus.tell(lambda node: node.group.take_rows(prefix, news))

    async def _write(self, puts: Sequence[Put]) -> None:
        written = await self._engine.put_all(
            [contract.Put(put.key, put.value, put.expected) for put in puts]
        )
        answers = tuple(zip(puts, written, strict=True))
        await self._bus.tell(lambda node: node.group.take_answers(answers))

    async def _renew(self, lease: PutLease) -> None:
        if self._dropped is not None:
            await self._dropped.wait()
        row = lease.row
        put = contract.Put(row.key, write_row(row), lease.expected, GROUP_LEASE)
        (written,) = await self._engine.put_all((put,))
        self._leases.append((lease, written))
        # A bus whose mailbox is full looks without being told.
        self._bus.try_tell(lambda _: None)

    async def _read(self, key: str, revision: int, lookup: messages.LookUp | None) -> None:
        row: contract.Row | None = None
        with suppress(EngineDownError):  # the watch begins anew after that, and names what has gone
            row = await self._engine.get(key) or contract.Row(key, None, revision)
        await self._bus.tell(lambda node: node.group.take_row_read(row, lookup))


def version_met(row: contract.Row | None, put: Put | PutLease) -> tuple[bytes | None, int]:
    """Return value and revision of the row because of which a write was not made.

    Args:
        row: The row; None: there is none.
        put: The write.
    """
    return (None, put.expected) if row is None else (row.value, row.revision)


class LogKeeper(EngineTasks):
    """Adds to the logs of runtimes, reads and trims them, and follows which of them get entries.

    Its methods return whether the work has begun; results are reported.

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
        await self._bus.tell(lambda node: node.group.durable.begin(self))
        self.spawn(self._follow)

    def append(self, number: int, appends: Sequence[contract.Append]) -> bool:
        """Add entries to logs; the report of the batch has its number."""
        return self.begin(self._append, number, appends)

    def fetch(self, runtime: str, number: int, after: int, most: int) -> bool:
        """Read a log; the arguments are as of `fsm.group.durable.LogPort`."""
        return self.begin(self._fetch, runtime, number, after, most)

    def trim(self, reached: Mapping[str, int]) -> bool:
        """Remove the entries of logs up to a position each."""
        return self.begin(self._trim, reached)

    async def _append(self, number: int, appends: Sequence[contract.Append]) -> None:
        outcomes = await self._engine.append_all(appends)
        await self._bus.tell(lambda node: node.group.durable.take_outcomes(number, outcomes))

    async def _fetch(self, runtime: str, number: int, after: int, most: int) -> None:
        kept: Sequence[Kept] | None = None
        with suppress(EngineDownError):
            entries = await self._engine.fetch(runtime, after, most)
            offset = trio.current_time() - self._wall()
            kept = tuple(_kept(entry, offset) for entry in entries)
        await self._bus.tell(lambda node: node.group.durable.take_entries(runtime, number, kept))

    async def _trim(self, reached: Mapping[str, int]) -> None:
        is_done = False
        with suppress(EngineDownError):
            await self._engine.acknowledge(reached)
            is_done = True
        await self._bus.tell(lambda node: node.group.durable.end_trims(reached, is_done=is_done))

    async def _follow(self) -> None:
        has_ended = False
        while not has_ended:
            with trio.move_on_after(DURABLE_LISTING) as turn:
                await self._bus.tell(lambda node: node.group.durable.begin_list())
                async with self._engine.follow_logs() as reached:
                    async for batch in reached:
                        await self._add_entries(batch)
            # It has ended with the engine's handle, if not by the clock.
            has_ended = not turn.cancelled_caught

    async def _add_entries(self, entries: Sequence[tuple[str, int]]) -> None:
        await self._bus.tell(lambda node: node.group.durable.add_entries(entries))


def _kept(entry: contract.Entry, offset: float) -> Kept:
    """Return what an entry of a log holds.

    Args:
        entry: The entry.
        offset: What is added to seconds since the epoch for those of the host's clock.
    """
    read = messages.read_entry(entry.payload)
    if read is None:
        return Kept(entry.position, None)
    whose, at, line = read
    message = decode_line(line, READ)
    if not isinstance(message, Message):
        return Kept(entry.position, None)
    return Kept(entry.position, message, whose, at + DURABLE_LIFE + offset)
