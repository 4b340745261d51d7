"""A node fetches the stub of a domain from that domain's catalogue (MN-19, MN-20, PFY-03)."""

from contextlib import asynccontextmanager

import pytest
import trio

from actors.catalogue.archive import pack
from actors.catalogue.client import CatalogueAccess
from actors.catalogue.source import MemorySource, Places
from actors.pipe.process import open_process_sandbox
from fsm.catalogue.descriptor import Reach
from specs.addresses.address import CatalogueType, Entry
from specs.descriptor import Revoked
from specs.limits.protocol import DEPLOY_TIMEOUT, RETRY_COOL_DOWN
from tests.support.catalogues import Publishing, Wall, sources
from tests.support.runtime.abroad import PLACES, STUB_B, A, B, DomainOptions, open_two

IDLE = 20.0

ECHO_STUB = """
from actors.kit.supervision.actor import Actor
from actors.runtime.stubs.stub import StubConnection
from fsm.machines.stub_connection import Trigger
from specs.message import reply_to
from specs.message import stamped


def activate(context):
    return Echo(context)


class Echo(Actor):
    def __init__(self, context):
        self.context = context
        self.connection = StubConnection(context)

    async def start(self):
        await self.connection.step(Trigger.CONSTRUCTED)
        await self.connection.step(Trigger.CONNECT)
        await self.connection.step(Trigger.ESTABLISHED)

    async def handle(self, delivery):
        message = delivery.message
        if message.to == self.context.url:
            await self.connection.step(Trigger.CLOSED, "disconnect")
            await self.context.bus.post(reply_to(message, 200))
        elif message.is_request:
            answer = reply_to(message, 200, {"value": "from the package"})
            await self.context.bus.post(stamped(answer, self.context.url))
"""


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


def stubs(side):
    return list(dict.fromkeys(key for key, _, _ in side.steps("stub_deployment")))


async def test_a_domain_that_nothing_names_is_reached_by_its_descriptor(autojump_clock, publishing):
    async with open_world(publishing) as world:
        answer = await world.a.ask(world.b)
        assert (answer.code, answer.body["value"]) == (200, "hello")
        assert stubs(world.a) == [STUB_B]


async def test_messages_that_come_together_have_the_stub_fetched_once(autojump_clock, publishing):
    async with open_world(publishing) as world:
        codes = []

        async def ask(value):
            codes.append((await world.a.ask(world.b, value)).code)

        async with trio.open_nursery() as nursery:
            for value in range(10):
                nursery.start_soon(ask, value)
        assert codes == [200] * 10
        assert CountedSource.served == 1
        assert len(world.a.sandboxes.links) == 1


async def test_an_idle_stub_is_released_and_the_newer_descriptor_counts_for_the_next(
    autojump_clock, publishing
):
    async with open_world(publishing) as world:
        assert (await world.a.ask(world.b)).code == 200
        await trio.sleep(2 * IDLE)
        publishing.offers(endpoint="ws://127.0.0.1:1/link", counter=2)
        await trio.sleep(3600)
        assert (await world.a.ask(world.b)).code == 503
        publishing.offers(endpoint=f"{PLACES[B]}/link", counter=3)
        await trio.sleep(3600)
        assert (await world.a.ask(world.b, "again")).body["value"] == "again"
        assert stubs(world.a) == [STUB_B, f"{STUB_B}/2", f"{STUB_B}/3"]


async def test_messages_at_the_moment_of_the_release_are_answered(autojump_clock, publishing):
    async with open_world(publishing) as world:
        assert (await world.a.ask(world.b)).code == 200
        for nth in range(10):
            # The release is due at this very moment.
            await trio.sleep(IDLE)
            assert (await world.a.ask(world.b, nth)).body["value"] == nth
        assert [one.body["value"] for one in world.b.hyperty.asked] == ["hello", *range(10)]


async def test_a_stub_with_a_subscription_in_its_domain_stays(autojump_clock, publishing):
    async with open_world(publishing) as world:
        room, guest = world.b.hyperty, world.a.hyperty
        async with (
            room.report("comm", {"n": 0}, allow=(guest.url,)) as made,
            guest.observe(made.url) as seen,
        ):
            await trio.sleep(3 * IDLE)
            assert stubs(world.a) == [STUB_B]
            assert len(world.a.sandboxes.links) == 1
            await made.set("n", 1)
            await seen.wait_for(lambda value: value["n"] == 1)
            assert stubs(world.a) == [STUB_B]


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


async def test_a_start_that_hangs_fails_at_the_deadline(autojump_clock, publishing):
    async with open_world(publishing) as world:
        world.a.sandboxes.close()
        began = trio.current_time()
        assert (await world.a.ask(world.b)).code == 503
        assert trio.current_time() - began <= DEPLOY_TIMEOUT + 1


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


async def test_a_message_that_came_by_the_stub_does_not_go_back_by_it(autojump_clock, publishing):
    """`via` ends a ping-pong between two nodes that each think the other is the way."""
    async with open_world(publishing) as world:
        assert (await world.a.ask(f"hyperty://{B}/nobody")).code == 404
        assert (await world.b.ask(f"hyperty://{A}/nobody")).code == 404


async def test_code_of_the_domain_runs_in_a_process_of_its_own(publishing, tmp_path):
    archive = pack(sources(tmp_path / "code", {"stub.py": ECHO_STUB}))
    publishing.serves(publishing.code(archive))
    async with open_world(publishing, spawn=open_process_sandbox) as world:
        answer = await world.a.ask(world.b)
        assert (answer.code, answer.body["value"]) == (200, "from the package")
        assert world.b.hyperty.asked == []
