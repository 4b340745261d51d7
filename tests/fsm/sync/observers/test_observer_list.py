"""Joins and leaves, as a reporter is notified of them and reads them (SYN-23, M-53)."""

from fsm.sync.observers import ObserverJoined, ObserversCore, ObserversSeen
from specs.bodies.object import ObserversChange
from specs.limits.sync import OBSERVER_CHANGES_KEPT

NAMES = [f"hyperty://a.ex/h{number}" for number in range(6)]
HA, HB, HC, *_ = NAMES


def joined(version, *who):
    return ObserversChange(who, "add", version)


def left(version, *who):
    return ObserversChange(who, "remove", version)


def test_a_slow_reader_gets_the_difference():
    core = ObserversCore()
    reader = ObserversSeen(core.observers)
    for version in range(1, OBSERVER_CHANGES_KEPT + 2, 2):
        reader.add(core.changed(joined(version, HA)))
        reader.add(core.changed(left(version + 1, HA)))
    reader.add(core.changed(joined(OBSERVER_CHANGES_KEPT + 3, HB)))
    assert drained(reader, core) == [ObserverJoined(HB)]


def drained(reader, core):
    return list(iter(lambda: reader.next(core.observers), None))
