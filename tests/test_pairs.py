"""The selection of cases loses no pair, and is small."""

from itertools import combinations, permutations, product

import pytest

from tests.support.pairs import all_pairs, covering

COLUMNS = {
    "two": ("ab", "xyz"),
    "many": ("abc", "123456", "xyz", "+-"),
    "equal values in several columns": ((0, 1, 2), (0, 1, 2), (0, 1, 2), (0, 1, 2)),
    "a column of one value": ("a", "12", "xyz"),
}


@pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS)
def test_every_two_values_of_two_columns_stand_together_in_a_case(columns):
    cases = all_pairs(*columns)
    for one, other in combinations(range(len(columns)), 2):
        together = {(case[one], case[other]) for case in cases}
        assert together == set(product(columns[one], columns[other]))


@pytest.mark.parametrize(("name", "most"), [("two", 6), ("many", 20), ("a column of one value", 6)])
def test_there_are_few_more_cases_than_the_two_longest_columns_have_pairs(name, most):
    assert len(all_pairs(*COLUMNS[name])) <= most


def test_a_selection_is_of_the_table_and_always_the_same():
    columns = COLUMNS["many"]
    assert set(all_pairs(*columns)) < set(product(*columns))
    assert all_pairs(*columns) == all_pairs(*columns)


@pytest.mark.parametrize("together", [1, 2, 3])
def test_facts_that_meet_in_no_case_are_not_waited_for(together):
    """Each case of a table of orders says who comes before whom."""
    orders = list(permutations("abcde"))

    def befores(order):
        return [order.index(one) < order.index(other) for one, other in combinations("abcde", 2)]

    chosen = covering(orders, befores, together)
    met, wanted = (
        {meeting for order in some for meeting in combinations(enumerate(befores(order)), together)}
        for some in (chosen, orders)
    )
    assert met == wanted
    assert len(chosen) < len(orders)
