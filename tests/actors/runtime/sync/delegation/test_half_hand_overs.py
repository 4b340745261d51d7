"""Hand-overs whose last part never comes leave room for others (SYN-26)."""

import pytest

from actors.runtime.sync.delegation import TakeOvers
from specs.bodies.object import HandOver
from specs.bodies.sync import DataObject
from specs.errors import BadMessageError
from specs.limits.sync import HAND_OVERS

RUNTIME = "hyperty-runtime://a.ex/ra"


def begun(taking, number, to):
    url = f"comm://a.ex/{number}"
    thing = DataObject("hyperty://a.ex/h", RUNTIME, {}, url)
    part = HandOver(url, number=1, part=1, parts=2, value=thing)
    return taking._begun(part, (url, to))


def test_the_oldest_half_hand_over_is_dropped_beyond_the_limit():
    taking = TakeOvers(None, None, None, None)
    for number in range(2 * HAND_OVERS):
        begun(taking, number, "hyperty://a.ex/heir")
    assert len(taking._coming) == HAND_OVERS
    assert ("comm://a.ex/0", "hyperty://a.ex/heir") not in taking._coming
    for coming in taking._coming.values():
        coming.core = object()
    with pytest.raises(BadMessageError, match="too many"):
        begun(taking, -1, "hyperty://a.ex/heir")


def test_a_hand_over_to_a_leaving_component_is_forgotten():
    taking = TakeOvers(None, None, None, None)
    for to in ("hyperty://a.ex/gone", "hyperty://a.ex/stays"):
        begun(taking, 1, to)
    taking.leave("hyperty://a.ex/gone")
    assert [to for _, to in taking._coming] == ["hyperty://a.ex/stays"]
