"""A stand-in of another shape than the function of the product is refused."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from actors.runtime.bus.messages import Deliveries
from tests.support.command import ROOT
from tests.support.shape import Stand, assert_same_shape


def test_a_stand_in_that_cannot_be_called_as_the_function_is_refused():
    with pytest.raises(AssertionError, match="cannot stand in"):
        assert_same_shape(Deliveries.deliver, lambda *_: True)


def test_one_of_the_same_shape_is_taken():
    assert_same_shape(Deliveries.deliver, lambda *_, **__: True)


def test_what_is_no_function_is_not_looked_at():
    assert_same_shape(None, lambda: None)


class Door:
    def open(self, key):
        return key


def test_a_stand_in_that_nothing_has_called_is_known():
    stand = Stand()
    stand.setattr(Door, "open", lambda _, key: f"other {key}")
    assert [what.endswith("Door'>.open") for what in stand.silent] == [True]
    assert Door().open("a") == "other a"
    assert not stand.silent
    stand.undo()
    assert Door().open("a") == "a"


def test_a_stand_in_of_another_shape_is_refused_for_an_object_too():
    stand, door = Stand(), Door()
    with pytest.raises(AssertionError, match="cannot stand in"):
        stand.setattr(door, "open", lambda: None)
    stand.setattr(door, "open", lambda key: key)
    stand.undo()


# ---- constants


PRODUCT = ("actors", "fsm", "spark", "specs", "transports")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def constants_patched(text):
    """Yield the module and the name of each constant that a test replaces."""
    tree, places = ast.parse(text), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            inside = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            places |= {one.asname or one.name: inside + one.name for one in node.names}
    for node in ast.walk(tree):
        is_patch = isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".setattr")
        match node.args if is_patch else ():
            case [ast.Name(id=place), ast.Constant(value=str(name)), *_]:
                if name.strip("_").isupper() and place in places:
                    yield places[place], name


def is_read(place, name):
    """Say whether functions of a module read its constant each time, or others by its module."""
    tree = ast.parse(Path(import_module(place).__file__).read_text())
    functions = [one for one in ast.walk(tree) if isinstance(one, FUNCTIONS)]
    names = (node for one in functions for node in ast.walk(one) if isinstance(node, ast.Name))
    if any(node.id == name for node in names):
        return True
    by_module = re.compile(rf"\b[a-z_]+\.{name}\b")
    files = (file for one in PRODUCT for file in (Path(ROOT) / one).rglob("*.py"))
    return any(by_module.search(file.read_text()) for file in files)


def test_a_constant_that_a_test_replaces_is_read_where_it_is_replaced():
    """One that is imported by its name elsewhere stays as it is there: the test tests nothing."""
    texts = (file.read_text() for file in sorted((Path(ROOT) / "tests").rglob("*.py")))
    patched = {one for text in texts if ".setattr(" in text for one in constants_patched(text)}
    assert patched
    assert [one for one in patched if not is_read(*one)] == []
