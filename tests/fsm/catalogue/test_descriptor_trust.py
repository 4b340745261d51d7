"""Whether a descriptor may be acted upon: pure, and on the side of no (T12..T15, S16, CAT-08)."""

import pytest

from fsm.catalogue.descriptor import Reason, judge_entry
from specs.addresses.address import CatalogueType, Entry
from specs.descriptor import StubDescriptor, StubProfile
from specs.limits.foreign_code import DESCRIPTOR_LIFE

ENTRY = Entry("b.ex", CatalogueType.STUB, "default")

PROFILE = StubDescriptor(
    cguid=ENTRY.address,
    type="protocolstub",
    version="1",
    object_name="default",
    counter=5,
    expires=1000,
    profile=StubProfile(stub="websocket", endpoint="ws://b.example/link"),
)


@pytest.mark.parametrize(
    ("now", "refused"),
    [(999.9, None), (1000.0, Reason.EXPIRED), (1000 - DESCRIPTOR_LIFE - 1, Reason.LIVES_TOO_LONG)],
)
def test_a_descriptor_is_good_until_its_second_and_not_for_ever(now, refused):
    found = judge_entry(ENTRY, PROFILE, "d", now)
    assert (None if found is None else found.reason) is refused
