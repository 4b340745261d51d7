"""A scenario that is spoilt in one step does not pass, and the player names that step."""

import pytest

from tests.conformance.play.script import ScriptError
from tests.conformance.play.spoil import WAYS, spoilt
from tests.conformance.play.test_scenarios import PENDING
from tests.support.trace.recorded import NAMES, lines_of, record, scenario_of

PASSING = [name for name in NAMES if name not in PENDING]

ONE_OF_A_KIND = {
    "type": ("SC-25", 10),
    "code": ("SC-09", 18),
    "to": ("SC-13", 5),
    "from": ("SC-02", 3),
    "body": ("SC-05", 16),
    "node": ("SC-14", 6),
    "part": ("SC-17", 2),
    "link": ("SC-25", 18),
    "drop": ("SC-25", 16),
    "synthetic": ("SC-07", 10),
    "queued": ("SC-25", 6),
    "new": ("SC-24", 5),
    "old": ("SC-25", 13),
    "key": ("SC-11", 3),
    "op": ("SC-17", 4),
    "row": ("SC-07", 9),
    "val": ("SC-27", 9),
    "result": ("SC-13", 2),
    "decision": ("SC-39", 5),
    "order": ("SC-04", 15),
}
"""A way to spoil, and a step that it is tried on with the actors themselves."""


UNSEEN = {("SC-32", "op", (5,))}
"""The row was written by what the scenario takes for granted: that it is there is no surprise."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.soak] if at % 4 else [])
        for at, name in enumerate(PASSING)
    ],
)
async def test_every_spoilt_step_is_named(autojump_clock, name):
    """Each way at each expectation, judged by what was seen in one run."""
    lines = lines_of(name)
    recorded = await record(scenario_of(lines))
    assert await recorded.judge(scenario_of(lines)) is None

    wrong = []
    for one in spoilt(lines):
        if (name, one.how, one.at) in UNSEEN:
            continue
        try:
            difference = await recorded.judge(scenario_of(one.lines))
        except ScriptError as error:
            # It names what is not given: the check finds it before anything is played.
            number = one.lines[error.line - 1]["n"]
        else:
            number = None if difference is None else difference.number
        if number not in one.at:
            wrong.append((one.how, one.at, number))
    assert wrong == []


@pytest.mark.parametrize(("how", "where"), ONE_OF_A_KIND.items(), ids=list(ONE_OF_A_KIND))
async def test_each_mutation_of_a_scenario_is_found_with_the_actors_at_work(
    autojump_clock, how, where
):
    name, number = where
    (one,) = [each for each in spoilt(lines_of(name)) if each.how == how and number in each.at][:1]
    recorded = await record(scenario_of(one.lines))
    assert recorded.difference is not None
    assert recorded.difference.number in one.at


def test_every_kind_of_mutation_is_tried():
    ways = {how for by_kind in WAYS.values() for how in by_kind} | {"order"}
    assert set(ONE_OF_A_KIND) == ways
