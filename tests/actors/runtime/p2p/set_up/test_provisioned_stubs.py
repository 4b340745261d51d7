"""The stubs of direct links come from the catalogue (CAT-10, CAT-04, P2P-01, P2P-04, RES-08)."""

from contextlib import asynccontextmanager

import attrs
import pytest
import trio

from actors.catalogue.client import CatalogueAccess
from actors.kit.counters import Tally
from fsm.catalogue.descriptor import Reach
from fsm.machine_list import fingerprint
from fsm.machines.p2p_connection import P2P_CONNECTION
from specs.addresses.address import CatalogueType, domain_registry
from specs.descriptor import Revoked
from specs.message import MessageType
from specs.reply_code import Code
from specs.trace import Kind, Op
from tests.support.catalogues import Publishing, Wall, archive_of
from tests.support.runtime.domain import DOMAIN, DomainOptions, open_domain
from transports.link import Kind as Carrier

BOTH = (Carrier.WEBSOCKET, Carrier.TCP)
RUNTIME = ".well-known/runtime/pc"
REQUESTER = f"hyperty-catalogue://catalogue.{DOMAIN}/.well-known/protocolstub/PlainRequester"


@pytest.fixture
def publishing():
    """A domain that describes its runtimes, and both stubs under names of its own."""
    made = Publishing(DOMAIN)
    handler = stub(made, "PlainHandler", "p2p-handler")
    requester = stub(made, "PlainRequester", "p2p-requester")
    assert requester == REQUESTER
    runtime(made, p2pHandlerStub=handler, p2pRequesterStub=requester)
    return made


def stub(publishing, name, shipped, counter=1, **options):
    profile = {"stub": shipped, "options": options}
    return publishing.describes(CatalogueType.STUB, name, profile=profile, counter=counter)


def runtime(publishing, **fields):
    return publishing.describes(CatalogueType.RUNTIME, "pc", **fields)


@asynccontextmanager
async def provisioned(publishing, *, asker=True, publishers=(), kinds=BOTH, callers=None):
    """Run alice and bob; bob is described by the catalogue, alice reads it or not."""
    access = CatalogueAccess(
        publishing.places,
        publishing.trust(Reach.ANYWHERE, publishers),
        clock_offset=Wall(publishing).offset,
    )
    address = f"hyperty-catalogue://catalogue.{DOMAIN}/{RUNTIME}"
    more = {
        "alice": {"catalogues": access if asker else None, "kinds": callers or kinds},
        "bob": {"catalogues": attrs.evolve(access), "descriptor": address},
    }
    async with open_domain("alice", "bob", options=DomainOptions(kinds=kinds, more=more)) as domain:
        yield domain["alice"], domain["bob"], domain


async def record_of(asker, member):
    body = {"resource": member.address}
    answer = await asker.hyperty.ask(domain_registry(DOMAIN), MessageType.READ, body)
    return answer.body["value"]


async def reached_by_the_node(alice, bob):
    """Ask for a while: each request is answered, and no link opens."""
    for value in range(4):
        with trio.fail_after(1.0):
            assert (await alice.ask(bob, value)).code == Code.OK
        await trio.sleep(1.0)
    assert await alice.status(bob) != "live"


def refusals(member):
    return {
        (fact.to, fact.reason)
        for fact in member.tracer.facts
        if fact.k is Kind.DESCRIPTOR and fact.op is Op.REFUSED
    }


def counted(member):
    return {str(label[0]) for label in member.runtime.counters.tallies[Tally.DESCRIPTORS]}


async def test_a_link_is_made_by_the_stubs_that_runtime_and_record_name(publishing, autojump_clock):
    """CAT-10, CAT-04, P2P-01, P2P-04, RES-08."""
    async with provisioned(publishing) as (alice, bob, _):
        record = await record_of(alice, bob)
        assert record["p2pHandler"] == bob.runtime.handler
        assert record["p2pRequester"] == REQUESTER
        await alice.ask(bob, 1)
        await alice.wait_for("live", bob)
        admitted = {
            (name, fact.to.rpartition("/")[2])
            for name, member in {"alice": alice, "bob": bob}.items()
            for fact in member.facts(Op.ADMIT, Kind.DESCRIPTOR)
        }
    assert admitted == {("alice", "PlainRequester"), ("bob", "PlainHandler")}


async def test_the_profile_of_a_requester_chooses_among_the_transports(publishing, autojump_clock):
    """STB-13, P2P-04: the first transport of both runtimes is not the one described."""
    stub(publishing, "PlainRequester", "p2p-requester", kinds=["tcp"])
    async with provisioned(publishing) as (alice, bob, domain):
        await alice.ask(bob, 1)
        await alice.wait_for("live", bob)
        carriers = [wire.kind for wire in domain.network.wires if wire.is_open]
    assert sorted(carriers) == [Carrier.TCP, Carrier.WEBSOCKET, Carrier.WEBSOCKET]


def by_data_channels(publishing):
    """Describe both stubs anew: they use data channels."""
    stub(publishing, "PlainHandler", "p2p-handler", kinds=["webrtc"])
    stub(publishing, "PlainRequester", "p2p-requester", kinds=["webrtc"])


async def test_stubs_that_are_described_for_data_channels_use_them(publishing, autojump_clock):
    by_data_channels(publishing)
    both = (Carrier.TCP, Carrier.WEBRTC)
    async with provisioned(publishing, kinds=both) as (alice, bob, domain):
        await alice.ask(bob, 1)
        await alice.wait_for("live", bob)
        assert [len(domain.network.open_wires(kind)) for kind in both] == [0, 1]


