"""Whose an address is: read by the node path, and how long that counts (I-B10, REG-13)."""

import pytest

from fsm.registry.resolve import resolve_io as rs
from specs.bodies.registry import Record
from specs.bodies.word import RecordStatus
from specs.limits.p2p import OWNERS_KEPT
from specs.limits.protocol import NEGATIVE_CACHE
from tests.support.runtime.registry_core import HB, HC, PQ, RA, RB, RC, RECORD, linked

OTHER = "hyperty://b.ex/other"
ASKED = rs.OwnerAsked(OTHER, RB)
READ = rs.ReadOwner(OTHER)


def proven(record=None):
    registry = linked()
    registry.feed(ASKED)
    assert rs.OwnerKnown(OTHER, RB) in registry.feed(
        rs.OwnerRead(OTHER, record or Record(OTHER, RB))
    )
    return registry


def test_a_record_is_read_once_for_all_requesters():
    registry = linked()
    assert registry.feed(ASKED, rs.OwnerAsked(OTHER, RC)) == [READ]


def test_a_record_read_to_find_a_link_is_not_read_again():
    registry = linked()
    assert registry.feed(rs.OwnerAsked(HB, RB)) == [rs.OwnerKnown(HB, RB)]


def test_another_runtime_than_is_remembered_has_the_record_read_anew():
    """It may have moved; a moment later it has not."""
    registry = proven()
    moved = rs.OwnerAsked(OTHER, RC)
    assert registry.feed(moved) == [rs.OwnerKnown(OTHER, RB)]
    registry.now += NEGATIVE_CACHE
    assert registry.feed(moved) == [READ]
    reported_now = registry.feed(rs.OwnerRead(OTHER, Record(OTHER, RC)))
    assert rs.OwnerKnown(OTHER, RC) in reported_now
    assert registry.route(OTHER) != PQ


def test_a_record_that_is_away_names_its_owner_and_is_no_route():
    """A runtime that has lost its node speaks by its links."""
    record = Record(OTHER, RB, status=RecordStatus.DISCONNECTED.value)
    registry = proven(record)
    assert registry.core.live_link(OTHER) is None


def test_a_record_that_is_not_there_is_looked_for_once_more():
    """It may be on its way: who speaks first may be registered a moment later."""
    registry = linked()
    registry.feed(ASKED)
    assert registry.feed(rs.OwnerRead(OTHER, None)) == []
    assert registry.wait() == [READ]
    assert registry.feed(rs.OwnerRead(OTHER, None)) == [rs.OwnerKnown(OTHER, None)]
    assert registry.feed(ASKED) == [rs.OwnerKnown(OTHER, None)]
    registry.now += NEGATIVE_CACHE
    assert registry.feed(ASKED) == [READ]


def test_where_no_registry_answers_nothing_is_said():
    registry = linked()
    registry.feed(ASKED)
    registry.feed(rs.OwnerRead(OTHER, None, is_answered=False))
    registry.wait()
    assert registry.feed(rs.OwnerRead(OTHER, None, is_answered=False)) == []
    assert registry.feed(ASKED) == [READ]


@pytest.mark.parametrize("status", [RecordStatus.LIVE, RecordStatus.DISCONNECTED, None])
def test_a_proof_counts_no_longer_once_its_record_has_changed(status):
    registry = proven()
    assert rs.OwnerDoubted(OTHER) in registry.feed(rs.RecordReported(OTHER, status))
    assert registry.feed(ASKED) == [READ]


def test_a_record_that_changes_while_it_is_read_is_read_again():
    registry = linked()
    registry.feed(ASKED)
    registry.feed(rs.RecordReported(OTHER, RecordStatus.LIVE))
    assert READ in registry.feed(rs.OwnerRead(OTHER, Record(OTHER, RB)))
    assert rs.OwnerKnown(OTHER, RC) in registry.feed(rs.OwnerRead(OTHER, Record(OTHER, RC)))


def test_a_proof_counts_as_long_as_its_record_is_good():
    registry = proven(Record(OTHER, RB, expires=60.0))
    registry.now = 59.0
    assert registry.feed(ASKED) == [rs.OwnerKnown(OTHER, RB)]
    registry.now = 60.0
    assert rs.OwnerDoubted(OTHER) in registry.feed(rs.TimePassed())
    assert registry.feed(ASKED) == [READ]


def test_a_record_read_for_a_link_that_names_another_owner_ends_the_proof():
    registry = proven()
    assert rs.OwnerDoubted(OTHER) in registry.feed(rs.RecordRead(OTHER, Record(OTHER, RC)))


def test_remembered_records_are_bounded_and_forgotten_ones_count_no_longer():
    registry = linked()
    reported_of = []
    for number in range(OWNERS_KEPT + 1):
        url = f"{OTHER}{number}"
        registry.feed(rs.OwnerAsked(url, RB))
        reported_of += registry.feed(rs.OwnerRead(url, Record(url, RB)))
    assert [one for one in reported_of if isinstance(one, rs.OwnerDoubted)] == [
        rs.OwnerDoubted(f"{OTHER}0")
    ]


def test_an_unawaited_answer_proves_nothing():
    registry = linked()
    assert registry.feed(rs.OwnerRead(HC, Record(HC, RA))) == []


def test_a_link_with_a_forging_peer_is_ended_and_not_tried_again_soon():
    """S1."""
    registry = linked()
    ended = registry.feed(rs.LinkForged(PQ))
    assert ended[0] == rs.Disconnect(PQ, RB, PQ)
    assert rs.PeerGone(PQ) in registry.peers
    assert registry.core.links() == ()
    registry.now += 30.0
    registry.feed(rs.RecordRead(HB, RECORD))
    assert registry.core.links() == ()
    assert registry.feed(rs.LinkForged(PQ)) == []


def test_each_link_is_notified_where_it_leads_before_anything_can_come_by_it():
    """I-B10."""
    assert linked().peers == [rs.PeerKnown(PQ, RB)]
