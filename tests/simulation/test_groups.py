"""Several nodes of one domain over an engine with faults: every run keeps every rule."""

import attrs
import pytest

from actors.node.group.group import Group
from tests.simulation.judgement.defects import defective
from tests.simulation.judgement.judging import CHUNK, broken_by
from tests.simulation.plans.groups import group_plan_of
from tests.simulation.plans.plan import Fault, Plan, Wrong
from tests.simulation.world.simulator import run

pytestmark = pytest.mark.timeout(120)

SEEDS = 5
LONG = 100

FOUND = 430, 443, 536
"""Seeds that once broke a rule: addresses of a runtime that was away; the order of updates; that of
requests to a runtime that moves to a node whose writes are lost."""

PLAN = Plan(seed=1, runtimes=(("r0", 0), ("r1", 0)), members=3)
FAULTS = [
    Fault(4.0, Wrong.NODE, "n0a", lasts=2.0),
    Fault(4.0, Wrong.MOVE, "r0", "n0c"),
    Fault(4.0, Wrong.ENGINE, "n0a", lasts=15.0),
    Fault(4.0, Wrong.EMPTIED, "n0a", lasts=1.0),
    Fault(4.0, Wrong.CUT, "n0a", lasts=15.0),
]


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_runs_of_these_seeds_keep_every_rule(first):
    assert broken_by(range(first, first + CHUNK), group_plan_of) == {}


@pytest.mark.soak
@pytest.mark.parametrize("first", range(SEEDS, LONG, CHUNK))
def test_runs_of_more_seeds_keep_every_rule(first):
    assert broken_by(range(first, first + CHUNK), group_plan_of) == {}


@pytest.mark.parametrize("seed", FOUND)
def test_a_seed_that_found_a_defect_passes(seed):
    """I-M3, I-M14, I-B7."""
    assert run(group_plan_of(seed)).breaches == ()


def stepped(*faults):
    """Return the node of each step of the session of the first runtime, in order."""
    outcome = run(attrs.evolve(PLAN, faults=faults))
    assert outcome.breaches == ()
    facts = [(process, fact) for process, _, _, _, fact in outcome.evidence.reported]
    return [
        process
        for process, fact in facts
        if process.startswith("n") and fact.machine == "session"
        and str(fact.key).endswith("/r0")
    ]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.wrong)
def test_a_fault_takes_a_runtime_from_its_node(fault):
    assert len(stepped(fault)) > len(stepped())


def test_rows_that_nobody_removes_are_found():
    with defective((Group, "_tidy_paths", lambda _tidied: lambda self: None)):
        assert "shared" in run(group_plan_of(145)).broken
