"""A machine with one flaw does not pass: something finds it, and it is told what.

A flaw is found by

* `table`: the table cannot be built;
* `check`: the static check of the table alone;
* `replay`: what real actors trace is judged by the flawed table, and is no longer conformant;
* `census`: the static check against the steps that they took: a row that nobody ever takes;
* `composition`: the composition check.

They are asked in this order, cheap ones first. The first two are known before anything
runs: they stand in the names of the tests. What the composition check must find, whoever
else finds it too, has a test of its own.
"""

from collections import Counter

import attrs
import pytest

from fsm.check.static import check, check_taken
from fsm.compositions.glare import GLARE
from fsm.compositions.p2p import P2P, P2P_AGAIN
from fsm.compositions.session import SESSION_PLAN
from fsm.compositions.sync import SYNC_PLAN
from fsm.judge.replay import judge
from fsm.judge.trace_line import Verdict
from fsm.machine_list import MACHINES
from fsm.product.explorer import explore
from specs.errors import SpecError
from tests.fsm.corpus import record
from tests.fsm.mutants import mutants, sample

SEED, OF_EACH = 20, 2
A_LOOK = 4_000
"""States after which a search in a composition is given up."""

EQUIVALENT = {
    "registration: without the deadline of disconnected": (
        "a record may rest there for ever as well: it is only kept for longer; that it is buried"
        " in time is shown where the registry is tested"
    ),
    "registration: without the deadline of lasting": (
        "likewise: that such a record expires is shown where the registry is tested"
    ),
}
"""Mutants that nothing needs to find, and why; the sample may have them or not."""

TIMERS = {
    "p2p_connection: without the deadline of in-progress": P2P,
    "p2p_connection: without the deadline of live": P2P_AGAIN,
    "stub_connection: without the deadline of in-progress": SESSION_PLAN,
    "stub_connection: without the deadline of live": SESSION_PLAN,
    "session: without the deadline of open": SESSION_PLAN,
    "session: without the deadline of detached": SESSION_PLAN,
    "object_subscription: without the deadline of requested": SYNC_PLAN,
    "observer_copy: without the deadline of syncing": SYNC_PLAN,
    "observer_copy: without the deadline of stale": SYNC_PLAN,
    "invitation: without the deadline of sent": SYNC_PLAN,
}
WINS, LOSES = "own request and own runtime smaller", "own request and not own runtime smaller"
TIE_BREAKS = {
    f"p2p_entry: without the row placeholder invited [{WINS}] placeholder": GLARE,
    f"p2p_entry: without the row placeholder invited [{LOSES}] yielding": GLARE,
    f"p2p_entry: retargeted placeholder invited [{WINS}] placeholder to removed": GLARE,
    f"p2p_entry: retargeted placeholder invited [{LOSES}] yielding to placeholder": GLARE,
    f"handler_controller: without the row observing row-told [{WINS}] closed": GLARE,
    f"handler_controller: retargeted observing row-told [{WINS}] closed to open": GLARE,
}


def found_at_once(mutant):
    """What finds a mutant without anything running; None: nothing does."""
    try:
        table = mutant.table()
    except SpecError:
        return "table"
    return "check" if set(check(table)) - set(check(MACHINES[mutant.machine])) else None


def found_by_running(mutant, corpus):
    """What else finds it; None: nothing does."""
    name, table = mutant.machine, mutant.table()
    machines = {**MACHINES, name: table}
    if any(breaks(trace, machines) for trace in corpus.traces[name]):
        return "replay"
    missed = set(check_taken(MACHINES[name], corpus.steps))
    if set(check_taken(table, corpus.steps)) - missed:
        return "census"
    found = any(explored(plan, machines, A_LOOK) for plan in COMPOSED.get(name, ()))
    return "composition" if found else None


def breaks(trace, machines):
    return judge(trace, machines=machines).verdict is Verdict.VIOLATIONS


def explored(plan, machines, most):
    """What is found in a composition of these machines, with a small share of faults."""
    bounds = attrs.evolve(plan.bounds, losses=min(plan.bounds.losses, 1), duplicates=0)
    return explore(plan.compose(machines, bounds), most).findings


COMPOSED = {
    "stub_connection": [SESSION_PLAN],
    "session": [SESSION_PLAN],
    "address": [SESSION_PLAN],
    "node_subscription": [SESSION_PLAN],
    "object_subscription": [SYNC_PLAN],
    "observer_copy": [SYNC_PLAN],
    "invitation": [SYNC_PLAN],
    "p2p_connection": [P2P, GLARE],
    "p2p_entry": [P2P, GLARE],
    "handler_controller": [P2P, GLARE],
}
"""The compositions in which a machine takes part."""

MUTANTS = [
    pytest.param(mutant, id=f"{mutant} ({found_at_once(mutant) or 'by running'})")
    for mutant in sample(SEED, OF_EACH)
]
FINDERS = Counter()


@pytest.fixture(scope="module")
def corpus():
    return record()


def test_the_corpus_is_conformant_and_takes_every_row(corpus):
    traces = [trace for told in corpus.traces.values() for trace in told]
    missed = [one for table in MACHINES.values() for one in check_taken(table, corpus.steps)]

    assert not [trace for trace in traces if breaks(trace, MACHINES)]
    assert set(corpus.traces) == set(MACHINES)
    assert missed == []


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_flaw_is_found(mutant, corpus, record_property):
    finder = found_at_once(mutant) or found_by_running(mutant, corpus)
    record_property("found by", finder)
    FINDERS[finder] += 1

    assert (finder is None) == (str(mutant) in EQUIVALENT)


def by_name(name):
    """The mutant of that name."""
    (mutant,) = [one for one in mutants([name.partition(":")[0]]) if str(one) == name]
    return mutant


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", [pytest.param(one, id=one) for one in (*TIMERS, *TIE_BREAKS)])
def test_a_timer_or_a_tie_break_that_is_missing_is_found_by_the_composition(name):
    plan, mutant = (TIMERS | TIE_BREAKS)[name], by_name(name)
    machines = {**MACHINES, mutant.machine: mutant.table()}

    assert explored(plan, machines, most=100_000)


def test_every_way_of_finding_is_needed():
    if sum(FINDERS.values()) < len(MUTANTS):
        pytest.skip("not all mutants were looked at")

    assert len(MUTANTS) >= 50
    assert {param.values[0].machine for param in MUTANTS} == set(MACHINES)
    assert set(FINDERS) >= {"table", "check", "replay", "census"}
    assert FINDERS[None] == len({str(param.values[0]) for param in MUTANTS} & set(EQUIVALENT))
