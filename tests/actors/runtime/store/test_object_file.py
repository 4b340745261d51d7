"""The file of a runtime's store: what was acknowledged is there, whatever ended the process."""

import contextlib
import sqlite3
import stat
import subprocess
import sys

import pytest
import trio
from attrs import astuple

from actors.kit.supervision.supervisor import ChildSpec, Strategy, open_supervisor
from actors.runtime.store import runtime_store
from actors.runtime.store.file import ObjectFile, StoreFileError
from actors.runtime.store.runtime_store import Commit, ObjectStore, StoreGate
from fsm.sync.stored import (
    KEYS,
    ChildrenKept,
    CopyKept,
    Forgotten,
    GuestKept,
    HomeKept,
    ObjectKept,
    ObserverKept,
    SessionKept,
)
from specs.bodies.object import DataObject
from specs.limits.sync import COPY_PAUSE, STORE_PAUSE

URL, ALICE, BOB = "comm://a.ex/o", "hyperty://a.ex/alice", "hyperty://b.ex/bob"
R = "hyperty-runtime://a.ex/ra"
THING = DataObject(ALICE, R, {"n": [1, {"m": None}]}, URL, 7, "todo", "s", ("chat",))
ALL = [
    SessionKept("a.ex", "t"),
    HomeKept(ALICE, "d"),
    ObjectKept(URL, THING, is_public=True),
    ObserverKept(URL, BOB, f"{R}/sm"),
    ObserverKept(URL, ALICE, f"{R}/sm", lease=60),
    GuestKept(URL, BOB, may=True),
    GuestKept(URL, ALICE, may=False),
    ChildrenKept(URL, {"a#1": {"v": 1}}),
    CopyKept("comm://a.ex/2", ALICE, 3, {"x": 1}),
]
NONE = [
    Forgotten(HomeKept, (ALICE,)),
    Forgotten(ObjectKept, (URL,)),
    Forgotten(CopyKept, ("comm://a.ex/2", ALICE)),
]

WRITER = """
import sys, trio
from pathlib import Path
from actors.runtime.store.file import ObjectFile
from fsm.sync.stored import ObjectKept
from specs.bodies.object import DataObject

async def write():
    file = ObjectFile(Path(sys.argv[1]))
    file.load()
    for n in range(1, 10**6):
        thing = DataObject("a://b/c", "d://e/f", {"n": n}, "g://h/i", n)
        await file.commit([ObjectKept(thing.url, thing)])
        print(n, flush=True)

trio.run(write)
"""


def in_order(rows):
    """Return rows as a file shows them: table by table, and by keys."""
    return sorted(
        rows, key=lambda row: (list(KEYS).index(type(row)), *astuple(row)[: KEYS[type(row)]])
    )


def stored(path):
    with contextlib.closing(ObjectFile(path)) as file:
        return list(file.load())


async def write(path, *changes):
    with contextlib.closing(ObjectFile(path)) as file:
        file.load()
        await file.commit(changes)


async def test_all_comes_back_as_it_was(tmp_path):
    path = tmp_path / "s.sqlite"
    assert stored(path) == []
    await write(path, *ALL)
    assert stored(path) == in_order(ALL)
    gone = [ALL[3], ALL[6], ALL[7]]
    await write(
        path,
        Forgotten(ObserverKept, (URL, BOB)),
        Forgotten(GuestKept, (URL, ALICE)),
        Forgotten(ChildrenKept, (URL,)),
    )
    assert stored(path) == [one for one in in_order(ALL) if one not in gone]


async def test_deleted_objects_leave_the_file_and_what_belongs_to_them_too(tmp_path):
    path = tmp_path / "s.sqlite"
    await write(path, *ALL, *NONE, *ALL[3:8])
    assert stored(path) == [SessionKept("a.ex", "t")]
    with contextlib.closing(sqlite3.connect(path)) as there:
        tables = ("object", "observer", "guest", "child", "copy", "home")
        counts = [there.execute(f"SELECT count(*) FROM {one}").fetchone() for one in tables]  # noqa: S608
    assert counts == [(0,)] * len(tables)


async def test_the_file_does_not_grow_with_what_was_but_with_what_is(tmp_path):
    path, big = tmp_path / "s.sqlite", {"text": "x" * 5000}
    sizes = []
    for _ in range(2):
        for n in range(100):
            url = f"comm://a.ex/{n}"
            await write(path, ObjectKept(url, DataObject(ALICE, R, big, url)))
            await write(path, Forgotten(ObjectKept, (url,)))
        sizes.append(path.stat().st_size)
    assert sizes[1] <= sizes[0] < 200_000


def test_the_file_is_for_its_owner_only(tmp_path):
    """It holds the token of a session."""
    stored(tmp_path / "s.sqlite")
    assert stat.S_IMODE((tmp_path / "s.sqlite").stat().st_mode) == 0o600


def test_acknowledged_records_of_a_killed_process_are_in_the_file(tmp_path):
    path = tmp_path / "s.sqlite"
    with subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        for _ in range(20):
            acknowledged = int(writer.stdout.readline())
        writer.kill()
        acknowledged = int((writer.stdout.read().split() or [acknowledged])[-1])
    (found,) = (one.value for one in stored(path))
    assert found.version in {acknowledged, acknowledged + 1}
    assert found.data == {"n": found.version}


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("CREATE TABLE mine (x)", "another program"),
        ("CREATE TABLE object (x)", "another program"),
        ("PRAGMA user_version = 3", "a newer version of the runtime"),
        (
            "CREATE TABLE object (x); PRAGMA user_version = 1",
            "no column|has 1 columns|no such column",
        ),
    ],
)
def test_a_file_that_is_none_of_ours_is_refused_and_left_as_it_is(sql, why, tmp_path):
    path = tmp_path / "s.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as there:
        there.executescript(sql)
    before = path.read_bytes()
    with pytest.raises(StoreFileError, match=why):
        stored(path)
    assert why.startswith("no col") or path.read_bytes() == before


