"""Faults that only an engine in memory has on demand."""

import pytest
import trio

from specs.limits.engine import ENGINE_TIMEOUT
from tests.transports.engine.engines import until_current
from transports.engine.contract import EngineDownError
from transports.engine.memory import open_memory_store


@pytest.fixture
async def store():
    async with open_memory_store() as store:
        yield store


@pytest.fixture
def place(store):
    return store


async def test_a_slow_store_answers_late(autojump_clock, store, engine):
    store.slow(ENGINE_TIMEOUT / 2)
    await engine.put("a", b"1")

    assert trio.current_time() == ENGINE_TIMEOUT / 2
    async with engine.watch() as rows:
        assert await until_current(rows) == {"a": b"1"}
    assert trio.current_time() == ENGINE_TIMEOUT


async def test_a_store_that_goes_leaves_an_outcome_unknown(autojump_clock, store, engine):
    store.slow(1)
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def _():
            await trio.sleep(0.5)
            store.stop()

        with pytest.raises(EngineDownError) as caught:
            await engine.put("a", b"1")
    assert caught.value.is_unknown
    assert store.row("a") is None
