"""Each feature has a row with its state and its test; the page shows all of them."""

import ast
from collections import Counter
from functools import cache

import pytest

from tests.defects.planting import source_copy
from tests.features.page import FEATURES, REMOVALS, ROOT, State, page
from tests.features.removed import is_missed, replaced

PRESENT = {State.BUILT, State.PARTLY}
AREAS = sorted({one.area for one in FEATURES.values()})


@cache
def functions(file):
    """The tests of a file, with what is said of each, and of the file."""
    tree = ast.parse((ROOT / file).read_text())
    module = ast.get_docstring(tree) or ""
    return {
        node.name: f"{module}\n{ast.get_docstring(node) or ''}"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_the_page_is_up_to_date():
    """If not: python -m tests.features.page > docs/features.md."""
    assert (ROOT / "docs" / "features.md").read_text() == page()


@pytest.mark.parametrize("area", AREAS)
def test_of_each_area_all_features_are_listed(area):
    numbers = sorted(int(one.id[-2:]) for one in FEATURES.values() if one.area == area)
    assert numbers == list(range(1, len(numbers) + 1))


def test_every_feature_that_is_there_is_named_by_its_test():
    unnamed = [
        one.id
        for one in FEATURES.values()
        if one.state in PRESENT
        and one.id
        not in functions(one.test.partition("::")[0]).get(one.test.rpartition("::")[2], "")
    ]
    assert unnamed == []


def test_what_is_not_all_there_is_said():
    assert [
        one.id for one in FEATURES.values() if (one.state is State.BUILT) == bool(one.lacks)
    ] == []


def test_nothing_that_every_implementation_needs_is_not_there():
    assert "P0" not in {one.priority for one in FEATURES.values() if one.state not in PRESENT}


def test_a_feature_that_is_not_there_has_no_test():
    assert [one.id for one in FEATURES.values() if (one.state in PRESENT) != bool(one.test)] == []


def test_sixty_features_were_removed():
    assert len(REMOVALS) >= 60


def test_removals_are_of_features_that_are_there_and_change_what_is_there():
    twice = [id_ for id_, times in Counter(one.feature for one in REMOVALS).items() if times > 1]
    assert twice == []
    for one in REMOVALS:
        assert FEATURES[one.feature].state in PRESENT, one
        assert compile(replaced(one), one.file, "exec")


@pytest.fixture(scope="module")
def code():
    with source_copy() as copy:
        yield copy


@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.parametrize("one", REMOVALS, ids=[one.feature for one in REMOVALS])
def test_without_a_feature_its_test_fails(one, code):
    failed, said = is_missed(one, code)
    assert failed, said
