"""All nodes of a domain serve one catalogue, wherever a file of it was published (CAT-09)."""

import json

import attrs
import pytest
import trio

from actors.catalogue.source import LISTING, package_path
from actors.http.config import HttpConfig, ShownCatalogue
from actors.keys.signing import make_key
from actors.kit.counters import Tally
from actors.kit.files import write_whole
from fsm.group.catalogue import CATALOGUE, Why
from specs.addresses.address import DOMAIN_KEYS, REVOKED
from specs.descriptor import Revoked
from specs.limits.group import GROUP_CATALOGUE_LOOK, GROUP_FILE_BYTES, GROUP_LEASE
from tests.support.catalogues import Publishing, archive_of, key_set, noise
from tests.support.log import captured_log
from tests.support.node.group_world import open_group
from tests.support.node.node_peer import DOMAIN
from tests.support.node.web import ask

STUB = ".well-known/protocolstub/default"


@pytest.fixture(autouse=True)
def files_are_read_in_no_time(monkeypatch):
    """The clock jumps on while a thread works: leases would end."""

    async def at_once(work, *args, **_):
        await trio.lowlevel.checkpoint()
        return work(*args)

    monkeypatch.setattr(trio.to_thread, "run_sync", at_once)


@attrs.frozen
class Site:
    """The nodes of a domain, each with a directory of its own, and what is published there."""

    world: object
    folder: object
    domain: Publishing = attrs.field(factory=lambda: Publishing(DOMAIN))

    def directory(self, name):
        return self.folder / name

    def publish(self, name, domain=None):
        """Put all that the domain has made into the directory of a node."""
        for path, content in (domain or self.domain).files.items():
            write_whole(self.directory(name) / path, content)

    async def node(self, name, place="127.0.0.1:0"):
        shown = ShownCatalogue(DOMAIN, self.directory(name))
        return await self.world.node(http=HttpConfig(place, catalogue=shown))

    async def nodes(self, *names):
        return [await self.node(name) for name in names]

    async def page(self, member, path=STUB):
        return await ask(self.world.network, member.node.http_url, f"/{path}")

    async def served(self, path=STUB):
        """What all nodes that live serve at a path."""
        (found,) = {
            (page.status, page.body)
            for member in self.world.nodes
            if not member.is_killed
            for page in [await self.page(member, path)]
        }
        return found[1] if found[0] == 200 else found[0]

    def versions(self, *counters):
        """Make versions of the stub of the domain."""
        made = []
        for counter in counters:
            self.domain.offers(counter=counter)
            made.append(self.domain.files[STUB])
        return made


@pytest.fixture
async def site(tmp_path):
    async with open_group(0) as world:
        yield Site(world, tmp_path)


async def looked():
    """Let each node look at its directory, twice."""
    await trio.sleep(2.5 * GROUP_CATALOGUE_LOOK)


def unused(log):
    return [(one["path"], one["why"]) for one in log if one["event"] == "catalogue file not served"]


# ---- what is published at one node


async def test_what_is_published_at_one_node_is_served_by_all_also_when_it_is_gone(
    site, tmp_path, autojump_clock
):
    one, *_ = await site.nodes("1", "2", "3")
    assert await site.served() == 404
    archive = archive_of(tmp_path / "code")
    site.domain.serves(site.domain.code(archive, counter=7, version="7.1"))
    site.domain.revokes()
    site.publish("1")
    await looked()
    for _ in range(2):
        for path, content in site.domain.files.items():
            assert await site.served(path) == content
        assert await site.served(f"{STUB}/version") == b'"7.1"'
        assert json.loads(await site.served(LISTING)) == {
            "entries": [{"type": "protocolstub", "name": "default"}]
        }
        await site.world.kill(one)
        await site.node("4")
        await looked()
    assert len(site.world.nodes) == 5
    assert not site.directory("4").exists()


async def test_a_newer_version_counts_wherever_it_is_published(site, autojump_clock):
    _, new = site.versions(1, 2)
    site.publish("2")
    site.versions(1)
    site.publish("1")
    with captured_log() as log:
        await site.nodes("1", "2")
        await looked()
    assert await site.served() == new
    assert unused(log) == [(STUB, Why.OLDER)]
    (newest,) = site.versions(3)
    site.publish("1")
    await looked()
    assert await site.served() == newest


