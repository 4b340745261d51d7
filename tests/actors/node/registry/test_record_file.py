"""Records on disk: what is acknowledged survives whatever end the process finds (I-G3)."""

import contextlib
import sqlite3
import subprocess
import sys

import pytest

from actors.kit.trace import NULL_TRACER
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.node.errors import RegistryFileError
from actors.node.registry.record_file import SqliteRecords
from fsm.machines.registration import State
from fsm.registry.records import Row
from tests.actors.node.registry.test_registry import read, registered, update
from tests.support.node.node_peer import DOMAIN, RA, RB, open_world
from transports.memory import MemoryNetwork

ROW = Row("hyperty://a.ex/hb", RB, State.LIVE, 12.5, {"url": "hyperty://a.ex/hb", "k": [1]})

WRITER = """
import sys, trio
from pathlib import Path
from actors.node.registry.record_file import SqliteRecords
from fsm.registry.records import Row
from fsm.machines.registration import State

async def write():
    records = SqliteRecords(Path(sys.argv[1]))
    records.load()
    for n in range(10**6):
        url = f"hyperty://a.ex/{n}"
        await records.commit([(url, Row(url, "r", State.LIVE, 0.0, {"n": n}))])
        print(n, flush=True)

trio.run(write)
"""


def rows_in(path):
    with contextlib.closing(SqliteRecords(path)) as records:
        return records.load()


async def test_rows_come_back_as_they_were(tmp_path):
    records = SqliteRecords(tmp_path / "r.sqlite")
    assert records.load() == []
    await records.commit(
        [(ROW.url, ROW), ("x://y/z", Row("x://y/z", RB, State.DISCONNECTED, 1.0, {}))]
    )
    await records.commit([("x://y/z", None)])
    records.close()
    records.close()

    assert rows_in(tmp_path / "r.sqlite") == [ROW]


def test_acknowledged_records_of_a_killed_process_are_in_the_file(tmp_path):
    path = tmp_path / "r.sqlite"
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:  # noqa: S603 - our own
        acknowledged = [int(writer.stdout.readline()) for _ in range(50)]
        writer.kill()
        acknowledged += [int(line) for line in writer.stdout.read().split()]

    rows = {row.value["n"] for row in rows_in(path)}
    assert set(acknowledged) <= rows


def test_a_file_that_is_no_database_is_refused_with_a_sentence(tmp_path):
    path = tmp_path / "r.sqlite"
    path.write_bytes(b"not a database " * 100)

    with pytest.raises(RegistryFileError, match="cannot use the registry file"):
        rows_in(path)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ("CREATE TABLE places (name)", "another program"),
        ("CREATE TABLE record (name)", "another program"),
        ("PRAGMA user_version = 2", "a newer version"),
    ],
)
def test_a_database_that_is_not_ours_is_refused_and_left_as_it_is(tmp_path, made, reason):
    path = tmp_path / "r.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as other, other:
        other.execute(made)
    before = path.read_bytes()

    with pytest.raises(RegistryFileError, match=reason):
        rows_in(path)

    assert path.read_bytes() == before


async def test_a_file_has_one_node_at_a_time_also_while_it_is_opened_anew(tmp_path):
    path = tmp_path / "r.sqlite"
    (tmp_path / "other").symlink_to(path)
    with contextlib.closing(SqliteRecords(path)) as first:
        first.load()
        await first.recover()
        for name in (path, tmp_path / "other"):
            with pytest.raises(RegistryFileError, match="another node has it open"):
                rows_in(name)

    assert rows_in(path) == []


def test_a_copy_can_be_made_while_a_node_has_the_file(tmp_path):
    path = tmp_path / "r.sqlite"
    with contextlib.closing(SqliteRecords(path)) as first:
        first.load()
        with (
            contextlib.closing(sqlite3.connect(path)) as there,
            contextlib.closing(sqlite3.connect(tmp_path / "copy.sqlite")) as copy,
        ):
            there.backup(copy)

    assert rows_in(tmp_path / "copy.sqlite") == []


async def test_a_write_that_fails_says_so(tmp_path):
    path = tmp_path / "r.sqlite"
    records = SqliteRecords(path)
    records.load()
    with sqlite3.connect(path) as other:
        other.execute("DROP TABLE record")

    with pytest.raises(RegistryFileError):
        await records.commit([(ROW.url, ROW)])
    records.close()


async def test_a_node_does_not_start_on_a_bad_file(tmp_path):
    path = tmp_path / "r.sqlite"
    path.write_bytes(b"not a database " * 100)
    config = NodeConfig(domain=DOMAIN, registry=path)

    with pytest.raises(RegistryFileError):
        async with open_node(config, MemoryNetwork(), NULL_TRACER):
            pass


async def test_records_survive_the_node(tmp_path):
    path = tmp_path / "r.sqlite"
    async with open_world(registry=path) as world:
        rb = await world.peer(RB)
        url = await registered(rb)

    async with open_world(registry=path) as world:
        ra, back = await world.peer(RA), await world.outsider(RB)
        assert (await back.control("re-open", runtimeURL=RB, token=rb.token)).code == 200
        rb = back
        assert (await read(ra, url)).code == 408
        assert (await update(rb, url)).code == 200
        assert (await read(ra, url)).code == 200
        assert [new for _, _, new in world.steps("registration")] == [
            "live", "disconnected", "live",
        ]  # fmt: skip
