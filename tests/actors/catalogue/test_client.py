"""When catalogues are asked, and what is done meanwhile (CAT-11, T14, S13)."""

from collections.abc import Mapping

import pytest
import trio
import trio.testing

from actors.catalogue.client import CatalogueClient
from actors.catalogue.errors import CatalogueFileError, RefusedDescriptorError
from actors.catalogue.memory import CatalogueStore, FolderStore, Kept
from actors.catalogue.source import MemorySource, Places, Source, package_path
from actors.catalogue.trust_file import Trust
from fsm.catalogue.descriptor import Reason
from specs.addresses.address import CatalogueType, Entry
from specs.limits.foreign_code import CATALOGUE_DOMAIN_BYTES, DESCRIPTOR_BYTES, DESCRIPTOR_FRESH
from tests.support.catalogues import HERE, STUB_B, Publishing, Wall, archive_of, client_of


class Counting(Mapping):
    """Files of a catalogue, and how often each was asked for."""

    def __init__(self, files):
        self.files, self.asked = files, []

    def __getitem__(self, path):
        self.asked.append(path)
        return self.files[path]

    def __iter__(self):
        return iter(self.files)

    def __len__(self):
        return len(self.files)


@pytest.fixture
def domain():
    made = Publishing()
    made.offers()
    return made


def counted(domain, store=None):
    files = Counting(domain.files)
    places = Places({domain.domain: lambda _: MemorySource("memory", files)})
    trust = domain.trust(publishers=("acme",))
    client = CatalogueClient(places, trust, HERE, store or CatalogueStore(), Wall(domain).offset)
    return client, files.asked.count


async def test_a_descriptor_is_not_asked_for_again_for_a_minute(domain, autojump_clock):
    client, asked = counted(domain)
    await client.find(STUB_B)
    await trio.sleep(DESCRIPTOR_FRESH - 1)
    await client.find(STUB_B)
    assert asked(STUB_B.path) == 1
    await trio.sleep(2)
    await client.find(STUB_B)
    assert asked(STUB_B.path) == 2


async def test_a_new_version_is_taken_after_that(domain, autojump_clock):
    client, _ = counted(domain)
    first = await client.find(STUB_B)
    domain.offers(counter=2, version="2")
    await trio.sleep(DESCRIPTOR_FRESH + 1)
    second = await client.find(STUB_B)
    assert (first.descriptor.version, second.descriptor.version) == ("1", "2")


async def test_a_descriptor_that_is_fresh_is_judged_anew(domain, autojump_clock):
    domain.offers(expires=domain.now + 10, counter=2)
    client, asked = counted(domain)
    await client.find(STUB_B)
    await trio.sleep(11)
    with pytest.raises(RefusedDescriptorError, match="it expired 1 s ago"):
        await client.find(STUB_B)
    assert asked(STUB_B.path) == 1


async def test_a_refused_descriptor_is_fetched_again_at_once(domain, autojump_clock):
    domain.serves_raw("{}")
    client, asked = counted(domain)
    with pytest.raises(RefusedDescriptorError):
        await client.find(STUB_B)
    domain.offers()
    assert await client.find(STUB_B)
    assert asked(STUB_B.path) == 2


async def test_a_refusal_is_not_kept_for_a_minute_where_a_good_one_was(domain, autojump_clock):
    client, asked = counted(domain)
    await client.find(STUB_B)
    await trio.sleep(DESCRIPTOR_FRESH + 1)
    domain.serves_raw("{}")
    with pytest.raises(RefusedDescriptorError):
        await client.find(STUB_B)
    domain.offers(counter=2)
    assert (await client.find(STUB_B)).descriptor.counter == 2
    assert asked(STUB_B.path) == 3


async def test_a_package_is_fetched_once(domain, tmp_path):
    archive = archive_of(tmp_path / "code")
    domain.serves(domain.code(archive, counter=2))
    store = FolderStore(tmp_path / "store")
    client, asked = counted(domain, store)
    found = [await client.find(STUB_B) for _ in range(3)]
    path = package_path(found[0].descriptor.source_package.sha256)
    assert [one.package for one in found] == [archive] * 3
    assert asked(path) == 1


