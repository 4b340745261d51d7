"""A node fetches the stub of a domain from that domain's catalogue (MN-19, MN-20, PFY-03)."""

from contextlib import asynccontextmanager

import pytest
import trio

from actors.catalogue.client import CatalogueAccess
from actors.catalogue.source import MemorySource, Places
from fsm.catalogue.descriptor import Reach
from specs.addresses.address import CatalogueType, Entry
from specs.descriptor import Revoked
from specs.limits.protocol import DEPLOY_TIMEOUT, RETRY_COOL_DOWN
from tests.support.catalogues import Publishing, Wall
from tests.support.runtime.abroad import PLACES, A, B, DomainOptions, open_two

IDLE = 20.0


class CountedSource(MemorySource):
    """A catalogue that counts the descriptors it serves, and may hang.

    Attributes:
        served: How many.
        gate: It serves while this is set.
    """

    served = 0
    gate = None

    async def read(self, path, limit):
        if path.endswith("default"):
            CountedSource.served += 1
        if CountedSource.gate is not None:
            await CountedSource.gate.wait()
        return await super().read(path, limit)


@pytest.fixture
def publishing():
    CountedSource.served, CountedSource.gate = 0, None
    made = Publishing(domain=B)
    made.offers(endpoint=f"{PLACES[B]}/link")
    return made


@asynccontextmanager
async def open_world(publishing, **more):
    def source(_domain):
        return CountedSource("memory", publishing.files)

    trust = publishing.trust(Reach.ANYWHERE, publishers=("acme",))
    access = CatalogueAccess(Places({B: source}), trust, clock_offset=Wall(publishing).offset)
    options = DomainOptions(a_knows={}, catalogues=access, stub_idle=IDLE, **more)
    async with open_two(options) as world:
        yield world


async def test_messages_at_the_moment_of_the_release_are_answered(autojump_clock, publishing):
    async with open_world(publishing) as world:
        assert (await world.a.ask(world.b)).code == 200
        for nth in range(10):
            # The release is due at this very moment.
            await trio.sleep(IDLE)
            assert (await world.a.ask(world.b, nth)).body["value"] == nth
        assert [one.body["value"] for one in world.b.hyperty.asked] == ["hello", *range(10)]


async def test_a_catalogue_that_hangs_costs_each_waiting_sender_one_503_at_the_deadline(
    autojump_clock, publishing
):
    """RES-14: an entry that cannot be set up fails at its deadline."""
    async with open_world(publishing) as world:
        CountedSource.gate = trio.Event()
        began, codes = trio.current_time(), []

        async def ask(value):
            codes.append((await world.a.ask(world.b, value)).code)

        async with trio.open_nursery() as nursery:
            for value in range(3):
                nursery.start_soon(ask, value)
        assert codes == [503] * 3
        assert trio.current_time() - began <= DEPLOY_TIMEOUT + 1
        assert (await world.a.ask(world.b)).code == 503
        CountedSource.gate = None
        await trio.sleep(RETRY_COOL_DOWN + 1)
        assert (await world.a.ask(world.b)).code == 200


@pytest.mark.parametrize("case", ["no catalogue", "another key", "revoked"])
async def test_a_stub_that_is_not_to_be_trusted_is_not_deployed(autojump_clock, publishing, case):
    if case == "another key":
        publishing.serves(publishing.profile(f"{PLACES[B]}/link"), publishing.acme)
    elif case == "revoked":
        entry = Entry(B, CatalogueType.STUB, "default")
        publishing.revokes(Revoked(cguid=entry.address, counter=1))
    async with open_world(publishing) as world:
        to = "hyperty://c.ex/1" if case == "no catalogue" else world.b.address
        answer = await world.a.ask(to)
        assert answer.code == 503
        assert "no route to" in answer.body["description"]
        assert world.a.sandboxes.links == []


def stubs(side):
    return list(dict.fromkeys(key for key, _, _ in side.steps("stub_deployment")))


async def test_a_domain_that_nothing_names_is_reached_by_its_descriptor(autojump_clock, publishing):
    async with open_world(publishing) as world:
        answer = await world.a.ask(world.b)
        assert (answer.code, answer.body["value"]) == (200, "hello")
        assert stubs(world.a) == [f"domain://msg-node.{A}/protostub/{B}"]
