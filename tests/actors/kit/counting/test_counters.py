"""Counts can be read by everybody and changed only by counting."""

import pytest

from actors.kit.counters import Counters
from specs.reply_code import DropReason


def test_a_counted_event_can_be_read():
    counters = Counters()
    counters.drop(DropReason.LOOP)
    counters.drop(DropReason.LOOP)
    counters.violation("session")
    counters.dead_letter("a")

    assert counters.drops == {DropReason.LOOP: 2}
    assert counters.violations == {"session": 1}
    assert counters.dead_letters == {"a": 1}


def test_counters_cannot_be_assigned():
    with pytest.raises(TypeError):
        Counters().drops[DropReason.LOOP] = 0
