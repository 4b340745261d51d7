"""When the sign of an object's children is reported: I-D4, SYN-24."""

import math
from itertools import pairwise

from fsm.sync.leases import RepeatTimes
from specs.limits.sync import REPEAT_FIRST, REPEAT_LAST, REPEAT_SPACING

URL = "comm://a.ex/o"


def reported(core, until, *, is_observed=True):
    times = []
    while (when := core.deadline()) <= until:
        if core.due(when, lambda _url: is_observed) is not None:
            times.append(when)
    return times


def test_nothing_is_reported_of_an_object_that_never_had_children():
    core = RepeatTimes()
    core.observed(URL, 1.0)
    assert core.deadline() == math.inf


def test_a_sign_is_reported_when_children_rest_and_at_pauses_that_double():
    core = RepeatTimes()
    core.begin(URL, 0.0, REPEAT_LAST)
    first = REPEAT_FIRST
    assert reported(core, 40)[:4] == [first, first + 4, first + 12, first + 28]


def test_pauses_grow_to_the_longest_and_no_further():
    core = RepeatTimes()
    core.begin(URL, 0.0, REPEAT_LAST)
    times = reported(core, 1000)
    assert times[-1] - times[-2] == REPEAT_LAST


def test_children_that_never_rest_are_reported_of_all_the_same():
    core, times = RepeatTimes(), []
    for tenth in range(2000):
        now = tenth / 10
        times += reported(core, now)
        core.begin(URL, now, REPEAT_LAST)
    assert 2 <= len(times) <= 4


def test_children_are_announced_only_while_there_are_observers():
    core = RepeatTimes()
    core.begin(URL, 0.0, REPEAT_LAST)
    assert reported(core, 100, is_observed=False) == []
    assert core.deadline() == math.inf
    core.observed(URL, 200.0)
    assert core.deadline() == 200.0 + REPEAT_LAST


def test_a_forgotten_object_is_notified_of_no_more():
    core = RepeatTimes()
    core.begin(URL, 0.0, REPEAT_LAST)
    core.forget(URL)
    core.forget("comm://a.ex/other")
    assert core.deadline() == math.inf


def test_signs_of_many_objects_keep_a_distance():
    core = RepeatTimes()
    for number in range(5):
        core.begin(f"comm://a.ex/{number}", 0.0, REPEAT_LAST)
    times = reported(core, 3)
    assert len(times) == 5
    steps = [later - sooner for sooner, later in pairwise(times)]
    assert all(step >= REPEAT_SPACING - 1e-9 for step in steps)
