"""Which tests cite which features: read from the docstrings of the tests."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
_RANGE = re.compile(r"\b([A-Z][A-Z0-9]*)-(\d\d)\.\.(?:[A-Z][A-Z0-9]*-)?(\d\d)\b")
_ID = re.compile(r"\b(?:[A-Z][A-Z0-9]*-\d\d|[A-Z]\d{1,2}|I-[A-Z]\d{1,2})\b")


def _tests(folder: str) -> Iterator[tuple[str, str]]:
    """Every test below a folder, by module and name, and what is said of it."""
    for path in sorted((ROOT / folder).rglob("test_*.py")):
        tree = ast.parse(path.read_text())
        module = ast.get_docstring(tree) or ""
        for node in ast.walk(tree):
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if is_function and node.name.startswith("test_"):
                said = ast.get_docstring(node) or ""
                yield f"{path.stem}.{node.name}", f"{module}\n{said}"


def _cited(said: str) -> set[str]:
    """Return the ids in a text, those between the ends of `POL-06..POL-12` too."""
    between = {
        f"{area}-{number:02}"
        for area, first, last in _RANGE.findall(said)
        for number in range(int(first), int(last) + 1)
    }
    return between | set(_ID.findall(said))


@cache
def named(folder: str) -> dict[str, list[str]]:
    """Return the tests that name each id: one within a range may be shown by none of it."""
    index: defaultdict[str, list[str]] = defaultdict(list)
    for name, said in _tests(folder):
        for id_ in sorted(set(_ID.findall(_RANGE.sub("", said)))):
            index[id_].append(name)
    return dict(index)


@cache
def known_tests(folder: str) -> frozenset[str]:
    return frozenset(name for name, _ in _tests(folder))


@cache
def citations(folder: str) -> dict[str, list[str]]:
    """Return the tests that cite each id."""
    index: defaultdict[str, list[str]] = defaultdict(list)
    for name, said in _tests(folder):
        for id_ in sorted(_cited(said)):
            index[id_].append(name)
    return dict(index)
