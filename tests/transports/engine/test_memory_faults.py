"""Faults that only an engine in memory has on demand."""

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from specs.limits.engine import ENGINE_TIMEOUT, LOG_LIFE, LOG_UNITS
from tests.transports.engine.engines import until_current, until_row
from transports.engine.contract import Append, EngineDownError, Entry, LogFullError, Put, Row
from transports.engine.memory import open_memory_store


@pytest.fixture
async def store():
    async with open_memory_store() as store:
        yield store


@pytest.fixture
async def engine(store):
    async with store.open() as engine:
        yield engine


@pytest.fixture
async def other(store):
    async with store.open() as engine:
        yield engine


async def test_a_handle_that_was_cut_off_misses_nothing(autojump_clock, store, engine, other):
    await other.put_all([Put("a", b"1"), Put("b", b"1")])
    async with engine.watch() as rows, engine.inbox("n") as inbox:
        await until_current(rows)
        store.stop(engine)
        with pytest.raises(EngineDownError):
            await engine.get("a")
        await other.put("a", b"2")
        await other.delete("b")
        await other.publish("n", [b"lost"])
        await wait_all_tasks_blocked()
        with pytest.raises(trio.WouldBlock):
            rows.receive_nowait()
        store.start(engine)

        assert await until_current(rows) == {"a": b"2", "b": None}
        await other.publish("n", [b"kept"])
        assert await inbox.receive() == [b"kept"]
    assert (engine.counts.outages, other.counts.outages) == (1, 0)


async def test_a_lease_of_a_handle_that_is_cut_off_ends(autojump_clock, store, engine, other):
    await engine.put("node/a", b"1", lasts=10)
    store.stop(engine)
    async with other.watch() as rows:
        await until_row(rows, "node/a", None)
    assert trio.current_time() == 10


async def test_a_slow_store_answers_late(autojump_clock, store, engine):
    store.slow(ENGINE_TIMEOUT / 2)
    await engine.put("a", b"1")

    assert trio.current_time() == ENGINE_TIMEOUT / 2
    async with engine.watch() as rows:
        assert await until_current(rows) == {"a": b"1"}
    assert trio.current_time() == ENGINE_TIMEOUT


async def test_a_write_to_a_slow_store_is_done_later(autojump_clock, store, engine, other):
    store.slow(ENGINE_TIMEOUT + 1, engine)
    with pytest.raises(EngineDownError) as caught:
        await engine.put("a", b"1")

    assert caught.value.is_unknown
    assert trio.current_time() == ENGINE_TIMEOUT
    assert await other.get("a") is None
    await trio.sleep(2)
    assert (await other.get("a")).value == b"1"


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


@pytest.mark.parametrize("is_done", [True, False])
async def test_the_outcome_of_a_write_may_be_hidden(autojump_clock, store, engine, other, is_done):
    """Only a watch shows what became of it."""
    (store.answer_no_more if is_done else store.swallow)(1, engine)
    written = await engine.put_all([Put("a", b"1"), Put("b", b"1")])
    await other.put("c", b"1")

    assert [one.is_unknown for one in written] == [True, True]
    async with engine.watch() as rows:
        assert ("a" in await until_current(rows)) is is_done
    await engine.put("a", b"2")


async def test_an_entry_goes_when_its_time_is_over(autojump_clock, store, engine):
    await engine.append_all([Append("a", b"1")] * LOG_UNITS)
    await trio.sleep(LOG_LIFE - 1)
    (full,) = await engine.append_all([Append("a", b"2")])
    assert isinstance(full, LogFullError)
    await trio.sleep(2)
    (position,) = await engine.append_all([Append("a", b"3")])
    assert await engine.fetch("a", 0, 2) == [Entry("a", position, b"3")]


@pytest.mark.parametrize("is_done", [True, False])
async def test_the_outcome_of_an_addition_may_be_hidden(store, engine, is_done):
    (store.answer_no_more if is_done else store.swallow)(1)
    (lost,) = await engine.append_all([Append("a", b"1")])
    await engine.append_all([Append("a", b"2")])

    assert lost.is_unknown
    found = [one.payload for one in await engine.fetch("a", 0, 3)]
    assert found == ([b"1", b"2"] if is_done else [b"2"])


async def test_a_handle_opened_while_the_store_is_down_begins_with_it(autojump_clock, store):
    store.stop()
    async with store.open() as engine:
        assert not engine.health.is_up
        store.start()
        revision = await engine.put("a", b"1")
        assert await engine.get("a") == Row("a", b"1", revision)


def test_the_same_run_gives_the_same_rows():
    async def run():
        async with open_memory_store() as store, store.open() as one, store.open() as other:
            for number in range(20):
                await one.put(f"node/{number % 5}", b"%d" % number, lasts=1 + number % 3)
                await trio.sleep(0.3)
            async with other.watch() as rows:
                return [await rows.receive() for _ in range(4)], trio.current_time()

    runs = [trio.run(run, clock=MockClock(autojump_threshold=0)) for _ in range(2)]
    assert runs[0] == runs[1]
