"""Every feature of the runtime's own areas is named by a test that shows it.

A range such as `BUS-01..14` names none of what is between its ends.
"""

import csv
from pathlib import Path

import pytest

from tests.support.feature_index import named

FIXTURES = Path(__file__).parent / "fixtures"
FEATURES = {
    row["id"]: row["priority"]
    for row in csv.DictReader((FIXTURES / "features.csv").read_text().splitlines())
}
"""All ids, with their priority, as the features of the protocol list them."""

ASKED = {id_ for id_, priority in FEATURES.items() if priority in {"P0", "P1"}}
STRICT = {"MSG", "ADR", "BUS", "REG", "RT", "HYP", "ALC", "RES", "STB", "CAT", "P2P", "PFY"}

NOT_BUILT = {
    "REG-05": "each component has a sandbox of its own: there is none to be looked for",
}
"""What there is none of in these areas, and why."""

NOT_YET = set((FIXTURES / "features-not-yet.txt").read_text().split())
"""Features of other areas that no test names; a name that is found must go from here."""


def area(id_):
    return id_.rpartition("-")[0]


def test_every_feature_of_the_runtime_is_named_by_a_test():
    strict = {id_ for id_ in ASKED if area(id_) in STRICT}
    assert {id_ for id_ in strict if not named("tests").get(id_)} - set(NOT_BUILT) == set()


def test_the_features_that_no_test_names_are_known_and_become_fewer():
    others = {id_ for id_ in ASKED if area(id_) not in STRICT}
    assert {id_ for id_ in others if not named("tests").get(id_)} == NOT_YET


def test_no_excuse_is_left_for_what_is_there():
    assert [id_ for id_ in NOT_BUILT if named("tests").get(id_)] == []


@pytest.mark.parametrize("one", sorted({area(id_) for id_ in FEATURES}))
def test_of_each_area_all_features_are_listed(one):
    numbers = sorted(int(id_[-2:]) for id_ in FEATURES if area(id_) == one)
    assert numbers == list(range(1, len(numbers) + 1))


def test_priorities_are_known_and_all_strict_areas_are_there():
    assert set(FEATURES.values()) == {"P0", "P1", "P2"}
    assert {area(id_) for id_ in FEATURES} > STRICT
