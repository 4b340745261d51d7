"""Which methods of the claims take a record: the same as if each route were asked."""

import attrs
import pytest

from fsm.judge.claims.catalogue import PROCESS_CLAIMS
from fsm.judge.claims.fold import Place, name_of
from fsm.judge.claims.records import BUS
from fsm.judge.process import _OF_NODE, _OF_RUNTIME
from fsm.judge.trace_line import TraceLine
from specs.trace import Kind, Op

ROUTES = [route for fold in PROCESS_CLAIMS for _, routes in fold.methods for route in routes]
NAMES = sorted({name for route in ROUTES for name in route.names})

BARE = TraceLine(run="r", node="n", ln=1, k="msg")


def records():
    """Records of each kind with each name that a route declares, in each field, and with none."""
    for kind in [*Kind, "unheard of"]:
        for name in [*NAMES, "unheard of", None]:
            one = attrs.evolve(BARE, k=kind, op=name)
            yield one
            yield attrs.evolve(one, actor=BUS, from_="hyperty://a.ex/1", to="hyperty://a.ex/2")
            yield attrs.evolve(one, actor=BUS, from_="x", to="y", body="{}")
            yield attrs.evolve(one, op=Op.STEP, machine=name)
            yield attrs.evolve(one, op=Op.STEP, table=name)


@pytest.mark.parametrize(
    ("sort", "wrong"),
    [(_OF_RUNTIME, Place.NODE), (_OF_NODE, Place.RUNTIME)],
    ids=["runtime", "node"],
)
def test_sorted_methods_are_those_whose_routes_take_the_record(sort, wrong):
    folds = [fold for fold in PROCESS_CLAIMS if fold.place is not wrong]
    taken = set()
    for record in records():
        found = list(sort.methods_of(record))
        assert found == [
            (at, name)
            for at, fold in enumerate(folds)
            for name, routes in fold.methods
            if any(route.takes(record) for route in routes)
        ], (record.k, name_of(record))
        taken |= {*found}
    methods = {(at, name) for at, fold in enumerate(folds) for name, _ in fold.methods}
    assert taken == methods
