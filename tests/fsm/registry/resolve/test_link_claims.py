"""What a peer says of where entities live counts no further than their records go (I-R8, T18)."""

import math

import pytest

from specs.bodies.registry import Record
from specs.limits.p2p import CLAIM_BURST, CLAIM_RATE
from tests.support.runtime.registry_core import CRQ, HB, HC, KNOWN, PQ, RA, RB, RC, S1, call, linked

OTHER = "hyperty://b.ex/other"


@pytest.mark.parametrize("said", ["listed", "sent"])
def test_a_peer_draws_no_message_for_another_domain_to_its_link(said):
    """I-R8, T18: what lives in a domain is nobody else's to say, before any record was read."""
    registry = linked()
    link = registry.route(HB)
    claims = {"listed": call.entities_listed(RB, (HC,), ()), "sent": call.ask_owner(HC, RB)}
    registry.feed(claims[said])
    assert link != S1
    assert registry.route(HC) != link


def test_nor_for_another_runtime_or_for_this_one():
    """I-R8: neither the own runtime nor a third, whose address is that of an entity too."""
    registry = linked()
    link = registry.route(HB)
    registry.feed(call.add_local(f"{RA}"))
    registry.feed(call.entities_listed(RB, (RA, RC), ()))
    assert registry.route(RC) != link
    assert registry.route(f"{RA}/sm") != link


def test_a_peers_report_on_its_own_domain_counts_once_its_record_confirms_it():
    """I-R8, T18: by the node until then, and no link is set up for it."""
    registry = linked()
    assert registry.feed(call.entities_listed(RB, (OTHER,), ())) == [call.read_record(OTHER)]
    assert registry.route(OTHER, KNOWN) == S1
    assert registry.feed(call.record_read(OTHER, Record(OTHER, RB))) == [call.forget_routes()]
    assert registry.route(OTHER) == registry.route(HB) == PQ


@pytest.mark.parametrize("runtime", [f"{RB}2", None])
def test_an_unconfirmed_report_stays_with_the_node(runtime):
    """T18: nor is a link set up to wherever it does live, which nobody here wants."""
    registry = linked()
    registry.feed(call.entities_listed(RB, (OTHER,), ()))
    handler = f"{runtime}/p2phandler/1"
    record = runtime and Record(OTHER, runtime, p2p_handler=handler, p2p_requester=CRQ)
    assert registry.feed(call.record_read(OTHER, record)) == []
    assert registry.route(OTHER, KNOWN) == S1
    assert [entry.remote for entry in registry.core.links()] == [RB]


def test_a_report_confirmed_by_a_remembered_record_counts_at_once():
    registry = linked()
    registry.feed(call.record_read(OTHER, Record(OTHER, RB)))
    registry.feed(call.entities_listed(RB, (), (OTHER,)))
    assert registry.route(OTHER, KNOWN) == S1
    assert registry.feed(call.entities_listed(RB, (OTHER,), ())) == [call.forget_routes()]
    assert registry.route(OTHER) == PQ


def test_an_address_that_has_moved_by_its_record_is_unbound_from_the_link():
    """I-R8: also if no link leads to where it lives."""
    registry = linked()
    registry.feed(call.owner_read(OTHER, Record(OTHER, RB)))
    assert registry.route(OTHER) == PQ
    registry.feed(call.record_read(OTHER, Record(OTHER, f"{RB}2")))
    assert registry.route(OTHER, KNOWN) == S1


def test_a_message_that_looks_for_a_link_while_a_claim_is_looked_at_gets_its_own_answer():
    registry = linked()
    registry.feed(call.entities_listed(RB, (OTHER,), ()))
    assert call.read_record(OTHER) in registry.ask(OTHER)
    record = Record(OTHER, f"{RB}2", p2p_handler=f"{RB}2/p2phandler/1", p2p_requester=CRQ)
    assert registry.feed(call.record_read(OTHER, record)) == [call.set_path(f"{RA}/p2prequester/2")]
    assert registry.feed(call.record_read(OTHER, record)) == []


