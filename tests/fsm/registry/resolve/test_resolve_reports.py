"""What the registry does once it is notified that a record has changed (REG-13, REG-16, M-30)."""

import pytest

from specs.bodies.registry import Record
from specs.bodies.word import RecordStatus
from specs.limits.protocol import REPLY_TIMEOUT
from tests.support.runtime.registry_core import (
    HB,
    PQ,
    REACH,
    RECORD,
    S1,
    call,
    linked,
    requesting,
    with_node,
)

LIVE, AWAY, DEAD = RecordStatus.LIVE, RecordStatus.DISCONNECTED, RecordStatus.DEAD


def knows(effects, *kinds):
    return [effect for effect in effects if effect.name in kinds]


def reads(registry):
    return knows(registry.ask(), "read_record")


@pytest.mark.parametrize("status", [AWAY, DEAD])
def test_a_record_that_is_away_is_not_linked_to_nor_asked_for(status):
    registry = with_node()
    registry.feed(call.record_reported(HB, status))
    assert [effect.name for effect in registry.ask()] == ["route"]


def test_a_record_that_is_live_again_is_looked_up_anew_and_linked_to():
    registry = with_node()
    registry.feed(call.record_reported(HB, AWAY), call.record_reported(HB, LIVE))
    assert reads(registry) == [call.read_record(HB)]
    assert registry.feed(call.record_read(HB, RECORD)) == [call.set_path(PQ)]


def test_an_answer_that_is_older_than_what_was_reported_does_not_count():
    registry = with_node()
    assert reads(registry) == [call.read_record(HB)]
    registry.feed(call.record_reported(HB, AWAY))
    assert registry.core.searches == 0
    assert registry.feed(call.record_read(HB, RECORD)) == []
    assert reads(registry) == []


def test_a_report_is_believed_only_while_older_answers_can_come():
    registry = with_node()
    registry.feed(call.record_reported(HB, AWAY))
    registry.now += REPLY_TIMEOUT
    assert reads(registry) == [call.read_record(HB)]


def test_a_remembered_record_that_may_have_changed_is_read_again():
    """RES-03."""
    registry = with_node()
    bare = call.record_read(HB, Record(HB, RECORD.runtime))
    registry.ask()
    registry.feed(bare)
    assert reads(registry) == []
    registry.feed(call.record_reported(HB, None))
    assert reads(registry) == [call.read_record(HB)]


def test_a_live_link_stays_the_route_while_the_registry_has_lost_the_other():
    registry = linked()
    assert registry.feed(call.record_reported(HB, AWAY)) == []
    assert registry.route() == PQ


def test_a_returned_peer_may_be_elsewhere_and_is_looked_up_by_the_node():
    registry = linked()
    assert registry.feed(call.record_reported(HB, AWAY), call.record_reported(HB, LIVE)) == [
        call.forget_routes()
    ]
    assert knows(registry.ask(), "route", "read_record") == [
        call.route(HB, REACH, S1, registry.now + 1, "the node of b.ex"),
        call.read_record(HB),
    ]
    registry.feed(call.record_read(HB, RECORD))
    assert registry.route() == PQ


def test_a_search_that_waits_for_a_link_ends_when_its_record_comes_anew():
    registry = requesting()
    assert registry.core.searches == 1
    registry.feed(call.record_reported(HB, LIVE))
    assert registry.core.searches == 0
