"""What the registry remembers of records read elsewhere, and for how long (RES-03, REG-13)."""

import math

import pytest

from fsm.registry.resolve.address_owners import RecordCache
from specs.bodies.registry import Record
from specs.errors import BadMessageError
from specs.limits.protocol import NEGATIVE_CACHE, REGISTRATION_EXPIRES, REPLY_TIMEOUT

HB, RB = "hyperty://b.ex/hb", "hyperty-runtime://b.ex/rb"
RECORD = Record(HB, RB, expires=60.0)


@pytest.mark.parametrize(
    ("record", "life"),
    [
        (RECORD, 60.0),
        (Record(HB, RB), REGISTRATION_EXPIRES),
        (None, NEGATIVE_CACHE),
    ],
    ids=["its own time", "the longest", "there is none"],
)
def test_an_answer_is_known_as_long_as_it_holds(record, life):
    cache = RecordCache()
    cache.put(HB, record, 5.0)
    before, after = math.nextafter(5.0 + life, 0.0), 5.0 + life
    assert (cache.is_known(HB, before), cache.find(HB, before)) == (True, record)
    assert (cache.is_known(HB, after), cache.find(HB, after)) == (False, None)


def test_no_record_lasts_longer_than_a_registration():
    with pytest.raises(BadMessageError, match="expires must be"):
        Record(HB, RB, expires=REGISTRATION_EXPIRES + 1)


def test_an_absent_record_stays_absent_until_no_older_answer_can_come():
    cache = RecordCache()
    cache.away(HB, 0.0)
    cache.put(HB, RECORD, REPLY_TIMEOUT - 1)
    assert cache.find(HB, REPLY_TIMEOUT - 1) is None
    cache.put(HB, RECORD, REPLY_TIMEOUT)
    assert cache.find(HB, REPLY_TIMEOUT) == RECORD


def test_of_too_many_the_one_that_was_reported_the_longest_ago_is_forgotten():
    cache = RecordCache()
    for number in [*range(4096), 0, 4096]:
        cache.put(f"{HB}{number}", RECORD, 0.0)
    known = [number for number in range(4097) if cache.is_known(f"{HB}{number}", 0.0)]
    assert known == [0, *range(2, 4097)]
