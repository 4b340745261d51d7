"""What a peer says of where entities live counts no further than their records go (I-R8, T18)."""

import pytest

from specs.bodies.registry import Record
from tests.support.runtime.registry_core import CRQ, HB, KNOWN, PQ, RA, RB, S1, call, linked

OTHER = "hyperty://b.ex/other"


def test_an_address_that_has_moved_by_its_record_is_unbound_from_the_link():
    """I-R8: also if no link leads to where it lives."""
    registry = linked()
    registry.feed(call.owner_read(OTHER, Record(OTHER, RB)))
    assert registry.route(OTHER) == PQ
    registry.feed(call.record_read(OTHER, Record(OTHER, f"{RB}2")))
    assert registry.route(OTHER, KNOWN) == S1


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