def test_a_file_of_a_registry_is_refused(tmp_path):
    from actors.node.registry.record_file import SqliteRecords

    with contextlib.closing(SqliteRecords(tmp_path / "r.sqlite")) as records:
        records.load()
    with pytest.raises(StoreFileError, match="another program"):
        stored(tmp_path / "r.sqlite")


def test_a_file_without_a_database_is_refused(tmp_path):
    (tmp_path / "s.sqlite").write_text("hello " * 1000)
    with pytest.raises(StoreFileError, match=r"cannot use the store .*: file is not a database"):
        stored(tmp_path / "s.sqlite")


def test_two_cannot_have_it_at_a_time(tmp_path):
    path = tmp_path / "s.sqlite"
    with contextlib.closing(ObjectFile(path)) as file:
        file.load()
        with pytest.raises(StoreFileError, match="another runtime has it open"):
            stored(path)
    assert stored(path) == []


async def test_a_file_that_breaks_is_written_anew_when_it_can_be(tmp_path):
    path, moved = tmp_path / "s.sqlite", tmp_path / "moved.sqlite"
    with contextlib.closing(ObjectFile(path)) as file:
        file.load()
        await file.commit(ALL)
        path.rename(moved)
        path.mkdir()
        for _ in range(2):
            with pytest.raises(StoreFileError):
                await file.commit([NONE[2]])
        path.rmdir()
        await file.commit([NONE[0]])
    assert stored(path) == in_order([ALL[0], *ALL[2:]])


class Counted(ObjectFile):
    """Counts its commits."""

    commits = 0

    async def commit(self, changes):
        type(self).commits += 1
        await super().commit(changes)


async def test_simultaneous_changes_share_a_commit_and_copies_wait_a_little(tmp_path):
    Counted.commits = 0
    file = Counted(tmp_path / "s.sqlite")
    file.load()
    async with open_supervisor("store", Strategy.ONE_FOR_ALL) as core:
        store = await core.start_child(ChildSpec("store", lambda: ObjectStore(file)))

        async def keep(version):
            thing = DataObject(ALICE, R, {}, URL, version)
            change = (ObjectKept(URL, thing),)
            assert await store.ask(lambda done: Commit(change, done)) is None

        async with trio.open_nursery() as nursery:
            for version in range(1, 101):
                nursery.start_soon(keep, version)
        assert Counted.commits < 20
        for version in range(1, 101):
            await store.tell(CopyKept(URL, BOB, version, {}))
        core_commits = Counted.commits
    assert Counted.commits <= core_commits + 1
    file.close()
    assert [one.version for one in stored(tmp_path / "s.sqlite") if isinstance(one, CopyKept)] == [
        100
    ]


class Full(ObjectFile):
    """Refuses its first commit."""

    is_full = True

    async def commit(self, changes):
        if self.is_full:
            self.is_full = False
            raise StoreFileError(self.path, "no space left on device")
        await super().commit(changes)


async def test_a_copy_that_cannot_be_written_is_written_later(tmp_path, autojump_clock):
    with contextlib.closing(Full(tmp_path / "s.sqlite")) as file:
        file.load()
        async with open_supervisor("store", Strategy.ONE_FOR_ALL) as core:
            store = await core.start_child(ChildSpec("store", lambda: ObjectStore(file)))
            await store.tell(CopyKept(URL, BOB, 1, {}))
            await trio.sleep(COPY_PAUSE + STORE_PAUSE)
    assert stored(tmp_path / "s.sqlite") == [CopyKept(URL, BOB, 1, {})]


async def test_what_changes_during_a_commit_is_committed_next():
    first, second = HomeKept(ALICE, "d"), HomeKept(BOB, "d")
    committed = []

    class Writer:
        async def ask(self, make):
            committed.append(make(None).changes)
            if len(committed) == 1:
                gate.keep(URL, second)

    gate = StoreGate(Writer())
    gate.stored.add(URL)
    gate.keep(URL, first)
    await gate.settle()
    assert committed == [(first,), (second,)]


def test_a_full_store_has_room_for_the_copies_that_it_has(monkeypatch):
    monkeypatch.setattr(runtime_store, "COPIES_STORED", 1)
    store = runtime_store.RuntimeStore(None)
    store.store_soon(CopyKept(URL, BOB, 1, {}))
    assert store.has_room(URL, BOB)
    assert not store.has_room(URL, ALICE)


async def test_a_file_that_knows_no_leases_becomes_one_that_does(tmp_path):
    """SYN-20: observers that were stored before have none until they subscribe again."""
    path = tmp_path / "s.sqlite"
    await write(path, *ALL)
    with contextlib.closing(sqlite3.connect(path)) as older, older:
        older.execute("ALTER TABLE observer DROP COLUMN lease")
        older.execute("PRAGMA user_version = 1")
    observers = [one for one in stored(path) if isinstance(one, ObserverKept)]
    assert [one.lease for one in observers] == [None, None]
    await write(path, ObserverKept(URL, BOB, f"{R}/sm", lease=30))
    assert ObserverKept(URL, BOB, f"{R}/sm", lease=30) in stored(path)