async def test_of_two_contents_with_one_counter_one_is_reported(site, autojump_clock):
    (first,) = site.versions(5)
    site.publish("1")
    await site.node("1")
    await looked()
    site.domain.offers(counter=5, version="other")
    site.publish("2")
    with captured_log() as log:
        await site.node("2")
        await looked()
        await looked()
    assert await site.served() == first
    assert unused(log) == [(STUB, Why.OTHER)]


async def test_of_two_contents_that_are_published_at_once_one_is_served(site, autojump_clock):
    site.domain.offers(counter=1)
    site.publish("1")
    await site.nodes("1", "2")
    await looked()
    site.world.store.slow(0.5)
    made = []
    for name in ("1", "2"):
        site.domain.offers(counter=2, version=name)
        made.append(site.domain.files[STUB])
        site.publish(name)
    with captured_log() as log:
        await looked()
        await looked()
    assert await site.served() in made
    assert unused(log) == [(STUB, Why.OTHER)]


async def test_a_node_that_was_cut_off_serves_what_it_knows_and_then_what_the_others_serve(
    site, autojump_clock
):
    old, new = site.versions(1, 2)
    site.versions(1)
    site.publish("1")
    _, two = await site.nodes("1", "2")
    await looked()
    site.world.store.stop(two.engine)
    site.versions(2)
    site.publish("1")
    await trio.sleep(2 * GROUP_LEASE)
    assert (await site.page(two)).body == old
    site.world.store.start(two.engine)
    await trio.sleep(GROUP_LEASE)
    assert await site.served() == new


async def test_what_is_published_at_a_node_that_is_cut_off_is_served_when_it_is_back(
    site, autojump_clock
):
    site.versions(1)
    site.publish("1")
    one, _ = await site.nodes("1", "2")
    await looked()
    site.world.store.stop(one.engine)
    (new,) = site.versions(2)
    site.publish("1")
    await trio.sleep(2 * GROUP_LEASE)
    site.world.store.start(one.engine)
    await trio.sleep(GROUP_LEASE)
    assert await site.served() == new


async def test_an_engine_that_comes_back_empty_gets_the_newest_files(site, autojump_clock):
    site.versions(1)
    site.publish("1")
    one, _ = await site.nodes("1", "2")
    (new,) = site.versions(2)
    site.publish("1")
    await looked()
    await site.world.kill(one)
    site.world.store.restart_empty()
    await trio.sleep(2 * GROUP_LEASE)
    await site.node("3")
    assert await site.served() == new


async def test_until_a_node_knows_the_catalogue_its_own_is_away(site, autojump_clock):
    site.versions(1)
    site.publish("1")
    place = "127.0.0.1:9440"
    site.world.store.stop()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.node, "1", place)
        await trio.sleep(5)
        page = await ask(site.world.network, f"http://{place}", f"/{STUB}")
        assert (page.status, "retry-after" in page.headers) == (503, True)
        site.world.store.start()
    await looked()
    assert await site.served() == site.domain.files[STUB]


# ---- what is taken back


async def test_a_file_that_is_removed_at_one_node_is_served_by_none_and_does_not_come_back(
    site, autojump_clock
):
    site.versions(1)
    for name in ("1", "2", "3"):
        site.publish(name)
    await site.nodes("1", "2")
    await looked()
    (site.directory("1") / STUB).unlink()
    with captured_log() as log:
        await looked()
        assert await site.served() == await site.served(LISTING) == 404
        await site.node("3")
        await looked()
    assert await site.served() == 404
    assert unused(log) == [(STUB, Why.WITHDRAWN)] * 2
    (new,) = site.versions(2)
    site.publish("2")
    await looked()
    assert await site.served() == new


async def test_a_file_or_directory_that_is_away_for_a_moment_is_not_withdrawn(site, autojump_clock):
    (old,) = site.versions(1)
    site.publish("1")
    await site.nodes("1", "2")
    await looked()
    (site.directory("1") / STUB).unlink()
    await trio.sleep(0.75 * GROUP_CATALOGUE_LOOK)
    site.publish("1")
    await looked()
    site.directory("1").rename(site.directory("away"))
    await looked()
    assert await site.served() == old


async def test_a_list_of_revocations_reaches_all_nodes_and_stays(site, autojump_clock):
    site.versions(1)
    site.domain.revokes(counter=1)
    site.publish("1")
    await site.nodes("1", "2")
    await looked()
    site.domain.revokes(Revoked(cguid=site.domain.entry.address, counter=1), counter=2)
    site.publish("2")
    await looked()
    assert await site.served(REVOKED) == site.domain.files[REVOKED]
    (site.directory("2") / REVOKED).unlink()
    await looked()
    assert await site.served(REVOKED) == site.domain.files[REVOKED]


