"""A record that names a stub of another kind as P2P requester blocks nobody (CAT-10, RES-08)."""

import pytest
import trio

from actors.runtime import runtime
from actors.runtime.app import BuiltInCatalogue
from actors.runtime.stubs.catalogue import StubKind
from actors.runtime.stubs.loader import Loader
from specs.addresses.address import catalogue_stub
from specs.limits.protocol import P2P_ENTRY_TIMEOUT, RETRY_COOL_DOWN, SESSION_IDLE
from specs.reply_code import Code
from tests.support.runtime.domain import DOMAIN, open_domain
from transports.link import Kind as Carrier

WRONG = f"hyperty-catalogue://catalogue.{DOMAIN}/.well-known/protocolstub/Wrong"


@pytest.fixture
def wrong(monkeypatch):
    """A domain whose records name a requester that its catalogue describes as a node's stub."""
    kind = BuiltInCatalogue._kind
    described = {WRONG: StubKind.NODE}

    def of(catalogue, address):
        return described.get(address) or kind(catalogue, address)

    monkeypatch.setattr(BuiltInCatalogue, "_kind", of)
    monkeypatch.setattr(runtime, "requester_descriptor", lambda _: WRONG)
    return described


def entries(member):
    return [state for _, state in member.steps("p2p_entry")]


async def reached(alice, bob, seconds):
    """Ask every second; each request is answered."""
    for value in range(int(seconds)):
        with trio.fail_after(1.0):
            assert (await alice.ask(bob, value)).code == Code.OK
        await trio.sleep(1.0)


async def test_a_descriptor_of_another_kind_is_a_failed_deployment(autojump_clock, wrong):
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"]
        await reached(alice, bob, RETRY_COOL_DOWN - 1)
        assert entries(alice) == ["placeholder", "removed"]
        deployed = alice.steps("stub_deployment")
        assert ("deployment-failed") in {state for key, state in deployed if "p2prequester" in key}
        assert await alice.runtime.links() == ()
        # The catalogue is mended: the next attempt is by what it says then.
        wrong[WRONG] = StubKind.P2P_REQUESTER
        await reached(alice, bob, 2 * RETRY_COOL_DOWN)
        await alice.wait_for("live", bob)
        await bob.wait_for("live", alice)
        await reached(alice, bob, 3)


async def test_a_stub_that_never_reports_of_its_link_blocks_a_peer_no_longer_than_its_entry_may(
    autojump_clock, wrong, monkeypatch
):
    """What is deployed all the same, such as code that is no P2P stub, has a deadline (C-16)."""
    deploy = Loader._deploy

    async def unchecked(self, url, address, config, kind):
        kind = StubKind.NODE if address == WRONG else kind
        return await deploy(self, url, address, config, kind)

    monkeypatch.setattr(Loader, "_deploy", unchecked)
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"]
        await reached(alice, bob, P2P_ENTRY_TIMEOUT - 1)
        assert entries(alice) == ["placeholder"]
        monkeypatch.setattr(Loader, "_deploy", deploy)
        wrong[WRONG] = StubKind.P2P_REQUESTER
        await reached(alice, bob, 3 * RETRY_COOL_DOWN)
        assert entries(alice) == ["placeholder", "removed", "placeholder", "bound"]
        assert await alice.status(bob) == "live"


async def test_a_registry_refuses_a_record_with_a_requester_of_another_kind(
    autojump_clock, monkeypatch
):
    node = catalogue_stub(DOMAIN)
    monkeypatch.setattr(runtime, "requester_descriptor", lambda _: node)
    with pytest.RaisesGroup(
        pytest.RaisesExc(Exception, match="no P2P requester stub"), flatten_subgroups=True
    ):
        async with open_domain("alice"):
            pass


async def test_a_peer_that_no_link_leads_to_is_tried_less_and_less_often(autojump_clock, wrong):
    """A runtime that was killed has its record until its session ends (P2P-28)."""
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"]
        await reached(alice, bob, SESSION_IDLE)
        assert entries(alice).count("placeholder") == 7
        wrong[WRONG] = StubKind.P2P_REQUESTER
        await reached(alice, bob, 100)
        await alice.wait_for("live", bob)
        # A link that was live is tried again at once.
        domain.cut_links(Carrier.WEBSOCKET)
        await alice.wait_for("live", bob)
