"""Engines of several kinds, for tests of what they all keep."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import trio
from typing_extensions import override

from tests.support.nats_server import NatsServer
from transports.engine.contract import Current, Engine, Row, Seen
from transports.engine.memory import MemoryStore, open_memory_store
from transports.engine.nats import open_engine
from transports.nats.connection import ServerUrl, Terms

_GROUPS = itertools.count(1)


class Place(ABC):
    """A store that handles can be opened to, and that can be lost."""

    @abstractmethod
    def open(self) -> AbstractAsyncContextManager[Engine]:
        """Open a handle that is up."""

    @abstractmethod
    async def stop(self) -> None:
        """Let the store be down, for all handles."""

    @abstractmethod
    async def start(self) -> None:
        """Let it come back with its rows."""

    @abstractmethod
    async def restart_empty(self) -> None:
        """Let it go, and come back without rows."""


class MemoryPlace(Place):
    """A store in memory."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store

    @override
    def open(self) -> AbstractAsyncContextManager[Engine]:
        return self.store.open()

    @override
    async def stop(self) -> None:
        self.store.stop()

    @override
    async def start(self) -> None:
        self.store.start()

    @override
    async def restart_empty(self) -> None:
        self.store.restart_empty()


@asynccontextmanager
async def open_memory_place() -> AsyncIterator[MemoryPlace]:
    async with open_memory_store() as store:
        yield MemoryPlace(store)


class NatsPlace(Place):
    """A bucket of a server of its own process."""

    def __init__(self, server: NatsServer) -> None:
        self.server = server
        self.terms = Terms((ServerUrl.read(server.url),))
        self.group = f"{next(_GROUPS)}.example"

    @override
    @asynccontextmanager
    async def open(self) -> AsyncIterator[Engine]:
        async with open_engine(self.terms, self.group) as engine:
            await until_health(engine, is_up=True)
            yield engine

    @override
    async def stop(self) -> None:
        self.server.kill()

    @override
    async def start(self) -> None:
        self.server.start()

    @override
    async def restart_empty(self) -> None:
        self.server.kill()
        self.server.empty()
        self.server.start()


async def until_health(engine: Engine, *, is_up: bool) -> None:
    """Wait until a handle knows that the store is up or down."""
    while engine.health.is_up is not is_up:
        await engine.health_changed()


async def until_current(
    channel: trio.MemoryReceiveChannel[Sequence[Seen]],
) -> dict[str, bytes | None]:
    """Return what a watch gives up to `Current`: values by keys, the last one of each."""
    found: dict[str, bytes | None] = {}
    async for batch in channel:
        found.update({row.key: row.value for row in batch if isinstance(row, Row)})
        if any(isinstance(one, Current) for one in batch):
            return found
    raise AssertionError("the watch has ended")


async def until_row(
    channel: trio.MemoryReceiveChannel[Sequence[Seen]], key: str, value: bytes | None
) -> Row:
    """Wait for a value of a row, among whatever else a watch gives."""
    async for batch in channel:
        for row in batch:
            if isinstance(row, Row) and (row.key, row.value) == (key, value):
                return row
    raise AssertionError("the watch has ended")


async def received(channel: trio.MemoryReceiveChannel[Sequence[bytes]], count: int) -> list[bytes]:
    """Return that many payloads of an inbox, or more if they came together."""
    found: list[bytes] = []
    while len(found) < count:
        found += await channel.receive()
    return found