async def test_a_requester_for_data_channels_is_none_for_a_runtime_without(
    publishing, autojump_clock
):
    by_data_channels(publishing)
    both = (Carrier.TCP, Carrier.WEBRTC)
    async with provisioned(publishing, kinds=both, callers=(Carrier.TCP,)) as (alice, bob, _):
        await reached_by_the_node(alice, bob)


@pytest.mark.parametrize("lacking", ["p2pHandlerStub", "p2pRequesterStub"])
async def test_a_runtime_whose_descriptor_names_no_stub_takes_no_links(
    publishing, lacking, autojump_clock
):
    """P2P-01, CAT-04: an empty text is as good as none."""
    said = {
        "p2pHandlerStub": f"{REQUESTER.removesuffix('Requester')}Handler",
        "p2pRequesterStub": REQUESTER,
    }
    runtime(publishing, **{**said, lacking: ""})
    async with provisioned(publishing) as (alice, bob, _):
        assert bob.runtime.handler is None
        assert not {"p2pHandler", "p2pRequester"} & set(await record_of(alice, bob))
        await reached_by_the_node(alice, bob)


async def test_a_runtime_whose_descriptor_is_refused_takes_no_links(publishing, autojump_clock):
    """CAT-08: nothing of a descriptor that another key signed is acted upon."""
    stranger = Publishing(DOMAIN)
    runtime(stranger, p2pHandlerStub="", p2pRequesterStub="")
    publishing.files[RUNTIME] = stranger.files[RUNTIME]
    async with provisioned(publishing) as (alice, bob, _):
        assert bob.runtime.handler is None
        assert {reason for _, reason in refusals(bob)} == {"bad-signature"}
        await reached_by_the_node(alice, bob)


async def test_a_handler_of_another_kind_is_not_deployed(publishing, autojump_clock):
    stub(publishing, "PlainHandler", "p2p-requester")
    async with provisioned(publishing) as (alice, bob, _):
        assert bob.runtime.handler is None
        assert {reason for _, reason in refusals(bob)} == {"wrong-kind"}
        await reached_by_the_node(alice, bob)


# ---- requesters that are refused: messages go by the node, and the reason is counted


def expired(publishing):
    profile = {"stub": "p2p-requester"}
    soon = {"expires": publishing.now - 1}
    publishing.describes(CatalogueType.STUB, "PlainRequester", profile=profile, **soon)


def of_a_node(publishing):
    profile = {"stub": "websocket", "endpoint": "ws://127.0.0.1:40000/link"}
    publishing.describes(CatalogueType.STUB, "PlainRequester", profile=profile)


def revoked(publishing):
    publishing.revokes(Revoked(cguid=REQUESTER))


def unknown_option(publishing):
    stub(publishing, "PlainRequester", "p2p-requester", kind="tcp")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (expired, "expired"),
        (of_a_node, "wrong-kind"),
        (revoked, "revoked"),
        (unknown_option, "malformed"),
    ],
)
async def test_a_requester_that_is_refused_makes_no_link(publishing, spoil, reason, autojump_clock):
    """RES-08, CAT-10, STB-14: its reason is in trace and metric, and no message waits for it."""
    spoil(publishing)
    async with provisioned(publishing) as (alice, bob, _):
        await reached_by_the_node(alice, bob)
        assert (REQUESTER, reason) in refusals(alice)
        assert reason in counted(alice)


async def test_code_makes_no_direct_links(publishing, tmp_path, autojump_clock):
    """STB-12: a package gets neither the key of the runtime nor its network."""
    machine = fingerprint(P2P_CONNECTION)
    said = {**publishing.code(archive_of(tmp_path)), "machine": machine}
    publishing.describes(CatalogueType.STUB, "PlainRequester", **said)
    async with provisioned(publishing, publishers=["acme"]) as (alice, bob, _):
        await reached_by_the_node(alice, bob)
        assert (REQUESTER, "link-code") in refusals(alice)


async def test_a_runtime_without_catalogues_loads_no_requester_of_another_name(
    publishing, autojump_clock
):
    async with provisioned(publishing, asker=False) as (alice, bob, _):
        await reached_by_the_node(alice, bob)
        assert await alice.runtime.links() == ()


async def test_a_domain_that_describes_no_stubs_is_linked_to_by_those_that_ship(
    publishing, autojump_clock
):
    """CAT-10: the well-known names have descriptors that ship."""
    address = f"{REQUESTER.rpartition('/')[0]}/P2P"
    runtime(publishing, p2pHandlerStub=f"{address}Handler", p2pRequesterStub=f"{address}Requester")
    async with provisioned(publishing) as (alice, bob, _):
        await alice.ask(bob, 1)
        await alice.wait_for("live", bob)
        assert refusals(alice) == set()


async def test_what_a_domain_says_of_a_well_known_stub_comes_before_what_ships(
    publishing, autojump_clock
):
    address = f"{REQUESTER.rpartition('/')[0]}/P2P"
    runtime(publishing, p2pHandlerStub=f"{address}Handler", p2pRequesterStub=f"{address}Requester")
    stub(publishing, "P2PRequester", "p2p-requester")
    publishing.revokes(Revoked(cguid=f"{address}Requester"))
    async with provisioned(publishing) as (alice, bob, _):
        await reached_by_the_node(alice, bob)
        assert (f"{address}Requester", "revoked") in refusals(alice)
