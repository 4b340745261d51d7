"""What was counted can be read."""

from actors.kit.counters import Counters
from specs.reply_code import DropReason


def test_a_counted_event_can_be_read():
    counters = Counters()
    counters.drop(DropReason.LOOP)
    counters.drop(DropReason.LOOP)
    counters.violations["session"] += 1
    counters.dead_letters["a"] += 1

    assert counters.drops == {DropReason.LOOP: 2}
    assert counters.violations == {"session": 1}
    assert counters.dead_letters == {"a": 1}