async def test_keys_that_are_published_while_a_node_runs_count_and_others_are_reported(
    site, autojump_clock
):
    site.versions(1)
    site.publish("1")
    await site.nodes("1")
    await looked()
    old = site.domain.files[DOMAIN_KEYS]
    with captured_log() as log:
        site.domain.key = make_key("EdDSA", "next")
        site.domain.files[DOMAIN_KEYS] = key_set(site.domain.key)
        (new,) = site.versions(2)
        site.publish("2")
        await site.nodes("2")
        await looked()
        assert await site.served(DOMAIN_KEYS) == old
        assert unused(log) == [(DOMAIN_KEYS, Why.KEYS), (STUB, Why.UNSIGNED)]
        site.publish("2")
        await looked()
    assert await site.served(DOMAIN_KEYS) == site.domain.files[DOMAIN_KEYS]
    assert await site.served() == new


# ---- what is refused


async def refused(site, change):
    """What is reported of a change of the first node's directory, after which all serve on."""
    (good,) = site.versions(1)
    site.publish("1")
    await site.nodes("1", "2")
    await looked()
    with captured_log() as log:
        change(site.directory("1") / STUB)
        await looked()
        await looked()
    assert await site.served() == good
    ((path, why),) = unused(log)
    assert path == STUB
    return why


def rewritten(site, **about):
    def write(file):
        other = attrs.evolve(site.domain, files={}, **about)
        other.offers(counter=2)
        write_whole(file, other.files[other.entry.path])

    return write


async def test_a_descriptor_of_another_domain_is_refused(site, autojump_clock):
    assert "b.ex" in await refused(site, rewritten(site, domain="b.ex"))


async def test_a_descriptor_that_no_key_of_the_domain_has_signed_is_refused(site, autojump_clock):
    stranger = make_key("EdDSA", "domain")
    assert await refused(site, rewritten(site, key=stranger)) == Why.UNSIGNED


async def test_half_a_file_is_refused(site, autojump_clock):
    why = await refused(site, lambda file: file.write_bytes(file.read_bytes()[:99]))
    assert "not signed" in why


async def test_a_descriptor_without_its_package_is_refused(site, tmp_path, autojump_clock):
    def write(file):
        domain = attrs.evolve(site.domain, files={})
        archive = archive_of(tmp_path / "code")
        domain.serves(domain.code(archive, counter=2))
        write_whole(file, domain.files[STUB])

    assert package_path("") in await refused(site, write)


async def test_a_package_that_does_not_fit_into_a_row_is_refused(site, tmp_path, autojump_clock):
    archive = archive_of(tmp_path / "code", noise(GROUP_FILE_BYTES))
    assert len(archive) > GROUP_FILE_BYTES

    def write(file):
        domain = attrs.evolve(site.domain, files={})
        domain.serves(domain.code(archive, counter=2))
        site.publish("1", domain)

    assert await refused(site, write) == Why.LARGE


GARBAGE = [
    b"",
    b"{}",
    b'{"version": 9, "text": "x"}',
    b'{"version": 1, "text": 1}',
    b"\xff" * 70_000,
]


@pytest.mark.parametrize("value", GARBAGE, ids=range(len(GARBAGE)))
async def test_rows_that_are_no_files_are_reported_and_replaced(site, value, autojump_clock):
    (good,) = site.versions(1)
    site.publish("1")
    one, two = await site.nodes("1", "2")
    await looked()
    with captured_log() as log:
        async with site.world.store.open() as stranger:
            await stranger.put(CATALOGUE + STUB, value)
            await stranger.put(f"{CATALOGUE}.well-known/odd", value)
        await looked()
    assert await site.served() == good
    await site.node("3")
    assert await site.served() == good
    said = [one["key"] for one in log if one["event"] == "row of the engine refused"]
    assert sorted(set(said)) == [f"{CATALOGUE}.well-known/odd", CATALOGUE + STUB]
    assert sum(one.node.counters.tallies[Tally.ROWS].values()) == 2
    assert two.node.counters.tallies[Tally.ROWS] == one.node.counters.tallies[Tally.ROWS]
