"""An engine in memory, for several nodes in one process, with faults on demand, for tests.

All times come from Trio's clock, so that runs with the same order of tasks have the same results.
"""

import itertools
import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from heapq import heappop, heappush
from typing import Final, TypeVar

import attrs
import trio
from typing_extensions import override

from specs.limits.engine import ENGINE_TIMEOUT, LOG_LIFE, LOG_UNITS, WATCH_BATCH
from transports.engine import contract
from transports.sockets import open_background

_Outcome = TypeVar("_Outcome")


class _Watch(contract.Due[contract.Seen]):
    """Queue of the changed rows that a watch has not reported yet: the last version of each."""

    def __init__(self, prefix: str, rows: Iterable[contract.Row]) -> None:
        super().__init__()
        self._prefix: Final = prefix
        self._rows: Final = {row.key: row for row in rows}
        self._owes_current = True
        self.bell.ring()

    def add(self, row: contract.Row) -> None:
        """Add a new version; rows stay in the order of their revisions."""
        if row.key.startswith(self._prefix):
            self._rows.pop(row.key, None)
            self._rows[row.key] = row
            self.bell.ring()

    def begin_again(self) -> None:
        """Let the watch report `Current` once more, after an outage."""
        self._owes_current = True
        self.bell.ring()

    @override
    def take(self) -> Sequence[contract.Seen]:
        keys = list(itertools.islice(self._rows, WATCH_BATCH))
        batch: list[contract.Seen] = [self._rows.pop(key) for key in keys]
        if not self._rows and self._owes_current:
            self._owes_current = False
            batch.append(contract.Current())
        return batch


class _LogNews(contract.Due[contract.Reached]):
    """Queue of the logs with entries that were not reported yet: the last position of each."""

    def __init__(self, entries: Iterable[contract.Entry]) -> None:
        super().__init__()
        self._reached: Final = dict[str, int]()
        for entry in entries:
            self.add(entry)

    def add(self, entry: contract.Entry) -> None:
        """Add a new entry; logs stay in the order of their last entries."""
        self._reached.pop(entry.log, None)
        self._reached[entry.log] = entry.position
        self.bell.ring()

    @override
    def take(self) -> Sequence[contract.Reached]:
        logs = list(itertools.islice(self._reached, WATCH_BATCH))
        return [(log, self._reached.pop(log)) for log in logs]


@attrs.define(slots=True)
class _Faults:
    """Injected faults of a handle's connection, or of the store for all handles.

    Attributes:
        is_down: Whether the store cannot be reached.
        delay: Seconds that each request takes.
        unanswered: Number of next writes (calls of `put_all` or `append_all`) that are made, but
            not answered.
        swallowed: Number of next writes that are neither made nor answered.
    """

    is_down: bool = False
    delay: float = 0.0
    unanswered: int = 0
    swallowed: int = 0


