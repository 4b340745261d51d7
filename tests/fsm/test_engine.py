"""Only a step moves a state, and only where a row leads."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transitions import MachineError

from fsm.engine import Entity, Step, machine_of
from fsm.errors import UndeclaredTransitionError
from fsm.guard import when
from fsm.judge.replay import judge
from fsm.judge.trace_line import Verdict
from fsm.machine_list import MACHINES
from fsm.machines.address import Trigger as AddressTrigger
from fsm.machines.transaction import Trigger as TransactionTrigger
from specs.limits.protocol import REPLY_TIMEOUT
from specs.trace import ABSENT
from tests.support.trace.tables import BUILD, DOOR, ROWS, Door, Key, Push, door
from tests.support.trace.traces import step, trace

LOCKED = door(conditions=Key, rows=(attrs.evolve(BUILD, guard=when(Key.KEY)), *ROWS[1:]))


def test_a_step_tells_what_happened():
    assert Entity(DOOR, "front").step(Push.BUILD, "spring") == Step(
        "door", "front", None, "open", "build", "spring"
    )


def test_an_entity_is_absent_until_its_first_step():
    entity = Entity(DOOR, "front")

    assert entity.state is None
    assert entity.may_end


def test_an_undeclared_step_says_which_and_moves_nothing():
    entity = Entity(DOOR, "front")
    entity.step(Push.BUILD)

    with pytest.raises(UndeclaredTransitionError) as caught:
        entity.step(Push.TEAR_DOWN)
    error = caught.value
    assert (error.machine, error.key) == ("door", "front")
    assert (error.state, error.trigger) == (Door.OPEN, "tear-down")
    assert entity.state is Door.OPEN
    assert str(error) == "door front: no row for 'tear-down' in state 'open'"


def test_a_trigger_of_another_machine_is_undeclared():
    with pytest.raises(UndeclaredTransitionError, match=r"state '\[\*\]'"):
        Entity(DOOR, "front").step(AddressTrigger.ALLOCATE)


def test_a_state_cannot_be_assigned():
    with pytest.raises(AttributeError):
        Entity(DOOR, "front").state = Door.GONE


def test_what_is_allowed_depends_on_the_state():
    entity = Entity(DOOR, "front")

    assert entity.allows(Push.BUILD)
    assert not entity.allows(Push.OPEN)


def test_what_is_allowed_depends_on_what_is_true():
    entity = Entity(LOCKED, "front")

    assert entity.allows(Push.BUILD, {Key.KEY})
    assert not entity.allows(Push.BUILD)


def test_entities_of_one_machine_do_not_share_a_state():
    front, back = Entity(DOOR, "front"), Entity(DOOR, "back")
    front.step(Push.BUILD)

    assert back.state is None


def cases(table):
    """Which conditions of a table are true."""
    return (
        st.sets(st.sampled_from(list(table.conditions)))
        if list(table.conditions)
        else st.just(set())
    )


def followed(table, state, trigger, given):
    """The rows that hold, looked up in the table alone."""
    return [row for row in table.rows_for(state, trigger) if row.guard.holds(given)]


@given(st.sampled_from(list(MACHINES.values())), st.data())
def test_any_walk_is_a_walk_of_the_table_and_is_judged_so(table, data):
    entity = Entity(table, "k")
    told = []
    pushes = st.tuples(st.sampled_from(list(table.triggers)), cases(table))
    for trigger, true in data.draw(st.lists(pushes, max_size=30)):
        before = entity.state
        rows = followed(table, before, trigger, true)
        assert entity.allows(trigger, true) is bool(rows)
        if not rows:
            with pytest.raises(UndeclaredTransitionError):
                entity.step(trigger, given=true)
            assert entity.state is before
        else:
            moved = entity.step(trigger, given=true)
            told.append(step(f"{moved.old or '[*]'} {moved.cause} {moved.new}", "k", table.name))
            assert [entity.state] == [row.target for row in rows]

    rested = Verdict.CONFORMANT if entity.may_end else Verdict.VIOLATIONS
    assert judge(trace(*told)).verdict is rested


class Model:
    """What the library steps: a state, and the conditions as attributes."""

    def __init__(self, table, state, true):
        self.state = state
        for condition in table.conditions:
            setattr(self, condition.value, condition in true)


@given(st.sampled_from(list(MACHINES.values())), st.data())
def test_an_entity_goes_where_the_library_goes(table, data):
    """The compiled rows against `transitions` itself."""
    state = data.draw(st.sampled_from([None, *table.states]))
    trigger, true = data.draw(st.sampled_from(list(table.triggers))), data.draw(cases(table))
    model = Model(table, ABSENT if state is None else state.value, true)
    try:
        moved = machine_of(table).events[trigger].trigger(model)
    except MachineError:
        moved = False
    rows = followed(table, state, trigger, true)

    assert moved == bool(rows)
    assert [model.state] == ([row.target for row in rows] or [state or ABSENT])


def test_an_entity_knows_how_long_it_may_stay():
    entity = Entity(MACHINES["transaction"], "k")
    assert entity.patience == float("inf")
    entity.step(TransactionTrigger.OPENED)
    assert entity.patience == REPLY_TIMEOUT
