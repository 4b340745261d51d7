"""Whose an address is: read by the node path, and how long that counts (I-B10, REG-13)."""

from specs.bodies.registry import Record
from specs.bodies.word import RecordStatus
from tests.support.runtime.registry_core import RB, RC, call, linked

OTHER = "hyperty://b.ex/other"
ASKED = call.ask_owner(OTHER, RB)
READ = call.read_owner(OTHER)


def test_a_record_that_changes_while_it_is_read_is_read_again():
    registry = linked()
    registry.feed(ASKED)
    registry.feed(call.record_reported(OTHER, RecordStatus.LIVE))
    assert READ in registry.feed(call.owner_read(OTHER, Record(OTHER, RB)))
    assert call.set_owner(OTHER, RC) in registry.feed(call.owner_read(OTHER, Record(OTHER, RC)))
