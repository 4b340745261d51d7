"""Searches for a way: what each goes through, and that each ends (RES-13, I-R6, I-R7)."""

import math

from specs.limits.protocol import NEGATIVE_CACHE, REPLY_TIMEOUT
from tests.support.runtime.registry_core import HB, call, with_node


def test_a_record_that_does_not_come_is_waited_for_as_long_as_for_any_answer():
    """RES-04."""
    registry = with_node()
    registry.ask()
    assert registry.core.deadline() == REPLY_TIMEOUT
    assert registry.wait() == []
    assert registry.core.deadline() == math.inf
    assert len(registry.ask()) == 1
    registry.now += NEGATIVE_CACHE
    assert registry.ask()[1:] == [call.read_record(HB)]
