"""A machine with one flaw does not pass: something finds it, and the test names what.

A flaw is found by

* `table`: the table cannot be built;
* `check`: the static check of the table alone;
* `replay`: what real actors trace is judged by the flawed table, and is no longer conformant;
* `census`: the static check against the steps that they took: a row that nobody ever takes;
* `composition`: the composition check.

They are asked in this order, cheap ones first. The first two are known before anything
runs: they stand in the names of the tests. What the composition check must find, whoever
else finds it too, is in `tests/fsm/explore/test_compositions.py`.
"""

from collections import Counter

import attrs
import pytest

from fsm.explore.compositions.catalogue import COMPOSITIONS
from fsm.explore.explorer import explore
from fsm.judge.trace_line import Verdict
from fsm.judge.verdict import judge
from fsm.machine_list import MACHINES
from fsm.static_check import check, check_taken
from specs.errors import SpecError
from tests.fsm.corpus import record
from tests.fsm.flawed_tables import flawed
from tests.fsm.mutants import sample

SEED, OF_EACH = 20, 2
A_LOOK = 4_000
"""States after which a search in a composition is given up."""

EQUIVALENT: dict[str, str] = {}
"""Mutants that nothing needs to find, and why; the sample may have them or not."""


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
    found = any(explored(plan, name, table) for plan in COMPOSED.get(name, ()))
    return "composition" if found else None


def breaks(trace, machines):
    return judge(trace, machines=machines).verdict is Verdict.VIOLATIONS


def explored(plan, name, table):
    """What is found in a composition of cores that follow this table, with few faults."""
    whole = COMPOSITIONS[plan]
    bounds = attrs.evolve(whole.bounds, duplicates=0)
    with flawed(name, table):
        return explore(attrs.evolve(whole, bounds=bounds), A_LOOK).findings


COMPOSED = {
    "stub_connection": ["session"],
    "session": ["session"],
    "group_membership": ["group-lease"],
    "address": ["session-tables"],
    "node_subscription": ["session-tables"],
    "object_subscription": ["sync", "sync-leave"],
    "observer_copy": ["sync", "sync-ends"],
    "invitation": ["invitation"],
    "p2p_connection": ["p2p", "p2p-reconnect"],
    "link_dialling": ["p2p", "p2p-reconnect"],
    "p2p_entry": ["p2p", "simultaneous-open"],
    "handler_controller": ["p2p", "simultaneous-open"],
    "transaction": ["transaction"],
    "resolve_job": ["resolve"],
    "stub_deployment": ["resolve"],
    "registration": ["registration"],
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


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_flaw_is_found(mutant, corpus, record_property):
    """OBS-05."""
    finder = found_at_once(mutant) or found_by_running(mutant, corpus)
    record_property("found by", finder)
    FINDERS[finder] += 1

    assert (finder is None) == (str(mutant) in EQUIVALENT)


def test_every_method_of_finding_is_needed():
    if sum(FINDERS.values()) < len(MUTANTS):
        pytest.skip("not all mutants were looked at")

    assert len(MUTANTS) >= 50
    assert {param.values[0].machine for param in MUTANTS} == set(MACHINES)
    assert set(FINDERS) >= {"table", "check", "replay", "census"}
    assert FINDERS[None] == len({str(param.values[0]) for param in MUTANTS} & set(EQUIVALENT))
