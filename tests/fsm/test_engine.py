"""Only a step moves a state, and only where a row leads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.catalogue import MACHINES
from fsm.engine import Entity, Step
from fsm.errors import UndeclaredTransitionError
from fsm.machines.address import Trigger as AddressTrigger
from fsm.replay import judge
from fsm.trace_line import Verdict
from tests.support.tables import DOOR, Door, Push
from tests.support.traces import step, trace


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


def test_entities_of_one_machine_do_not_share_a_state():
    front, back = Entity(DOOR, "front"), Entity(DOOR, "back")
    front.step(Push.BUILD)

    assert back.state is None


@given(st.sampled_from(list(MACHINES.values())), st.data())
def test_any_walk_is_a_walk_of_the_table_and_is_judged_so(table, data):
    entity = Entity(table, "k")
    told = []
    for trigger in data.draw(st.lists(st.sampled_from(list(table.triggers)), max_size=30)):
        before = entity.state
        target = table.target(before, trigger)
        if target is None:
            with pytest.raises(UndeclaredTransitionError):
                entity.step(trigger)
            assert entity.state is before
        else:
            moved = entity.step(trigger)
            told.append(step(f"{moved.old or '[*]'} {moved.cause} {moved.new}", "k", table.name))
            assert entity.state is target

    rested = Verdict.CONFORMANT if entity.may_end else Verdict.VIOLATIONS
    assert judge(trace(*told)).verdict is rested
