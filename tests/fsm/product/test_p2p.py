"""P2P links and glares hold as they are declared, and not with one row or timer less.

The oracle is the protocol's: pages 03 (3.1, 3.3), 05 (P2P-14, P2P-16, P2P-27) and 08
(I-P3, I-P4, I-P6, I-P20).
"""

import attrs
import pytest

from fsm.compositions.glare import GLARE, GLARE_LATE, GLARE_TIMEOUT
from fsm.compositions.p2p import P2P, P2P_AGAIN, P2P_ANEW, P2P_ENDS
from fsm.guard import ALWAYS
from fsm.machine_list import MACHINES
from fsm.machines import handler_controller as controller
from fsm.machines import p2p_connection as connection
from fsm.machines import p2p_entry as entry
from fsm.product.bounds import Bounds
from fsm.product.explorer import MAX_STATES, Fault, explore

LOSSY = Bounds(losses=1, duplicates=0)
A_LOOK = 40_000
"""States after which a search for something wrong is given up."""


def changed(name, **changes):
    """The declared tables, one of them otherwise."""
    return {**MACHINES, name: attrs.evolve(MACHINES[name], **changes)}


def explored(plan, tables=MACHINES, bounds=None, most=MAX_STATES):
    return explore(plan.compose(tables, bounds or plan.bounds), most)


def faults(found):
    return {finding.fault for finding in found.findings}


# ---- as declared


@pytest.mark.timeout(120)
def test_links_hold_and_more_than_a_hundred_thousand_states_are_explored():
    plans = (P2P_AGAIN, P2P_ANEW, P2P_ENDS, GLARE, GLARE_LATE, GLARE_TIMEOUT)
    found = [explored(plan) for plan in plans]
    assert [each.findings for each in found] == [()] * len(plans)
    assert all(each.holds for each in found)
    assert sum(each.states for each in found) > 100_000


def test_a_set_up_holds_whatever_is_lost():
    assert explored(P2P, bounds=LOSSY).holds


def test_a_set_up_holds_whatever_comes_twice():
    assert explored(P2P, bounds=Bounds(losses=0, duplicates=1, channel=2)).holds


def test_a_glare_holds_with_losses_and_duplicates_too():
    assert explored(GLARE, bounds=Bounds(losses=2, duplicates=1)).holds


def test_registries_may_hear_late_what_is_lost_or_comes_twice():
    assert explored(GLARE_LATE, bounds=Bounds(losses=1, duplicates=0, channel=2)).holds


# ---- with one thing less


def without_tie_break():
    """Whoever is asked while it asks itself gives way (P2P-27 gone)."""
    lost = tuple(
        attrs.evolve(row, guard=ALWAYS, target=entry.State.REMOVED)
        for row in entry.P2P_ENTRY.rows
        if row.trigger == entry.Trigger.INVITED and row.source == entry.State.PLACEHOLDER
    )[:1]
    kept = tuple(
        row
        for row in entry.P2P_ENTRY.rows
        if row.trigger != entry.Trigger.INVITED or row.source != entry.State.PLACEHOLDER
    )
    return changed("p2p_entry", rows=(*kept, *lost))


def without_refusal():
    """The controller accepts although its own request wins."""
    told = controller.Trigger.ROW_TOLD
    rows = controller.HANDLER_CONTROLLER.rows
    kept = tuple(row for row in rows if row.trigger != told)
    accepts = next(row for row in rows if row.trigger == told)
    return changed("handler_controller", rows=(*kept, attrs.evolve(accepts, guard=ALWAYS)))


def without_yielding():
    """Who loses gives its entry away at once, and its own request is ended by order."""
    yields = entry.State.YIELDING
    rows = tuple(
        attrs.evolve(row, target=entry.State.REMOVED) if row.target is yields else row
        for row in entry.P2P_ENTRY.rows
        if row.source is not yields
    )
    kept = tuple(d for d in entry.P2P_ENTRY.deadlines if d.state is not yields)
    return changed("p2p_entry", rows=rows, deadlines=kept)


def without_a_link_beside():
    """Who is invited while its link is live gives that link up at once."""
    live = entry.Condition.LINK_LIVE
    rows = (row for row in entry.P2P_ENTRY.rows if live not in row.guard.when)
    kept = tuple(
        attrs.evolve(row, guard=ALWAYS) if live in row.guard.unless else row for row in rows
    )
    return changed("p2p_entry", rows=kept)


def without_deadlines(*states):
    """T_p2p, or the missing pong, is no more (C-16, R8)."""
    kept = tuple(d for d in connection.P2P_CONNECTION.deadlines if d.state not in states)
    return changed("p2p_connection", deadlines=kept)


def without_refused():
    trigger = connection.Trigger.REFUSED
    table = connection.P2P_CONNECTION
    rows = tuple(row for row in table.rows if row.trigger != trigger)
    deadlines = tuple(d for d in table.deadlines if d.trigger != trigger)
    return changed("p2p_connection", rows=rows, deadlines=deadlines)


def without_renegotiated():
    """A lost link comes back in place or not at all (t8 gone)."""
    trigger, table = connection.Trigger.RENEGOTIATED, connection.P2P_CONNECTION
    rows = tuple(row for row in table.rows if row.trigger != trigger)
    return changed("p2p_connection", rows=rows)


S = connection.State

FLAWED = [
    pytest.param(GLARE, without_tie_break(), None, Fault.BAD_END, id="tie-break"),
    pytest.param(GLARE_TIMEOUT, without_refusal(), None, Fault.DEADLOCK, id="refusal"),
    pytest.param(GLARE_LATE, without_yielding(), None, Fault.UNSAFE, id="yielding"),
    pytest.param(GLARE_LATE, without_a_link_beside(), None, Fault.UNSAFE, id="a link beside"),
    pytest.param(
        P2P,
        without_deadlines(S.CREATED, S.IN_PROGRESS),
        LOSSY,
        Fault.DEADLOCK,
        id="T_p2p",
    ),
    pytest.param(P2P_AGAIN, without_deadlines(S.LIVE), None, Fault.DEADLOCK, id="pong"),
    pytest.param(P2P_ANEW, without_renegotiated(), None, Fault.UNSPECIFIED, id="renegotiated"),
    pytest.param(
        P2P_ANEW, without_deadlines(S.IN_PROGRESS), LOSSY, Fault.DEADLOCK, id="t8's T_p2p"
    ),
    pytest.param(P2P, without_refused(), LOSSY, Fault.UNSPECIFIED, id="refused"),
]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("plan", "tables", "bounds", "fault"), FLAWED)
def test_with_one_thing_less_it_does_not_hold(plan, tables, bounds, fault):
    assert fault in faults(explored(plan, tables, bounds, A_LOOK))


def test_without_the_glares_row_the_invitation_is_unspecified():
    rows = entry.P2P_ENTRY.rows
    kept = tuple(row for row in rows if not row.guard.when)
    found = explored(GLARE, changed("p2p_entry", rows=kept))
    assert any("no row for 'invited'" in finding.subject for finding in found.findings)
