"""The routing core (BUS-01..04, I-B1..I-B5)."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.bus.listeners import ANY, RoutingCore
from specs.errors import SpecError
from specs.trace import Op


@attrs.frozen
class Ear:
    name: str


X, Y, Z = Ear("x"), Ear("y"), Ear("z")


def core(*, has_any=True):
    return RoutingCore(has_any=has_any)


def test_only_the_literal_address_is_found():
    table = core()
    table.add("a/b", X, "registry")
    assert table.find("a/b") == (X,)
    assert table.find("a") == table.find("a/b/c") == ()


def test_all_listeners_are_found_in_the_order_they_came():
    table = core()
    for ear in (Y, X, Z):
        table.add("a", ear, "registry")
    assert table.find("a") == (Y, X, Z)


def test_adding_twice_keeps_one_row_in_its_place():
    table = core()
    table.add("a", X, "registry")
    table.add("a", Y, "registry")
    assert table.add("a", X, "registry") == []
    assert table.find("a") == (X, Y)


def test_removing_is_idempotent_and_names_the_writer():
    table = core()
    table.add("a", X, "loader")
    (gone,) = table.remove("a", X, "registry")
    assert (gone.op, gone.key, gone.val, gone.writer) == (Op.DEL, "a", "x", "registry")
    assert table.remove("a", X, "registry") == []


def test_all_listeners_of_an_address_can_be_removed_at_once():
    table = core()
    table.add("a", X, "w")
    table.add("a", Y, "w")
    assert len(table.remove("a", None, "w")) == 2
    assert len(table) == 0


def test_a_listener_that_is_gone_leaves_all_its_addresses():
    table = core()
    table.add("a", X, "w")
    table.add("b", X, "w")
    table.add("b", Y, "w")
    assert [row.key for row in table.remove_listener(X, "w")] == ["a", "b"]
    assert table.find("b") == (Y,)


def test_a_mini_bus_gives_the_rest_to_the_catch_all():
    table = core()
    table.add(ANY, X, "loader")
    table.add("a", Y, "loader")
    assert table.find_routed("elsewhere", "a") == (Y,)
    assert table.find_routed("elsewhere", "b") == (X,)


@pytest.mark.parametrize("address", ["route", "to", ANY])
def test_all_listeners_of_an_address_are_found_by_each_lookup(address):
    """I-B2."""
    table = core()
    for ear in (Y, X):
        table.add(address, ear, "w")
    assert table.find_routed("route", "to") == (Y, X)


def test_the_route_comes_before_the_target():
    table = core()
    table.add("handler/conn/1", X, "handler")
    table.add("b", Y, "handler")
    assert table.find_routed("handler/conn/1", "b") == (X,)


def test_a_message_bus_has_no_catch_all():
    with pytest.raises(SpecError):
        core(has_any=False).add(ANY, X, "loader")


_moves = st.tuples(st.booleans(), st.sampled_from("ab"), st.sampled_from([X, Y, Z]))


@given(st.lists(_moves))
def test_the_table_is_a_list_of_rows(moves):
    table, model = core(), []
    for is_add, address, ear in moves:
        if is_add:
            table.add(address, ear, "w")
            model += [] if (address, ear) in model else [(address, ear)]
        else:
            table.remove(address, ear, "w")
            model = [row for row in model if row != (address, ear)]
    assert [*table.find("a")] == [ear for address, ear in model if address == "a"]
    assert len(table) == len(model)
