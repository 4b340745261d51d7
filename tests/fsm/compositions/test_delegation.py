"""Two ends and a node: whatever is lost, doubled or killed, at most one writes (SYN-26, I-D1)."""

import attrs
import pytest

from fsm.compositions.delegation import DELEGATION_PLAN, compose
from fsm.machine_list import MACHINES
from fsm.machines.object_delegation import State, Trigger
from fsm.product.bounds import Bounds
from fsm.product.explorer import Fault, explore

SMALL = Bounds(losses=1, duplicates=0, channel=2)


def findings(machine, **change):
    """What is found if a table is changed so."""
    table = attrs.evolve(MACHINES[machine], **change)
    return explore(compose({**MACHINES, machine: table}, SMALL)).findings


def test_the_tables_and_the_node_hold_together():
    found = explore(compose(MACHINES, DELEGATION_PLAN.bounds))

    assert found.findings == ()
    assert found.is_complete
    assert found.states > 5_000


def led_to(state, trigger, target):
    return tuple(
        attrs.evolve(row, target=target) if (row.source, row.trigger) == (state, trigger) else row
        for row in MACHINES["object_delegation"].rows
    )


def test_an_old_end_that_writes_on_after_silence_is_found():
    """Silence is no word of the node."""
    rows = led_to(State.HANDING, Trigger.DOUBT, State.KEPT)

    assert Fault.UNSAFE in {one.fault for one in findings("object_delegation", rows=rows)}


@pytest.mark.parametrize(
    ("machine", "state"),
    [
        ("object_delegation", "asked"),
        ("object_delegation", "offered"),
        ("object_delegation", "handing"),
        ("object_delegation", "doubtful"),
        ("object_take_over", "taking"),
    ],
)
def test_a_timer_that_is_missing_is_found(machine, state):
    kept = tuple(one for one in MACHINES[machine].deadlines if one.state != state)

    assert findings(machine, deadlines=kept)
