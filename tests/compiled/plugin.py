"""Tests with compiled modules: which modules are compiled, and what is left out."""

import runpy
from collections.abc import Mapping
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES

import pytest

from bench.compiled import ROOT

COMPILED = {
    name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): ROOT / name
    for name in runpy.run_path(str(ROOT / "setup.py"))["COMPILED"]
}
"""The modules, and their sources."""

LEFT_OUT: Mapping[str, tuple[str, ...]] = {
    "functions of compiled modules are replaced, which others that are compiled call directly": (
        "tests/conformance/test_mutants.py",
        "tests/specs/dialects/test_dialect.py::test_a_link_learns_the_same_whether_or_not_it_has_seen_the_like",
        "tests/transports/test_codec_plain.py::test_a_peer_of_upstream_is_read_and_learnt_from_alike",
    ),
}
"""Beginnings of the names of tests, by what a compiled module cannot do."""


def pytest_configure():
    """Refuse to run with a module whose source was imported."""
    files = {name: str(import_module(name).__file__) for name in COMPILED}
    sources = [name for name, file in files.items() if not file.endswith(EXTENSION_SUFFIXES[0])]
    if sources:
        raise pytest.UsageError(f"not compiled: {', '.join(sources)}")


def pytest_report_header():
    lines = [f"{len(COMPILED)} compiled modules; left out:"]
    for reason, tests in LEFT_OUT.items():
        lines += [f"  {reason}:", *(f"    {one}" for one in tests)]
    return lines


def pytest_collection_modifyitems(config, items):
    """Leave out what is named; a name that no test of a collected file has is an error."""
    names = [one for tests in LEFT_OUT.values() for one in tests]
    files = {item.nodeid.partition("::")[0] for item in items}
    left_out = [item for item in items if item.nodeid.startswith(tuple(names))]
    for name in names:
        is_there = any(item.nodeid.startswith(name) for item in left_out)
        if name.partition("::")[0] in files and not is_there:
            raise pytest.UsageError(f"no test is named {name}")
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
