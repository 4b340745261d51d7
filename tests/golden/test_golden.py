"""What the product does is what was recorded: a sample always, the rest in `make test-long`."""

import os
import subprocess
import sys

import pytest

from tests.golden.defects import DEFECTS, defective
from tests.golden.difference import differences, report
from tests.golden.form import GRADES
from tests.golden.store import FOLDER, PARTS, WEAKEST, read_part, recorded_parts, sample

pytestmark = pytest.mark.timeout(300)

LIMIT = 10 * 2**20
"""Bytes of all recordings."""

STRONG = [grade for grade in GRADES if grade != WEAKEST]

ALWAYS = sample()
LATER = [name for name in recorded_parts() if name not in set(ALWAYS)]


def check(name):
    found = differences(read_part(name), PARTS[name]())
    if found:
        pytest.fail(report(name, found), pytrace=False)


@pytest.mark.parametrize("name", ALWAYS)
def test_a_part_is_as_it_was_recorded(name):
    check(name)


@pytest.mark.long
@pytest.mark.parametrize("name", LATER)
def test_each_other_part_is_as_it_was_recorded(name):
    check(name)


def test_recordings_are_small():
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) <= LIMIT


@pytest.mark.parametrize("concern", DEFECTS)
def test_a_defect_in_each_concern_is_found_without_a_look_into_its_core(concern):
    defect = DEFECTS[concern]
    with defective(defect):
        now = PARTS[defect.part]()
    assert differences(read_part(defect.part), now, STRONG)


def test_a_process_that_hashes_differently_finds_no_difference():
    command = [sys.executable, "-m", "tests.golden", "check", "seed-plain-1", "scenario-SC-01"]
    other_hash = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    environment = {**os.environ, "PYTHONHASHSEED": other_hash}
    done = subprocess.run(  # noqa: S603 - ourselves
        command, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
