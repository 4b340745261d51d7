"""The file of a runtime's store: what was acknowledged is there, whatever ended the process."""

import contextlib

import pytest
import trio

from actors.kit.supervision.supervisor import ChildSpec, Strategy, open_supervisor
from actors.runtime.store import runtime_store
from actors.runtime.store.file import ObjectFile, StoreFileError
from actors.runtime.store.runtime_store import ObjectStore, StoreGate
from fsm.sync.stored import ChildrenKept, CopyKept, HomeKept
from specs.limits.sync import COPIES_STORED, COPY_PAUSE, STORE_PAUSE

URL, ALICE, BOB = "comm://a.ex/o", "hyperty://a.ex/alice", "hyperty://b.ex/bob"


def stored(path):
    with contextlib.closing(ObjectFile(path)) as file:
        return list(file.load())


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


async def test_children_are_written_once_however_many_changes_wait(autojump_clock):
    """Of a store that cannot be written, the memory does not grow with each change."""
    written, tries = [], 0

    class Writer:
        async def ask(self, make):
            nonlocal tries
            tries += 1
            if tries < 3:
                return "full"
            written.extend(make(None).changes)
            return None

    gate, made = StoreGate(Writer()), []

    def make():
        made.append(ChildrenKept(URL, {"n": len(made)}))
        return made[-1]

    gate.keep_children("another", make)
    gate.stored.add(URL)
    for _ in range(3):
        for _ in range(1000):
            gate.keep_children(URL, make)
        await gate.settle()
        await trio.sleep(2 * STORE_PAUSE)
    assert (written, len(made)) == ([made[-1]], 3)
    gate.keep_children(URL, lambda: None)
    await gate.settle()
    assert written == [made[-1]]


def test_a_full_store_has_room_for_the_copies_that_it_has():
    store = runtime_store.RuntimeStore(None)
    for number in range(COPIES_STORED):
        assert store.has_room(URL, f"{BOB}{number}")
        store.store_soon(CopyKept(URL, f"{BOB}{number}", 1, {}))
    assert store.has_room(URL, f"{BOB}0")
    assert not store.has_room(URL, ALICE)
