"""What a sandbox process imports: imports take most of the time of its start."""

import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from actors.pipe.code import hyperty_code, stub_code

ROOT = Path(__file__).parents[3]

PROGRAM = """
import json, sys
stub, hyperty, sys.path[len(sys.path):] = json.loads(sys.argv[1])
from actors.sandbox.__main__ import _import_one
for own in (stub, hyperty):
    for one in own:
        _import_one(*one.split(":"))
    print(json.dumps(sorted(sys.modules)))
"""
"""Imports what a process for stubs imports, then what one for hyperties does in addition."""

OF_RUNTIMES = {"cryptography", "httpcore", "joserfc", "actors.runtime.link_guard"}
"""The keys of a runtime, and what fetches those of others: no sandbox process has any."""


@pytest.fixture(scope="module")
def imported():
    given = orjson.dumps([stub_code().own, hyperty_code().own, [*stub_code().places, str(ROOT)]])
    command = [sys.executable, "-I", "-S", "-B", "-c", PROGRAM, given.decode()]
    ended = subprocess.run(command, check=True, capture_output=True, timeout=60)  # noqa: S603 - our own
    return [set(orjson.loads(line)) for line in ended.stdout.splitlines()]


def test_no_sandbox_process_imports_what_keys_need(imported):
    for one in imported:
        assert one.isdisjoint(OF_RUNTIMES)
