"""Each fault within a process has the effect that it is named after."""

import json

import attrs
import pytest

from specs.reply_code import Code
from tests.simulation.judgement.history import Answered, Asked, Created, Held
from tests.simulation.plans.plan import Act, Deed, Fault, Plan, Wrong
from tests.simulation.world.simulator import run

PLAN = Plan(
    seed=1,
    runtimes=(("r0", 0), ("r1", 0)),
    latency=0.02,
    acts=(
        Act(0.5, Deed.ASK, "r1", "r0", 60, 0.2),
        Act(6.0, Deed.DEPLOY, "r1", "r0"),
        Act(8.0, Deed.ASK, "r1", "r0"),
    ),
)
UNTIL = 14.0


def asked_and_codes(*faults):
    outcome = run(attrs.evolve(PLAN, faults=faults))
    assert outcome.breaches == ()
    remarks = outcome.history.remarks
    codes = {one.code for one in remarks if isinstance(one, Answered)}
    return sum(isinstance(one, Asked) and one.at < UNTIL for one in remarks), codes


@pytest.mark.parametrize(
    ("fault", "codes"),
    [
        (Fault(4.0, Wrong.POLICY, "n0", lasts=10.0), {Code.FORBIDDEN}),
        (Fault(4.0, Wrong.BUSY, "r0", lasts=20.0), {Code.TIMEOUT}),
        (Fault(4.0, Wrong.CORRUPT, "r1", "n0", 10.0, 0.1), {Code.TIMEOUT, Code.BAD_BACKEND}),
    ],
)
def test_requests_during_a_fault_are_answered_accordingly(fault, codes):
    assert asked_and_codes()[1] == {Code.OK}
    assert asked_and_codes(fault)[1] == {Code.OK, *codes}


def test_no_hyperty_is_deployed_while_the_registry_cannot_write():
    asked, _ = asked_and_codes(Fault(4.0, Wrong.DISK, "n0", lasts=10.0))

    assert asked == asked_and_codes()[0] - 1


def test_a_node_that_dies_while_its_disk_is_away_starts_when_that_is_back():
    death, away = Fault(4.0, Wrong.NODE, "n0", lasts=1.0), Fault(4.5, Wrong.DISK, "n0", lasts=5.0)

    asked, codes = asked_and_codes(death, away)

    assert Code.OK in codes
    assert asked < asked_and_codes(death)[0]


@pytest.mark.parametrize("amount", [-7_200.0, 7_200.0])
def test_no_runtime_logs_in_at_a_node_with_a_wrong_clock(amount):
    death = Fault(5.0, Wrong.RUNTIME, "r1", lasts=1.0)
    wrong = Fault(4.0, Wrong.CLOCK, "n0", lasts=10.0, amount=amount)

    asked, _ = asked_and_codes(death)
    asked_at_wrong_time, _ = asked_and_codes(death, wrong)

    assert asked_at_wrong_time < asked


STORED = Plan(
    seed=1,
    runtimes=(("r0", 0), ("r1", 0)),
    stored=True,
    acts=(
        Act(0.5, Deed.CREATE, "r0"),
        Act(1.0, Deed.OBSERVE, "r1", "r0"),
        Act(5.0, Deed.CHILD, "r0", "r0"),
        Act(5.0, Deed.CHILD, "r1", "r0"),
        Act(5.0, Deed.CHANGE, "r0"),
        Act(60.0, Deed.CREATE, "r0"),
        Act(65.0, Deed.OBSERVE, "r1", "r0"),
    ),
)


def created_at(*faults):
    outcome = run(attrs.evolve(STORED, faults=faults))
    assert outcome.breaches == ()
    held = [one for one in outcome.history.remarks if isinstance(one, Held)]
    assert {one.version for one in held} == {2}
    return [one.at for one in outcome.history.remarks if isinstance(one, Created)], held


@pytest.mark.parametrize(
    "fault",
    [
        Fault(4.0, Wrong.SLOW_STORE, "r0", lasts=20.0, amount=3.0),
        Fault(4.0, Wrong.STORE, "r0", lasts=3.0),
    ],
    ids=lambda fault: fault.wrong,
)
def test_children_of_a_stored_object_wait_for_the_disk_of_its_reporter(fault):
    (first, _), _ = created_at()
    (late, _), _ = created_at(fault)

    assert late >= first + 2


def test_a_stored_object_and_its_children_outlive_their_reporter():
    _, held = created_at(Fault(20.0, Wrong.RUNTIME, "r0", lasts=10.0))
    children = json.loads(held[0].children)

    assert {one.by for one in held} == {"r0.2", "r1.1"}
    assert len({one.children for one in held}) == 1
    assert children
