"""Which methods of the claims take a record."""

import attrs
import pytest

from fsm.judge.claims import fold
from fsm.judge.claims.catalogue import PROCESS_CLAIMS
from fsm.judge.claims.records import BUS
from fsm.judge.process import _methods_of
from fsm.judge.trace_line import TraceLine
from specs.trace import Kind, Op

HEADED = TraceLine("r", "n", 1, Kind.MSG, actor=BUS, op=Op.XMIT, from_="x", to="y", body="{}")
STEP = TraceLine("r", "n", 1, Kind.STATE, op=Op.STEP, machine="session")


@pytest.mark.parametrize(
    ("route", "is_taken"),
    [
        (fold.bodies_at_bus(Op.XMIT), {}),
        (fold.with_body(), {"actor": "x"}),
        (fold.at_bus(Op.RCV, Op.XMIT), {"body": None}),
        (fold.msg(), {"actor": "x", "body": None}),
        (fold.any_msg(Op.XMIT), {"to": None, "from_": None, "body": None}),
    ],
)
def test_a_route_takes_what_it_needs(route, is_taken):
    assert route.takes(fold.sort_of(attrs.evolve(HEADED, **is_taken)))


@pytest.mark.parametrize(
    ("route", "changed"),
    [
        (fold.bodies_at_bus(), {"body": None}),
        (fold.at_bus(), {"actor": "x"}),
        (fold.msg(), {"to": None}),
        (fold.msg(), {"from_": None}),
        (fold.any_msg(Op.RCV), {}),
        (fold.others(Kind.LINK), {}),
    ],
)
def test_a_route_takes_nothing_else(route, changed):
    assert not route.takes(fold.sort_of(attrs.evolve(HEADED, **changed)))


def test_steps_are_taken_by_their_machine_and_rows_by_their_table():
    row = TraceLine("r", "n", 1, Kind.TABLE, op=Op.ADD, table="alloc")

    assert fold.steps("session").takes(fold.sort_of(STEP))
    assert not fold.steps("session").takes(fold.sort_of(attrs.evolve(STEP, op=Op.REFUSED)))
    assert fold.rows("alloc").takes(fold.sort_of(row))
    assert not fold.rows("subs").takes(fold.sort_of(row))


@pytest.mark.parametrize("place", [fold.Place.RUNTIME, fold.Place.NODE])
def test_each_method_of_the_claims_on_a_place_takes_some_records(place):
    claims = [claim for claim in PROCESS_CLAIMS if claim.place in {fold.Place.ANY, place}]
    routes = [route for claim in claims for _, several in claim.methods for route in several]
    sorts = {
        (route.kind, name, *fold.sort_of(HEADED)[2:])
        for route in routes
        for name in route.names or {"x"}
    }

    taken = {name for sort in sorts for at, name in _methods_of(place, sort)}
    assert taken >= {name for claim in claims for name, _ in claim.methods}