class MemoryEngine(contract.Engine):
    """A handle of a store in memory: the engine for one node.

    Attributes:
        faults: Faults of its connection to the store; `MemoryStore` changes them.
    """

    def __init__(self, store: "MemoryStore") -> None:
        super().__init__()
        self.faults: Final = _Faults()
        self._store: Final = store
        self._moved = trio.Event()
        self._is_closed = False
        self._was_up = self.health.is_up
        self._watches: Final = dict[_Watch, None]()
        self._inboxes: Final = dict[contract.Inbox, None]()
        self._followers: Final = dict[_LogNews, None]()

    # --- calls of the store ------------------------------------------------------------------

    def take_row(self, row: contract.Row) -> None:
        """Add a new version of a row to the watches."""
        for watch in self._watches:
            watch.add(row)

    def take_entry(self, entry: contract.Entry) -> None:
        """Add a new entry of a log to the followers."""
        for follower in self._followers:
            follower.add(entry)

    def take_payload(self, node: str, payload: bytes) -> None:
        """Add a payload to an inbox of this handle, unless the handle is cut off."""
        for inbox in self._inboxes:
            if inbox.node == node and self.health.is_up:
                inbox.add(payload)

    def update_health(self) -> None:
        """Check whether the store can be reached now."""
        is_up = self.health.is_up
        if is_up is self._was_up:
            return
        self._was_up = is_up
        if is_up:
            for watch in self._watches:
                watch.begin_again()
            self._ring()
        else:
            self.counts.outages += 1
        self._moved.set()
        self._moved = trio.Event()

    def close(self) -> None:
        """Fail all calls, and end all channels, from now on. Idempotent."""
        self._is_closed = True
        self._ring()

    def _ring(self) -> None:
        bells = [watch.bell for watch in self._watches]
        bells += [inbox.bell for inbox in self._inboxes]
        bells += [follower.bell for follower in self._followers]
        for bell in bells:
            bell.ring()

    # --- the contract ---------------------------------------------------------------------------

    @override
    async def get(self, key: str) -> contract.Row | None:
        await self._reach_store()
        return self._store.row(key)

    @override
    async def put_all(self, puts: Sequence[contract.Put]) -> Sequence[contract.Written]:
        return await self._call_store(lambda: self._store.write(puts), len(puts))

    @override
    async def append_all(self, appends: Sequence[contract.Append]) -> Sequence[contract.Appended]:
        return await self._call_store(lambda: self._store.append(appends), len(appends))

    async def _call_store(
        self, call: Callable[[], Sequence[_Outcome]], count: int
    ) -> Sequence[_Outcome | contract.EngineDownError]:
        """Call the store, unless a fault prevents the call or hides its outcome."""
        try:
            await self._reach_store(call)
        except contract.EngineDownError as exc:
            return (exc,) * count
        lost = (contract.EngineDownError("no answer came", is_unknown=True),) * count
        for faults in (self.faults, self._store.faults):
            if faults.swallowed:
                faults.swallowed -= 1
                return lost
        outcome = call()
        for faults in (self.faults, self._store.faults):
            if faults.unanswered:
                faults.unanswered -= 1
                return lost
        return outcome

    @override
    async def acknowledge(self, reached: Mapping[str, int]) -> None:
        await self._reach_store(lambda: self._store.acknowledge(reached))
        self._store.acknowledge(reached)

    async def _reach_store(self, late: Callable[[], object] | None = None) -> None:
        """Wait for the delay of the store; a call beyond the timeout is made later, unanswered."""
        await trio.lowlevel.checkpoint()
        self._check_reach(is_unknown=False)
        delay = self._delay
        if delay > ENGINE_TIMEOUT:
            if late is not None:
                self._store.do_later(delay, late)
            await trio.sleep(ENGINE_TIMEOUT)
            raise contract.EngineDownError(
                f"no answer within {ENGINE_TIMEOUT:g} s", is_unknown=True
            )
        if delay:
            await trio.sleep(delay)
            self._check_reach(is_unknown=True)

    @property
    def _delay(self) -> float:
        return self.faults.delay + self._store.faults.delay

    def _check_reach(self, *, is_unknown: bool) -> None:
        if self._is_closed:
            raise contract.EngineDownError("this handle is closed", is_unknown=is_unknown)
        if not self.health.is_up:
            raise contract.EngineDownError(self.health.problem, is_unknown=is_unknown)

    @override
    def watch(
        self, prefix: str = ""
    ) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[Sequence[contract.Seen]]]:
        contract.check_prefix(prefix)
        watch = _Watch(prefix, self._store.rows(prefix))
        self._watches[watch] = None
        return self._passing_on(watch, partial(self._watches.pop, watch))

    @override
    async def fetch(self, log: str, after: int, most: int) -> Sequence[contract.Entry]:
        await self._reach_store()
        return self._store.fetch(log, after, most)

    @override
    def follow_logs(
        self,
    ) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[Sequence[contract.Reached]]]:
        news = _LogNews(self._store.entries())
        self._followers[news] = None
        return self._passing_on(news, partial(self._followers.pop, news))

    @override
    def inbox(
        self, node: str, lose: contract.Lose | None = None
    ) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[Sequence[bytes]]]:
        inbox = contract.Inbox(node, lose)
        self._inboxes[inbox] = None
        return self._passing_on(inbox, partial(self._inboxes.pop, inbox))

    @asynccontextmanager
    async def _passing_on(
        self, due: contract.Due[contract.Item], forget: Callable[[], None]
    ) -> AsyncIterator[trio.MemoryReceiveChannel[Sequence[contract.Item]]]:
        try:
            await trio.lowlevel.checkpoint()
            async with contract.open_feed(partial(self._pass_on, due)) as channel:
                yield channel
        finally:
            forget()

    async def _pass_on(
        self,
        due: contract.Due[contract.Item],
        give: trio.MemorySendChannel[Sequence[contract.Item]],
    ) -> None:
        with give, suppress(trio.BrokenResourceError):
            while not self._is_closed:
                await due.bell.wait()
                await trio.sleep(self._delay)
                while self.health.is_up and (batch := due.take()):
                    await give.send(batch)
                    await trio.sleep(self._delay)

    @override
    async def publish(self, node: str, payloads: Sequence[bytes]) -> None:
        contract.check_payloads(payloads)
        await self._reach_store()
        self._store.publish(node, payloads)

    @property
    @override
    def health(self) -> contract.Health:
        if self._store.faults.is_down or self.faults.is_down:
            return contract.Health(is_up=False, problem="it cannot be reached")
        return contract.Health(is_up=True)

    @override
    async def health_changed(self) -> contract.Health:
        await self._moved.wait()
        return self.health