def test_the_records_of_a_long_list_are_read_a_few_at_a_time_and_only_while_it_stands():
    """T18: whoever lists what is not there has this runtime ask no faster for it."""
    registry = linked()
    urls = tuple(f"hyperty://b.ex/{number}" for number in range(4 * CLAIM_BURST))
    reads = registry.feed(call.entities_listed(RB, urls, ()))
    assert len(reads) == CLAIM_BURST + 1
    registry.feed(call.entities_listed(RB, (), urls[-CLAIM_BURST:]))
    begun = registry.now
    while registry.core.deadline() < math.inf:
        reads += registry.wait()
    assert reads == [call.read_record(url) for url in urls[:-CLAIM_BURST]]
    assert registry.now - begun == pytest.approx((2 * CLAIM_BURST - 1) / CLAIM_RATE)


@pytest.mark.parametrize("end", ["lost for good", "closing"])
def test_nothing_is_read_for_a_link_that_is_gone(end):
    registry = linked()
    registry.feed(call.entities_listed(RB, tuple(f"hyperty://b.ex/{n}" for n in range(100)), ()))
    if end == "closing":
        registry.feed(call.close_links())
    else:
        registry.status(PQ, "failed")
    assert registry.core.deadline() == math.inf


def test_a_record_that_comes_after_its_link_has_gone_binds_nothing():
    registry = linked()
    registry.feed(call.entities_listed(RB, (OTHER,), ()))
    registry.status(PQ, "failed")
    assert registry.feed(call.record_read(OTHER, Record(OTHER, RB))) == []
    assert registry.core.links() == ()


def with_two_links():
    """RB, where HB lives, and another runtime of its domain."""
    registry = linked()
    record = Record(HEIR, RB2, p2p_handler=f"{RB2}/p2phandler/1", p2p_requester=CRQ)
    other = f"{RA}/p2prequester/2"
    registry.ask(HEIR)
    registry.feed(call.record_read(HEIR, record), call.path_set(other), call.stub_deployed(other))
    for status in ("created", "in-progress", "live"):
        registry.status(other, status, remote=RB2)
    assert registry.route(HEIR) == other
    return registry, other


RB2, HEIR = f"{RB}2", "hyperty://b.ex/heir"


def test_what_has_moved_is_reached_by_its_new_link_whoever_reports_first():
    """SYN-27: the new end has listed it while the old one still had it."""
    registry, other = with_two_links()
    registry.feed(call.owner_read(OTHER, Record(OTHER, RB)))
    assert registry.route(OTHER) == PQ
    assert call.read_record(OTHER) not in registry.feed(call.entities_listed(RB2, (OTHER,), ()))
    assert registry.route(OTHER) == PQ
    assert call.read_record(OTHER) in registry.feed(call.entities_listed(RB, (), (OTHER,)))
    registry.feed(call.record_read(OTHER, Record(OTHER, RB2)))
    assert registry.route(OTHER) == other


def test_what_has_moved_is_reached_although_its_former_link_ends():
    registry, other = with_two_links()
    for remote in (RB, RB2):
        registry.feed(call.owner_read(OTHER, Record(OTHER, remote)))
    registry.status(PQ, "failed")
    assert registry.route(OTHER, KNOWN) == other


@pytest.mark.parametrize(
    ("part", "may"), [(HB, True), (f"{RB}/sm", True), (OTHER, False), (f"{RB2}/sm", False)]
)
def test_an_entity_and_the_parts_of_its_runtime_speak_for_it(part, may):
    assert linked().core.speaks_for(PQ, part, HB, 0.0) is may


def test_what_was_listed_and_is_not_any_more_is_not_looked_for():
    registry, _ = with_two_links()
    registry.feed(call.owner_read(OTHER, Record(OTHER, RB)))
    registry.feed(call.entities_listed(RB2, (OTHER,), ()))
    registry.feed(call.entities_listed(RB2, (), (OTHER,)))
    assert call.read_record(OTHER) not in registry.feed(call.entities_listed(RB, (), (OTHER,)))
