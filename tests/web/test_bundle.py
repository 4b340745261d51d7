"""The files of the browser runtime that are committed are those that its sources make."""

import gzip
import re

import pytest

from fsm.drawing.draw import javascript
from fsm.machine_list import MACHINES
from specs.schema.javascript import constants
from tests.web.npm import WEB, npm_run

KIBIBYTE = 1024


def test_the_machines_of_the_browser_runtime_are_the_tables():
    written = (WEB / "src" / "machines.js").read_text()
    assert written == javascript(MACHINES.values())


def test_the_limits_and_words_of_the_browser_runtime_are_those_of_the_specification():
    assert (WEB / "src" / "constants.js").read_text() == constants()


def test_the_bundle_takes_at_most_40_kib_on_the_wire():
    assert len(gzip.compress((WEB / "protofly.js").read_bytes(), 9)) <= 40 * KIBIBYTE


def test_the_bundle_imports_nothing():
    text = (WEB / "protofly.js").read_text()
    assert re.findall(r"\bimport\b(?!\.meta\.url|\(\w+\))", text) == []


@pytest.mark.timeout(240)
def test_the_bundle_is_made_of_the_sources():
    committed = (WEB / "protofly.js").read_bytes()
    done = npm_run("build")
    made = (WEB / "protofly.js").read_bytes()
    (WEB / "protofly.js").write_bytes(committed)
    assert done.returncode == 0, done.stderr
    assert made == committed


@pytest.mark.timeout(240)
def test_types_of_the_sources_and_the_published_types_agree():
    done = npm_run("check")
    assert done.returncode == 0, done.stdout