@attrs.define(slots=True)
class _Log:
    """Entries of a log, oldest first, each with its units of space and the time of its expiry."""

    entries: deque[tuple[contract.Entry, int, float]] = attrs.field(factory=deque)
    units: int = 0

    def forget(self, position: int, now: float) -> None:
        """Remove entries up to a position, and expired entries."""
        while self.entries:
            entry, units, until = self.entries[0]
            if entry.position > position and until > now:
                break
            self.entries.popleft()
            self.units -= units


class MemoryStore:
    """Rows in memory, shared by the handles that the store opens.

    Faults apply to one handle, or to all if none is named, and last until they are ended.

    Attributes:
        faults: Faults of all handles.
    """

    def __init__(self, nursery: trio.Nursery) -> None:
        self.faults: Final = _Faults()
        self._nursery: Final = nursery
        self._rows: Final = dict[str, contract.Row]()
        self._ends: Final = list[tuple[float, int, str]]()
        self._logs: Final = dict[str, _Log]()
        self._revisions: Final = itertools.count(1)
        self._handles: Final = dict[MemoryEngine, None]()
        self._bell: Final = contract.Bell()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[MemoryEngine]:
        """Open a handle, which is closed at the end of the context."""
        engine = MemoryEngine(self)
        self._handles[engine] = None
        try:
            await trio.lowlevel.checkpoint()
            yield engine
        finally:
            engine.close()
            del self._handles[engine]

    # --- faults ---------------------------------------------------------------------------------

    def stop(self, engine: MemoryEngine | None = None) -> None:
        """Stop the store, or cut one handle off."""
        self._faults(engine).is_down = True
        self._moved()

    def start(self, engine: MemoryEngine | None = None) -> None:
        """End the effect of `stop`."""
        self._faults(engine).is_down = False
        self._moved()

    def restart_empty(self) -> None:
        """Stop the store, and start it again without rows."""
        self.stop()
        self._ends.clear()
        for key in list(self._rows):
            self._set(key, None)
        for log in list(self._logs):
            self._forget(log, self._logs[log].entries[-1][0].position)
        self.start()

    def slow(self, delay: float, engine: MemoryEngine | None = None) -> None:
        """Set the duration of each request; beyond `ENGINE_TIMEOUT` requests fail.

        Their writes are still made after the delay.
        """
        self._faults(engine).delay = delay

    def answer_no_more(self, count: int, engine: MemoryEngine | None = None) -> None:
        """Execute the next calls of `put_all` or `append_all`, but lose their answers."""
        self._faults(engine).unanswered = count

    def swallow(self, count: int, engine: MemoryEngine | None = None) -> None:
        """Lose the next calls of `put_all` or `append_all`: no write, and no answer."""
        self._faults(engine).swallowed = count

    def _faults(self, engine: MemoryEngine | None) -> _Faults:
        return self.faults if engine is None else engine.faults

    def _moved(self) -> None:
        for handle in self._handles:
            handle.update_health()

    # --- rows -----------------------------------------------------------------------------------

    def row(self, key: str) -> contract.Row | None:
        """Return the row with a key; None: there is none."""
        return self._rows.get(key)

    def rows(self, prefix: str = "") -> list[contract.Row]:
        """Return the rows whose keys begin with a prefix, by their revision."""
        rows = [row for key, row in self._rows.items() if key.startswith(prefix)]
        return sorted(rows, key=lambda row: row.revision)

    def write(self, puts: Sequence[contract.Put]) -> Sequence[contract.Written]:
        """Write rows, each independently of the others; see `Engine.put_all`."""
        return tuple(self._write(put) for put in puts)

    def _write(self, put: contract.Put) -> contract.Written:
        row = self._rows.get(put.key)
        revision = 0 if row is None else row.revision
        if put.expected is not None and put.expected != revision:
            return contract.ConflictError(put.key, row)
        new = self._set(put.key, put.value)
        if put.lasts is not None and put.value is not None:
            heappush(self._ends, (trio.current_time() + put.lasts, new, put.key))
            self._bell.ring()
        return new

    def _set(self, key: str, value: bytes | None) -> int:
        row = contract.Row(key, value, next(self._revisions))
        if value is None:
            self._rows.pop(key, None)
        else:
            self._rows[key] = row
        for handle in self._handles:
            handle.take_row(row)
        return row.revision

    def publish(self, node: str, payloads: Sequence[bytes]) -> None:
        """Deliver payloads to the inboxes of a node, except on handles with a broken connection."""
        for payload in payloads:
            for handle in self._handles:
                handle.take_payload(node, payload)

    def append(self, appends: Sequence[contract.Append]) -> Sequence[contract.Appended]:
        """Add entries to logs, each independently of the others; see `Engine.append_all`."""
        return tuple(self._append(each) for each in appends)

    def _append(self, append: contract.Append) -> contract.Appended:
        now = trio.current_time()
        log = self._logs.setdefault(append.log, _Log())
        log.forget(0, now)
        if log.units + append.units > LOG_UNITS:
            return contract.LogFullError(append.log)
        entry = contract.Entry(append.log, next(self._revisions), append.payload)
        log.entries.append((entry, append.units, now + LOG_LIFE))
        log.units += append.units
        for handle in self._handles:
            handle.take_entry(entry)
        return entry.position

    def entries(self) -> list[contract.Entry]:
        """Return the entries of all logs, in their order."""
        for log in list(self._logs):
            self._forget(log, 0)
        entries = [entry for log in self._logs.values() for entry, _, _ in log.entries]
        return sorted(entries, key=lambda entry: entry.position)

    def fetch(self, log: str, after: int, most: int) -> list[contract.Entry]:
        """Return entries of a log; see `Engine.fetch`."""
        self._forget(log, 0)
        stored = self._logs.get(log, _Log()).entries
        behind = (entry for entry, _, _ in stored if entry.position > after)
        return list(itertools.islice(behind, most))

    def acknowledge(self, reached: Mapping[str, int]) -> None:
        """Remove the entries of logs, each up to a position."""
        for log, position in reached.items():
            self._forget(log, position)

    def _forget(self, name: str, position: int) -> None:
        log = self._logs.get(name)
        if log is not None:
            log.forget(position, trio.current_time())
            if not log.entries:
                del self._logs[name]

    def do_later(self, delay: float, call: Callable[[], object]) -> None:
        """Call a function after a delay, unless the store is down at that time."""
        self._nursery.start_soon(self._do_later, delay, call)

    async def _do_later(self, delay: float, call: Callable[[], object]) -> None:
        await trio.sleep(delay)
        if not self.faults.is_down:
            call()

    async def run(self) -> None:
        """Delete expired rows until cancelled."""
        while True:
            until = self._ends[0][0] if self._ends else math.inf
            with trio.move_on_at(until):
                await self._bell.wait()
            while self._ends and self._ends[0][0] <= trio.current_time():
                _, revision, key = heappop(self._ends)
                row = self._rows.get(key)
                if row is not None and row.revision == revision:
                    self._set(key, None)


@asynccontextmanager
async def open_memory_store() -> AsyncIterator[MemoryStore]:
    """Open an empty store; while the context is open, rows with leases expire in time."""
    async with open_background() as nursery:
        store = MemoryStore(nursery)
        nursery.start_soon(store.run)
        yield store
