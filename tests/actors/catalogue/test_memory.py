"""What was seen outlives the process, whole or not at all; packages are hashed anew (T14, T15)."""

import pytest

from actors.catalogue.errors import CatalogueFileError
from actors.catalogue.memory import CatalogueStore, FolderStore, Kept, Known
from fsm.catalogue.descriptor import Seen
from specs.addresses.address import CatalogueType, Entry
from specs.limits.foreign_code import CATALOGUE_MEMORY_BYTES

ONE = Entry("b.ex", CatalogueType.STUB, "default")


def kept(counter=1, entry=ONE):
    return Kept({entry: Known(Seen(counter, "d" * 64), "a.b.c")}, {"b.ex": "x.y.z"}, {"b.ex": "{}"})


@pytest.fixture(params=["volatile", "file"])
def memory(request, tmp_path):
    return CatalogueStore() if request.param == "volatile" else FolderStore(tmp_path / "a")


async def test_a_file_that_would_be_too_large_is_not_written(tmp_path):
    memory = FolderStore(tmp_path)
    await memory.save(kept())
    large = Kept(revoked={"b.ex": "x" * CATALOGUE_MEMORY_BYTES})
    with pytest.raises(CatalogueFileError, match="start a new one"):
        await memory.save(large)
    assert await memory.load() == kept()
