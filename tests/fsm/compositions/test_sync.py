"""A reporter and an observer: where nothing is under way, the copy is what the reporter has."""

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm.compositions import sync_terms as terms
from fsm.compositions.sync import SYNC_PLAN, compose
from fsm.machine_list import MACHINES
from fsm.product.bounds import Bounds
from fsm.product.explorer import Fault, explore
from fsm.product.steps import Steps
from tests.support.shadow import Shadow
from tests.support.sync_world import SyncWorld

SMALL = Bounds(losses=1, duplicates=0, channel=2)
A_LOOK = 60_000
"""States after which a search for a seeded flaw is given up."""


def faults(changes):
    """What is found if tables of these machines are changed so."""
    tables = {name: attrs.evolve(MACHINES[name], **change) for name, change in changes.items()}
    return {one.fault for one in explore(compose({**MACHINES, **tables}, SMALL), A_LOOK).findings}


@pytest.mark.timeout(120)
def test_the_cores_and_their_tables_converge():
    """I-D3, I-D4, I-D5, I-D8."""
    found = explore(compose(MACHINES, SYNC_PLAN.bounds))

    assert found.findings == ()
    assert found.is_complete
    assert found.states > 100_000


@pytest.mark.parametrize(
    ("machine", "state"),
    [
        ("observer_copy", "syncing"),
        ("observer_copy", "stale"),
        ("invitation", "sent"),
        ("object_subscription", "requested"),
        ("object_subscription", "active"),  # a farewell that is lost leaves no subscription
    ],
)
def test_a_timer_that_is_missing_is_found(machine, state):
    kept = tuple(one for one in MACHINES[machine].deadlines if one.state != state)

    assert Fault.DEADLOCK in faults({machine: {"deadlines": kept}})


@pytest.mark.parametrize(
    ("machine", "state", "trigger"),
    [
        ("observer_copy", "syncing", "changed"),
        ("observer_copy", "live", "changed"),
        ("observer_copy", "stale", "snapshot"),
        ("observer_copy", "stale", "deleted"),
        ("object_subscription", "requested", "object-deleted"),
        ("object_subscription", "active", "unsubscribe"),
        ("invitation", "sent", "provisional"),
    ],
)
def test_a_row_that_is_missing_is_found(machine, state, trigger):
    rows = MACHINES[machine].rows
    kept = tuple(row for row in rows if (row.old, row.trigger.value) != (state, trigger))

    assert Fault.UNSPECIFIED in faults({machine: {"rows": kept}})


@pytest.mark.parametrize(
    "cure", ["the last change is said again", "a copy that hears nothing reads"]
)
def test_what_is_lost_last_needs_its_cure(cure):
    """I-D4: without repeats a last change stays lost, without reads of quiet copies a farewell."""
    whole = compose(MACHINES, SMALL)
    rules = tuple(rule for rule in whole.rules if str(rule.cause) != cure)
    assert len(rules) < len(whole.rules)

    found = {one.fault for one in explore(attrs.evolve(whole, rules=rules), A_LOOK).findings}

    assert Fault.DEADLOCK in found


def test_a_copy_that_is_live_in_spite_of_a_gap_is_found():
    """I-D3."""
    rows = [
        attrs.evolve(row, target=row.source) if row.old == "live" and row.guard.when else row
        for row in MACHINES["observer_copy"].rows
    ]

    assert Fault.UNSAFE in faults({"observer_copy": {"rows": tuple(rows)}})


ROOMY = Bounds(losses=2, duplicates=1, channel=50)
STEPS = Steps(compose(MACHINES, ROOMY))
MOVES = {
    "yes": lambda world: world.decide(yes=True),
    "no": lambda world: world.decide(yes=False),
    "nothing": lambda world: world.say_nothing(),
    "all told": lambda world: world.told_all(),
    "silence": lambda world: world.silence(),
    "the copy's time": lambda world: world.copy_time(),
    "the lease": lambda world: world.lease_over(),
    "said again": lambda world: world.say_again(),
    **{
        one.name: lambda w, name=one.name: w.wish(name)
        for one in terms.wishes(ROOMY)
        if one.name != terms.DECIDE
    },
    **{f"to {one.name}": lambda w, name=one.name: w.deliver(name) for one in terms.CHANNELS},
    **{f"lost on {one.name}": lambda w, name=one.name: w.lose(name) for one in terms.CHANNELS},
}
OFTEN = [f"to {one.name}" for one in terms.CHANNELS]


@settings(max_examples=500, deadline=None)
@given(moves=st.lists(st.sampled_from([*MOVES, *OFTEN, *OFTEN]), max_size=60))
def test_whatever_the_cores_do_the_composition_does(moves):
    world, shadow = SyncWorld(ROOMY), Shadow(STEPS)
    for name in (terms.OBSERVE, *moves):
        if MOVES[name](world):
            shadow.follow(world.told(), world.channels)


def test_what_a_composition_leaves_out_is_seen_by_its_shadow():
    whole = compose(MACHINES, ROOMY)
    deaf = tuple(rule for rule in whole.rules if str(rule.cause) != "subscribe comes by asks")
    world, shadow = SyncWorld(ROOMY), Shadow(Steps(attrs.evolve(whole, rules=deaf)))
    world.wish(terms.OBSERVE)
    shadow.follow(world.told(), world.channels)
    world.deliver(terms.ASKS)

    with pytest.raises(AssertionError, match=r"this: \{'subscription': \('\[\*\]', 'requested'\)"):
        shadow.follow(world.told(), world.channels)
