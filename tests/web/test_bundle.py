"""The files of the browser runtime that are committed are those that its sources make."""

import gzip
import re
import subprocess
import sys

import pytest

from fsm.drawing.draw import javascript
from fsm.machine_list import MACHINES
from specs.schema.javascript import constants
from tests.web.golden import machines_of_the_browser_runtime
from tests.web.npm import WEB, npm_run

KIBIBYTE = 1024
FIRST, SECOND, THIRD = "protofly.js", "protofly-objects.js", "protofly-links.js"


def test_the_machines_of_the_browser_runtime_are_the_tables():
    written = (WEB / "src" / "machines.js").read_text()
    names = machines_of_the_browser_runtime()
    assert "observer_copy" in names
    assert written == javascript(MACHINES[name] for name in names)


def test_the_command_of_the_specification_writes_limits_and_words_anywhere(tmp_path):
    command = [sys.executable, "-m", "specs", "constants", "-o", str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    assert said.splitlines() == [str(tmp_path / "constants.js")]
    assert (tmp_path / "constants.js").read_text() == constants()


def test_the_limits_and_words_of_the_browser_runtime_are_those_of_the_specification():
    written = (WEB / "src" / "constants.js").read_text().splitlines()
    assert "export const REPLY_TIMEOUT = 15.0;" in written
    assert written == [line for line in constants().splitlines() if line in written]


@pytest.mark.parametrize("bundle", [FIRST, SECOND, THIRD])
def test_a_bundle_is_small_on_the_wire(bundle):
    assert len(gzip.compress((WEB / bundle).read_bytes(), 9)) <= 32 * KIBIBYTE


def test_the_first_bundle_imports_nothing_but_the_others_when_they_are_used():
    text = (WEB / FIRST).read_text()
    found = re.findall(r"\bimport\b(?!\.meta\.url|\(\w+\))(.[^)]*.)", text)
    assert set(found) == {f'("./{SECOND}")', f'("./{THIRD}")'}


@pytest.mark.parametrize(("bundle", "earlier"), [(SECOND, {FIRST}), (THIRD, {FIRST, SECOND})])
def test_a_later_bundle_imports_nothing_but_earlier_ones(bundle, earlier):
    text = (WEB / bundle).read_text()
    assert set(re.findall(r"\bfrom?\"([^\"]*)\"", text)) == {f"./{name}" for name in earlier}
    assert "import(" not in text


@pytest.mark.timeout(240)
def test_the_bundles_are_made_of_the_sources():
    files = [WEB / FIRST, WEB / SECOND, WEB / THIRD]
    committed = [file.read_bytes() for file in files]
    done = npm_run("build")
    made = [file.read_bytes() for file in files]
    for file, content in zip(files, committed, strict=True):
        file.write_bytes(content)
    assert done.returncode == 0, done.stderr
    assert made == committed


@pytest.mark.timeout(240)
def test_types_of_the_sources_and_the_published_types_agree():
    done = npm_run("check")
    assert done.returncode == 0, done.stdout