async def test_two_concurrent_fetches_of_one_descriptor_ask_once(domain, autojump_clock):
    client, asked = counted(domain)
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(client.find, STUB_B)
    assert asked(STUB_B.path) == 1


class Slow(Source):
    """A catalogue that never answers."""

    name, proves_domain = "slow", True

    async def read(self, path, limit):
        await trio.sleep_forever()

    async def aclose(self):
        await trio.lowlevel.checkpoint()


async def test_a_slow_catalogue_delays_no_other(domain, autojump_clock):
    slow = Publishing(domain="c.ex")
    places = Places({"b.ex": domain.source, "c.ex": lambda _: Slow()})
    trust = Trust({**domain.trust().domains, **slow.trust().domains})
    shelf = CatalogueStore()
    client = CatalogueClient(places, trust, HERE, shelf, Wall(domain).offset)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.find, slow.entry)
        nursery.start_soon(client.find, slow.entry)
        await trio.testing.wait_all_tasks_blocked()
        with trio.fail_after(1):
            assert await client.find(STUB_B)
        nursery.cancel_scope.cancel()
    assert client._locks == {}


class Lame(CatalogueStore):
    """A disk that takes a second for each change."""

    def __init__(self):
        self.kept = Kept()

    async def load(self):
        await trio.lowlevel.checkpoint()
        return self.kept

    async def save(self, kept):
        await trio.sleep(1)
        self.kept = kept


async def test_of_two_domains_at_once_both_are_remembered(domain, autojump_clock):
    other, memory = Publishing(domain="c.ex"), Lame()
    other.offers()
    places = Places({"b.ex": domain.source, "c.ex": other.source})
    trust = Trust({**domain.trust().domains, **other.trust().domains})
    client = CatalogueClient(places, trust, HERE, memory, Wall(domain).offset)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.find, STUB_B)
        nursery.start_soon(client.find, other.entry)
    assert set(memory.kept.known) == {STUB_B, other.entry}


async def test_one_domain_does_not_fill_the_memory_of_all(domain, autojump_clock):
    """T15: its further descriptors are refused; what is known of it is renewed, and others come."""
    other, memory = Publishing(domain="c.ex"), CatalogueStore()
    other.offers()
    places = Places({"b.ex": domain.source, "c.ex": other.source})
    trust = Trust({**domain.trust().domains, **other.trust().domains})
    shelf = memory
    client = CatalogueClient(places, trust, HERE, shelf, Wall(domain).offset)
    schema = {"$comment": "x" * (DESCRIPTOR_BYTES // 2)}
    reasons, many = [], 2 * CATALOGUE_DOMAIN_BYTES // DESCRIPTOR_BYTES
    for counter in (1, 2):
        for number in range(many + 1):
            name, says = f"n{number}", {"scheme": "comm", "schema": schema, "counter": counter}
            domain.describes(CatalogueType.SCHEMA, name, **says)
            entry = Entry(domain.domain, CatalogueType.SCHEMA, name)
            try:
                assert (await client.find_schema(entry)).counter == counter
            except RefusedDescriptorError as refused:
                reasons.append((number, refused.refused.reason))
        await trio.sleep(DESCRIPTOR_FRESH)
    await client.find(other.entry)
    first = reasons[0][0]
    assert many // 2 < first
    assert reasons == 2 * [(number, Reason.TOO_LARGE) for number in range(first, many + 1)]


class Full(CatalogueStore):
    """A disk that is full."""

    async def load(self):
        await trio.lowlevel.checkpoint()
        return Kept()

    async def save(self, kept):
        await trio.lowlevel.checkpoint()
        raise CatalogueFileError("memory.json", "No space left on device")


async def test_a_descriptor_that_cannot_be_stored_is_not_deployed(domain, autojump_clock):
    client, _ = counted(domain, Full())
    with pytest.raises(CatalogueFileError, match="No space left"):
        await client.find(STUB_B)


async def test_a_cancelled_look_leaves_a_client_that_works(domain, autojump_clock):
    client = client_of(domain)
    with trio.CancelScope() as scope:
        scope.cancel()
        await client.find(STUB_B)
    assert await client.find(STUB_B)
