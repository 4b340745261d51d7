"""Several nodes of one domain over an engine with faults: every run keeps every rule."""

import attrs
import pytest

from actors.node.group.carrier import Carrier
from actors.node.group.group import Group
from actors.node.tables import Tables
from fsm.group.moves import MovesCore
from tests.simulation.judgement.defects import defective
from tests.simulation.judgement.judging import CHUNK, broken_by
from tests.simulation.plans.groups import group_plan_of
from tests.simulation.plans.plan import Act, Deed, Fault, Plan, Wrong
from tests.simulation.world.simulator import run

pytestmark = pytest.mark.timeout(240)

SEEDS = 5
LONG = 100

FOUND = 430, 443, 527, 536, 3171, 3325, 11743, 11228, 11974, 12171
"""Seeds that once broke a rule: addresses of a runtime that was away; the order of updates; a child
that was created, and refused for an observer out of reach; the order of requests to a runtime that
moves to a node whose writes are lost; a child that is repeated while it waits for a path; an
answer that is repeated while the first one is on its way back from a link; a message that a node
without a lease did not take in, and counted; a message of a sender that has moved since, which
the next one overtook; a message that was lost with the engine, while one before it was still on
its way to the bus of the receiver; an update that an observer got at its old node and at its new
one; an answer of which a link gave two copies back; a child that some runtimes got while others
were out of reach; a request that was repeated while it waited for its node; a list of what lives
in a runtime that a change overtook."""

LONG_FOUND = 752, 825, 10348, 12172
"""The same; their runs take longer."""

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


def never_gives_up(_yields):
    """A node that hears that another node has a session goes on with its own copy."""
    return lambda self, runtime, to, why: None


def twice(send):
    """Who has its session elsewhere gets a message twice."""

    def sends(self, entry, by, runtimes, nodes):
        send(self, entry, by, runtimes, nodes)
        return runtimes

    return sends


def forgetful(settle):
    """Every third turn nobody carries what waits for other nodes."""
    turns = []

    def settles(self, link):
        turns.append(link)
        for outbox in self._outboxes.values() if len(turns) % 3 == 0 else ():
            outbox.take()
        settle(self, link)

    return settles


def still_subscribed(_moved_away):
    """A session that has moved is given what it had subscribed, as before."""
    return lambda self, runtime: None


MOVING = attrs.evolve(
    PLAN,
    acts=(
        Act(0.5, Deed.CREATE, "r1"),
        Act(1.0, Deed.OBSERVE, "r0", "r1"),
        Act(2.0, Deed.CHANGE, "r1", count=20, pause=1.0),
        Act(2.0, Deed.ASK, "r1", "r0", count=20, pause=1.0),
    ),
    faults=(Fault(4.0, Wrong.MOVE, "r0", "n0c"),),
)

DEFECTS = {
    "claim I-M16": (MovesCore, "_yield", never_gives_up),
    "claim I-M17": (Carrier, "send", twice),
    "claim I-M18": (Carrier, "settle", forgetful),
    "claim I-M7": (Tables, "moved_away", still_subscribed),
}


@pytest.mark.parametrize("rule", DEFECTS)
def test_what_nodes_do_wrong_together_is_found_in_their_traces(rule):
    with defective(DEFECTS[rule]):
        assert rule in run(MOVING).broken


def test_a_runtime_that_moves_breaks_no_rule():
    assert run(MOVING).breaches == ()


@pytest.mark.soak
@pytest.mark.parametrize("first", range(SEEDS, LONG, CHUNK))
def test_runs_of_more_seeds_keep_every_rule(first):
    assert broken_by(range(first, first + CHUNK), group_plan_of) == {}


@pytest.mark.parametrize(
    "seed", [*FOUND, *(pytest.param(seed, marks=pytest.mark.long) for seed in LONG_FOUND)]
)
def test_a_seed_that_found_a_defect_passes(seed):
    """I-M3, I-M14, I-M18, I-B7, I-T9."""
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
