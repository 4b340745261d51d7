"""Only a step moves a state, and only where a row leads."""

from contextlib import suppress
from itertools import combinations, product
from types import SimpleNamespace

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transitions import Event, MachineError

import fsm
from fsm.engine import PER_MESSAGE, Entity, Step, by_lookup, by_trigger, machine_of
from fsm.judge.trace_line import Verdict
from fsm.judge.verdict import judge
from fsm.machine_list import MACHINES
from fsm.machines.address import Trigger as AddressTrigger
from fsm.machines.transaction import Trigger as TransactionTrigger
from fsm.table import UndeclaredTransitionError, UnknownMachineError, when
from specs.limits.protocol import REPLY_TIMEOUT
from specs.trace import ABSENT
from tests.support.trace.tables import BUILD, DOOR, ROWS, Door, Key, Push, door
from tests.support.trace.traces import step, trace

LOCKED = door(conditions=Key, rows=(attrs.evolve(BUILD, guard=when(Key.KEY)), *ROWS[1:]))


def test_a_step_reports_what_happened():
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


def test_permitted_triggers_depend_on_the_state():
    entity = Entity(DOOR, "front")

    assert entity.allows(Push.BUILD)
    assert not entity.allows(Push.OPEN)


def test_permitted_triggers_depend_on_facts():
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
    reported = []
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
            reported.append(
                step(f"{moved.old or '[*]'} {moved.cause} {moved.new}", "k", table.name)
            )
            assert [entity.state] == [row.target for row in rows]

    rested = Verdict.CONFORMANT if entity.may_end else Verdict.VIOLATIONS
    assert judge(trace(*reported)).verdict is rested


def truths(table):
    """Every set of conditions that can be true."""
    conditions = list(table.conditions)
    return [
        set(some) for size in range(len(conditions) + 1) for some in combinations(conditions, size)
    ]


@pytest.mark.parametrize("way", [by_trigger, by_lookup])
@pytest.mark.parametrize("table", MACHINES.values(), ids=MACHINES)
def test_the_librarys_trigger_and_the_lookup_go_where_the_table_says(table, way):
    take = way(machine_of(table))
    places = [ABSENT, *(state.value for state in table.states)]
    steps = list(product(places, table.triggers, truths(table)))
    declared = [followed(table, *step) for step in steps]

    assert [take(*step) for step in steps] == [
        rows[0].target if rows else None for rows in declared
    ]


class Listener:
    """An application's model: a state, and some of the callbacks that it could have."""

    def __init__(self):
        self.heard = []

    def on_exit_created(self, event):
        self.heard.append(f"not {event.transition.source}")

    def on_enter_in_progress(self, event):
        self.heard.append(event.state.name)


def test_a_model_of_an_application_goes_by_the_machine_of_the_runtime():
    machine, model = fsm.machine("p2p_connection"), Listener()
    assert machine is machine_of(MACHINES["p2p_connection"])
    machine.add_model(model)
    try:
        assert model.trigger("started")
        assert model.trigger("object-returned")
        with pytest.raises(MachineError):
            model.trigger("started")
    finally:
        machine.remove_model(model)
    assert model.state == "in-progress"
    assert model.heard == ["not created", "in-progress"]


@pytest.mark.parametrize(("true", "state"), [({"gap"}, "stale"), (set(), "live")])
def test_a_model_is_reported_which_conditions_are_true(true, state):
    model = SimpleNamespace(state="live")
    fsm.machine("observer_copy").events["changed"].trigger(model, given=true)
    assert model.state == state


def test_callbacks_of_an_application_are_never_called_by_an_entity():
    machine, heard = machine_of(DOOR), []
    machine.after_state_change = heard.append
    try:
        Entity(DOOR, "front").step(Push.BUILD)
        assert heard == []
        machine.events["build"].trigger(SimpleNamespace(state=ABSENT))
        assert len(heard) == 1
    finally:
        machine.after_state_change = []


def test_only_what_steps_per_message_is_looked_up(monkeypatch):
    entities = {name: Entity(table, "k") for name, table in MACHINES.items()}
    monkeypatch.setattr(Event, "trigger", lambda *_, **__: False)
    stepped = set()
    for name, entity in entities.items():
        first = next(row for row in entity.table.rows if row.source is None)
        with suppress(UndeclaredTransitionError):
            entity.step(first.trigger)
            stepped.add(name)
    assert stepped == PER_MESSAGE == {"transaction", "observer_copy"}


@pytest.mark.parametrize(
    ("name", "nearest"), [("p2p-connection", "p2p_connection"), ("sesion", "session")]
)
def test_a_machine_that_is_none_is_refused_with_the_nearest_name(name, nearest):
    with pytest.raises(
        UnknownMachineError, match=f"'{name}'; the nearest is '{nearest}'"
    ) as caught:
        fsm.machine(name)
    assert caught.value.nearest == nearest


def test_an_entity_knows_how_long_it_may_stay():
    entity = Entity(MACHINES["transaction"], "k")
    assert entity.patience == float("inf")
    entity.step(TransactionTrigger.OPENED)
    assert entity.patience == REPLY_TIMEOUT
