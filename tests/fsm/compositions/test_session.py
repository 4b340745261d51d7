"""A stub and its session: everything ends in touch or apart, and nothing is left behind."""

import math

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm.compositions import session_terms as terms
from fsm.compositions.session import SESSION_PLAN, compose
from fsm.machine_list import MACHINES
from fsm.product.bounds import Bounds
from fsm.product.explorer import Fault, explore
from fsm.product.steps import Steps
from fsm.session.node_session_io import Credentials
from tests.support.session_world import SessionWorld
from tests.support.shadow import Shadow

SMALL = Bounds(losses=1, duplicates=0, channel=2)
A_LOOK = 60_000
"""States after which a search for a seeded flaw is given up."""


def without_deadline(machine, state):
    table = MACHINES[machine]
    kept = tuple(one for one in table.deadlines if one.state != state)
    return {**MACHINES, machine: attrs.evolve(table, deadlines=kept)}


def without_row(machine, state, trigger):
    table = MACHINES[machine]
    kept = tuple(row for row in table.rows if (row.old, row.trigger.value) != (state, trigger))
    return {**MACHINES, machine: attrs.evolve(table, rows=kept)}


def test_the_cores_and_their_tables_hold_together():
    """I-M2, I-M4, I-A7, I-S8, I-S10."""
    found = explore(compose(MACHINES, SESSION_PLAN.bounds))

    assert found.findings == ()
    assert found.is_complete
    assert found.states > 100_000


@pytest.mark.parametrize(
    ("machine", "state"),
    [
        ("stub_connection", "in-progress"),
        ("stub_connection", "live"),
        ("session", "open"),
        ("session", "detached"),
    ],
)
def test_a_timer_that_is_missing_is_found(machine, state):
    assert explore(compose(without_deadline(machine, state), SMALL), A_LOOK).findings


@pytest.mark.parametrize(
    ("machine", "state", "trigger"),
    [
        ("session", "detached", "reopened"),
        ("session", "detached", "close"),
        ("stub_connection", "disconnected", "reestablished"),
        ("stub_connection", "created", "connect-impossible"),
        ("node_subscription", "active", "session-over"),
        ("address", "allocated", "release"),
    ],
)
def test_a_row_that_is_missing_is_found(machine, state, trigger):
    found = explore(compose(without_row(machine, state, trigger), SMALL), A_LOOK)

    assert {finding.fault for finding in found.findings} == {Fault.UNSPECIFIED}


MOVES = {
    "build": lambda world: world.build(),
    "stand": lambda world: world.stand(),
    "stub's time": lambda world: world.stub_time(),
    "node's time": lambda world: world.node_time(),
    "to the node": lambda world: world.deliver(terms.TO_NODE),
    "to the stub": lambda world: world.deliver(terms.TO_STUB),
    "lost to the node": lambda world: world.lose(terms.TO_NODE),
    "lost to the stub": lambda world: world.lose(terms.TO_STUB),
    **{wish.name: lambda world, name=wish.name: world.wish(name) for wish in terms.WISHES},
}
OFTEN = ["stand", "to the node", "to the stub", "stub's time"]
ROOMY = Bounds(losses=2, duplicates=0, channel=50)
STEPS = Steps(compose(MACHINES, ROOMY))


LOGINS = {"nobody logs in": None, "its owner logs in": Credentials("alice", "idp", math.inf)}


@pytest.mark.parametrize("login", LOGINS.values(), ids=LOGINS)
@settings(max_examples=500, deadline=None)
@given(moves=st.lists(st.sampled_from([*MOVES, *OFTEN, *OFTEN]), max_size=60))
def test_whatever_the_cores_do_the_composition_does(login, moves):
    world, shadow = SessionWorld(ROOMY.losses, login), Shadow(STEPS)
    for name in ("build", terms.CONNECT, *moves):
        if MOVES[name](world):
            shadow.follow(world.told(), world.under_way())


def test_what_a_composition_leaves_out_is_seen_by_its_shadow():
    whole = compose(MACHINES, ROOMY)
    deaf = tuple(rule for rule in whole.rules if str(rule.cause) != "open 1 comes by to-node")
    world, shadow = SessionWorld(ROOMY.losses), Shadow(Steps(attrs.evolve(whole, rules=deaf)))
    for name in ("build", terms.CONNECT, "stand"):
        assert MOVES[name](world)
        shadow.follow(world.told(), world.under_way())
    world.deliver(terms.TO_NODE)

    with pytest.raises(AssertionError, match=r"no step of the composition does this: \{'session'"):
        shadow.follow(world.told(), world.under_way())
