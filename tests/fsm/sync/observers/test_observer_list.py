"""Joins and leaves, as a reporter is notified of them and reads them (SYN-23, M-53)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.sync.observers import ObserverJoined, ObserverLeft, ObserversCore, ObserversSeen
from specs.bodies.object import ObserverList, ObserversChange
from specs.limits.sync import OBSERVER_CHANGES_KEPT

NAMES = [f"hyperty://a.ex/h{number}" for number in range(6)]
HA, HB, HC, *_ = NAMES


def joined(version, *who):
    return ObserversChange(who, "add", version)


def left(version, *who):
    return ObserversChange(who, "remove", version)


def test_each_move_is_reported_once():
    core = ObserversCore()
    assert core.changed(joined(1, HA)) == [ObserverJoined(HA)]
    assert core.changed(joined(1, HA)) == []
    assert core.changed(joined(2, HB)) == [ObserverJoined(HB)]
    assert core.observers == (HA, HB)
    assert core.changed(left(3, HA)) == [ObserverLeft(HA)]
    assert core.observers == (HB,)


@pytest.mark.parametrize("change", [joined(1, HB, HB), left(1, HC)])
def test_an_observer_joins_once_and_an_absent_one_does_not_leave(change):
    core = ObserversCore()
    assert len(core.changed(change)) <= 1


def test_words_without_a_number_are_taken_as_they_come():
    core = ObserversCore()
    core.changed(ObserversChange((HA,), "add"))
    core.changed(ObserversChange((HA,), "remove"))
    assert core.observers == ()


def test_a_missing_report_is_detected_and_the_list_replaces_it():
    core = ObserversCore()
    core.changed(joined(1, HA))
    assert core.changed(joined(3, HC)) == []
    assert (core.is_behind, core.observers) == (True, (HA,))
    assert core.read(ObserverList(3, (HB, HC))) == [
        ObserverLeft(HA), ObserverJoined(HB), ObserverJoined(HC),
    ]  # fmt: skip
    assert not core.is_behind
    assert core.changed(left(4, HB)) == [ObserverLeft(HB)]


def test_a_list_that_was_overtaken_in_transit_is_not_the_last_word():
    core = ObserversCore()
    core.changed(joined(2, HB))
    core.changed(joined(3, HC))
    core.read(ObserverList(2, (HA, HB)))
    assert core.is_behind
    assert core.observers == (HA, HB)


def test_an_old_list_changes_nothing():
    core = ObserversCore()
    core.changed(joined(1, HA))
    core.changed(joined(2, HB))
    assert core.read(ObserverList(1, (HA,))) == []
    assert core.observers == (HA, HB)


def test_a_slow_reader_gets_the_difference():
    core = ObserversCore()
    reader = ObserversSeen(core.observers)
    for version in range(1, OBSERVER_CHANGES_KEPT + 2, 2):
        reader.add(core.changed(joined(version, HA)))
        reader.add(core.changed(left(version + 1, HA)))
    reader.add(core.changed(joined(OBSERVER_CHANGES_KEPT + 3, HB)))
    assert drained(reader, core) == [ObserverJoined(HB)]


def test_a_reader_that_keeps_up_gets_each_move():
    core = ObserversCore()
    reader = ObserversSeen(core.observers)
    reader.add(core.changed(joined(1, HA)))
    reader.add(core.changed(left(2, HA)))
    assert drained(reader, core) == [ObserverJoined(HA), ObserverLeft(HA)]


def drained(reader, core):
    return list(iter(lambda: reader.next(core.observers), None))


MOVES = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(["reported", "lost"]), st.booleans()),
    max_size=4 * OBSERVER_CHANGES_KEPT,
)


@given(MOVES)
def test_for_any_loss_and_any_slow_reader_the_reports_lead_to_the_list(moves):
    """Losses are made up for by a read; the reader's own list is what is there at the end."""
    core, reader, there, mine = ObserversCore(), ObserversSeen(()), {}, []
    for version, (who, fate, is_read) in enumerate([*moves, (HA, "reported", True)], start=1):
        change = (left if who in there else joined)(version, who)
        there.pop(who) if who in there else there.update({who: None})
        if fate == "reported":
            reader.add(core.changed(change))
        if core.is_behind and is_read:
            reader.add(core.read(ObserverList(version, tuple(there))))
        if is_read:
            move = reader.next(core.observers)
            if move is not None:
                apply(mine, move)
    for move in drained(reader, core):
        apply(mine, move)
    assert not core.is_behind
    assert set(mine) == set(core.observers) == set(there)


def apply(mine, move):
    if isinstance(move, ObserverJoined):
        assert move.observer not in mine
        mine.append(move.observer)
    else:
        mine.remove(move.observer)
