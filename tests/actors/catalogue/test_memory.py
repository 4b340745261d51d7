"""What was seen outlives the process, whole or not at all; packages are hashed anew (T14, T15)."""

import json
import os
from hashlib import sha256

import pytest
import trio

from actors.catalogue.errors import CatalogueFileError
from actors.catalogue.memory import (
    CatalogueStore,
    FolderStore,
    Kept,
    Known,
)
from actors.kit.files import write_whole
from fsm.catalogue.descriptor import Seen
from specs.addresses.address import REVOKED, CatalogueType, Entry
from specs.limits.foreign_code import CATALOGUE_MEMORY_BYTES
from tests.support.catalogues import Publishing

ONE = Entry("b.ex", CatalogueType.STUB, "default")
TWO = Entry("c.ex", CatalogueType.STUB, "default")


def kept(counter=1, entry=ONE):
    return Kept({entry: Known(Seen(counter, "d" * 64), "a.b.c")}, {"b.ex": "x.y.z"}, {"b.ex": "{}"})


@pytest.fixture(params=["volatile", "file"])
def memory(request, tmp_path):
    return CatalogueStore() if request.param == "volatile" else FolderStore(tmp_path / "a")


async def test_a_new_memory_is_empty(memory):
    assert await memory.load() == Kept()


async def test_a_saved_memory_is_read_again(memory):
    await memory.save(kept())
    assert await memory.load() == kept()


async def test_a_memory_is_there_for_the_next_process(tmp_path):
    await FolderStore(tmp_path).save(kept())
    assert await FolderStore(tmp_path).load() == kept()


async def test_two_processes_lose_nothing_of_each_other(tmp_path):
    one, two = FolderStore(tmp_path), FolderStore(tmp_path)
    await one.save(kept(counter=7))
    await two.save(kept(entry=TWO))
    both = await one.load()
    assert {entry: known.seen.counter for entry, known in both.known.items()} == {ONE: 7, TWO: 1}


async def test_no_counter_decreases_for_any_order_of_saving(tmp_path):
    one, two = FolderStore(tmp_path), FolderStore(tmp_path)
    await one.save(kept(counter=7))
    await two.save(kept(counter=6))
    assert (await one.load()).known[ONE].seen.counter == 7


async def test_no_revocation_list_is_replaced_by_an_older_one_for_any_order_of_saving(tmp_path):
    """T14: a process that saw the older list does not bring it back for the next one."""
    domain = Publishing()
    lists = []
    for counter in (1, 2):
        domain.revokes(counter=counter)
        lists.append(Kept(revoked={"b.ex": domain.files[REVOKED].decode()}))
    older, newer = lists
    await FolderStore(tmp_path).save(newer)
    await FolderStore(tmp_path).save(older)
    assert await FolderStore(tmp_path).load() == newer


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", "{}", '{"version": 2, "known": {}, "revoked": {}, "keys": {}}',
        '{"version": 1, "known": {"x": {}}, "revoked": {}, "keys": {}}',
        '{"version": 1, "known": [], "revoked": {}, "keys": {}}',
        '{"version": 1, "known": {}, "revoked": 1, "keys": {}}',
    ],
)  # fmt: skip
async def test_a_damaged_file_is_said_and_not_taken_for_an_empty_one(tmp_path, text):
    """An attacker who can only damage it does not open the way back."""
    (tmp_path / "memory.json").write_text(text)
    memory = FolderStore(tmp_path)
    with pytest.raises(CatalogueFileError, match="it is damaged"):
        await memory.load()
    with pytest.raises(CatalogueFileError, match="it is damaged"):
        await memory.save(kept())
    assert (tmp_path / "memory.json").read_text() == text


@pytest.mark.parametrize(
    "spoilt", [{"counter": "7"}, {"counter": -1}, {"digest": 1}, {"text": None}]
)
async def test_a_damaged_line_is_said(tmp_path, spoilt):
    memory = FolderStore(tmp_path)
    await memory.save(kept())
    content = json.loads((tmp_path / "memory.json").read_text())
    content["known"][ONE.address].update(spoilt)
    (tmp_path / "memory.json").write_text(json.dumps(content))
    with pytest.raises(CatalogueFileError, match="it is damaged"):
        await memory.load()


async def test_an_unwritable_memory_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CatalogueFileError, match="cannot use"):
        await FolderStore(tmp_path / "file").save(kept())


async def test_a_file_that_would_be_too_large_is_not_written(tmp_path):
    memory = FolderStore(tmp_path)
    await memory.save(kept())
    large = Kept(revoked={"b.ex": "x" * CATALOGUE_MEMORY_BYTES})
    with pytest.raises(CatalogueFileError, match="start a new one"):
        await memory.save(large)
    assert await memory.load() == kept()


# ---- files that are whole


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "a" / "b"
    write_whole(path, b"old")
    with path.open("rb") as reader:
        write_whole(path, b"new")
        assert reader.read() == b"old"
    assert path.read_bytes() == b"new"
    assert [one.name for one in path.parent.iterdir()] == ["b"]


def test_a_file_that_cannot_be_replaced_stays_and_nothing_is_left(tmp_path, monkeypatch):
    path = tmp_path / "b"
    write_whole(path, b"old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["b"]


# ---- packages


async def test_a_package_is_found_by_its_hash(tmp_path):
    store, digest = FolderStore(tmp_path / "s"), sha256(b"code").hexdigest()
    assert await store.package(digest) is None
    await store.keep_package(digest, b"code")
    assert await store.package(digest) == b"code"
    assert await FolderStore(tmp_path / "s").package(digest) == b"code"


async def test_a_package_that_was_swapped_is_none(tmp_path):
    store, digest = FolderStore(tmp_path), sha256(b"code").hexdigest()
    await store.keep_package(digest, b"code")
    (tmp_path / "packages" / digest).write_bytes(b"evil")
    assert await store.package(digest) is None


async def test_a_store_that_cannot_be_written_is_no_loss(tmp_path):
    (tmp_path / "file").write_text("")
    store = FolderStore(tmp_path / "file")
    await store.keep_package("0" * 64, b"code")
    assert await store.package("0" * 64) is None


async def test_without_a_store_nothing_is_kept():
    store = CatalogueStore()
    await store.keep_package("0" * 64, b"code")
    assert await store.package("0" * 64) is None


async def test_many_saves_at_once_end_in_one_whole_file(tmp_path):
    memory = FolderStore(tmp_path)
    async with trio.open_nursery() as nursery:
        for counter in range(1, 20):
            nursery.start_soon(memory.save, kept(counter))
    assert (await memory.load()).known[ONE].seen.counter == 19
