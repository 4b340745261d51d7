"""Whose an address is: read by the node path, and how long that counts (I-B10, REG-13)."""

import pytest

from specs.bodies.registry import Record
from specs.bodies.word import RecordStatus
from specs.limits.p2p import OWNERS_KEPT
from specs.limits.protocol import NEGATIVE_CACHE
from tests.support.runtime.registry_core import HB, HC, PQ, RA, RB, RC, RECORD, call, linked

OTHER = "hyperty://b.ex/other"
ASKED = call.ask_owner(OTHER, RB)
READ = call.read_owner(OTHER)


def proven(record=None):
    registry = linked()
    registry.feed(ASKED)
    assert call.set_owner(OTHER, RB) in registry.feed(
        call.owner_read(OTHER, record or Record(OTHER, RB))
    )
    return registry


def test_a_record_is_read_once_for_all_requesters():
    registry = linked()
    assert registry.feed(ASKED, call.ask_owner(OTHER, RC)) == [READ]


def test_a_record_read_to_find_a_link_is_not_read_again():
    registry = linked()
    assert registry.feed(call.ask_owner(HB, RB)) == [call.set_owner(HB, RB)]


def test_another_runtime_than_is_remembered_has_the_record_read_anew():
    """It may have moved; a moment later it has not."""
    registry = proven()
    moved = call.ask_owner(OTHER, RC)
    assert registry.feed(moved) == [call.set_owner(OTHER, RB)]
    registry.now += NEGATIVE_CACHE
    assert registry.feed(moved) == [READ]
    reported_now = registry.feed(call.owner_read(OTHER, Record(OTHER, RC)))
    assert call.set_owner(OTHER, RC) in reported_now
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
    assert registry.feed(call.owner_read(OTHER, None)) == []
    assert registry.wait() == [READ]
    assert registry.feed(call.owner_read(OTHER, None)) == [call.set_owner(OTHER, None)]
    assert registry.feed(ASKED) == [call.set_owner(OTHER, None)]
    registry.now += NEGATIVE_CACHE
    assert registry.feed(ASKED) == [READ]


def test_where_no_registry_answers_nothing_is_said():
    registry = linked()
    registry.feed(ASKED)
    registry.feed(call.owner_read(OTHER, None, is_answered=False))
    registry.wait()
    assert registry.feed(call.owner_read(OTHER, None, is_answered=False)) == []
    assert registry.feed(ASKED) == [READ]


@pytest.mark.parametrize("status", [RecordStatus.LIVE, RecordStatus.DISCONNECTED, None])
def test_a_proof_counts_no_longer_once_its_record_has_changed(status):
    registry = proven()
    assert call.forget_owner(OTHER) in registry.feed(call.record_reported(OTHER, status))
    assert registry.feed(ASKED) == [READ]


def test_a_record_that_changes_while_it_is_read_is_read_again():
    registry = linked()
    registry.feed(ASKED)
    registry.feed(call.record_reported(OTHER, RecordStatus.LIVE))
    assert READ in registry.feed(call.owner_read(OTHER, Record(OTHER, RB)))
    assert call.set_owner(OTHER, RC) in registry.feed(call.owner_read(OTHER, Record(OTHER, RC)))


def test_a_proof_counts_as_long_as_its_record_is_good():
    registry = proven(Record(OTHER, RB, expires=60.0))
    registry.now = 59.0
    assert registry.feed(ASKED) == [call.set_owner(OTHER, RB)]
    registry.now = 60.0
    assert call.forget_owner(OTHER) in registry.feed(call.time_over())
    assert registry.feed(ASKED) == [READ]


def test_a_record_read_for_a_link_that_names_another_owner_ends_the_proof():
    registry = proven()
    assert call.forget_owner(OTHER) in registry.feed(call.record_read(OTHER, Record(OTHER, RC)))


def test_remembered_records_are_bounded_and_forgotten_ones_count_no_longer():
    registry = linked()
    reported_of = []
    for number in range(OWNERS_KEPT + 1):
        url = f"{OTHER}{number}"
        registry.feed(call.ask_owner(url, RB))
        reported_of += registry.feed(call.owner_read(url, Record(url, RB)))
    assert [one for one in reported_of if one.name == "forget_owner"] == [
        call.forget_owner(f"{OTHER}0")
    ]


def test_an_unawaited_answer_proves_nothing():
    registry = linked()
    assert registry.feed(call.owner_read(HC, Record(HC, RA))) == []


def test_a_link_with_a_forging_peer_is_ended_and_not_tried_again_soon():
    """S1."""
    registry = linked()
    ended = registry.feed(call.link_forged(PQ))
    assert ended[0] == call.disconnect(PQ, RB, PQ)
    assert call.remove_peer(PQ) in registry.peers
    assert registry.core.links() == ()
    registry.now += 30.0
    registry.feed(call.record_read(HB, RECORD))
    assert registry.core.links() == ()
    assert registry.feed(call.link_forged(PQ)) == []


def test_each_link_is_notified_where_it_leads_before_anything_can_come_by_it():
    """I-B10."""
    assert linked().peers == [call.add_peer(PQ, RB)]
