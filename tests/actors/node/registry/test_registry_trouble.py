"""A registry file that cannot be written: changes get 503, all else goes on, and it heals (R13)."""

import sqlite3
from contextlib import contextmanager

import pytest
import trio

from actors.kit.counters import KeptFile, Tally
from tests.support.log import captured_log
from tests.support.node.node_peer import RA, RB, SM, open_world
from tests.support.trace.records import read, registered, update


@contextmanager
def locked(path):
    """Hold the file as a backup that forgot to let go does."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "r.sqlite"


@pytest.fixture
def lines():
    with captured_log() as captured:
        yield captured


def reported(lines, event):
    return len([line for line in lines if line["event"] == event])


async def until_written(peer, url):
    """Change a record until the registry takes it."""
    with trio.fail_after(60):
        while (await update(peer, url)).code != 200:  # noqa: ASYNC110 - as a runtime would
            await trio.sleep(0.1)


async def test_records_of_ended_sessions_are_noted_and_reported_when_the_file_heals(path):
    async with open_world(registry=path) as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        url = await registered(rb)
        await ra.ask("subscribe", f"{RA}/registry", SM, resources=[f"{url}/registration"])
        with locked(path):
            assert (await update(rb, url)).code == 503
            await rb.control("close")
            assert await ra.silence(0.1)
        with trio.fail_after(60):
            assert (await ra.hear()).body["value"] == "disconnected"
        assert (await read(ra, url)).code == 408


async def test_each_failed_attempt_to_write_is_counted(path):
    async with open_world(registry=path) as world:
        rb = await world.peer(RB)
        url = await registered(rb)
        with locked(path):
            assert (await update(rb, url)).code == 503
            written = world.node.counters.tallies[Tally.WRITES_FAILED]
            assert written == {(KeptFile.REGISTRY,): 1}
            with trio.fail_after(60):
                while written[KeptFile.REGISTRY,] < 2:  # noqa: ASYNC110 - it tries every second
                    await trio.sleep(0.1)


async def test_a_file_that_was_replaced_by_garbage_is_made_anew_once_it_is_removed(path, lines):
    async with open_world(registry=path) as world:
        rb = await world.peer(RB)
        url = await registered(rb)
        for one in path.parent.glob("r.sqlite*"):
            one.unlink()
        path.write_bytes(b"not a database " * 1000)
        assert (await update(rb, url)).code == 503
        path.unlink()
        await until_written(rb, url)
        assert (await read(rb, url)).code == 200
    async with open_world(registry=path) as world:
        rb = await world.peer(RB)
        assert (await read(rb, url)).code == 408
    assert reported(lines, "actor crashed") == 0
