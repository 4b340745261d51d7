"""The stubs of direct links come from the catalogue (CAT-10, CAT-04, P2P-01, P2P-04, RES-08)."""

from contextlib import asynccontextmanager

import attrs
import pytest
import trio

from actors.catalogue.client import CatalogueAccess
from fsm.catalogue.descriptor import Reach
from specs.addresses.address import CatalogueType, domain_registry
from specs.message import MessageType
from specs.reply_code import Code
from specs.trace import Kind, Op
from tests.support.catalogues import Publishing, Wall
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


async def record_of(asker, member):
    body = {"resource": member.address}
    answer = await asker.hyperty.ask(domain_registry(DOMAIN), MessageType.READ, body)
    return answer.body["value"]


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
