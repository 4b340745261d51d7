"""Every program of the page on data objects runs as it stands there, and prints what it says."""

from pathlib import Path

import pytest

from specs.limits.protocol import MAX_JSON_KEYS, MAX_JSON_TEXT
from specs.limits.sync import CHANGES_KEPT, VALUE_BYTES, VALUE_DEPTH, WRITES_WAITING
from tests.support.warm import run_warm
from tests.test_embedding_tutorial import PROGRAM

PAGE = Path(__file__).parents[1] / "docs" / "data-objects.md"
TEXT = PAGE.read_text()
PROGRAMS = PROGRAM.findall(TEXT)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("program", "said"), PROGRAMS, ids=range(1, len(PROGRAMS) + 1))
def test_the_program_prints_what_the_page_says(program, said, tmp_path):
    done = run_warm("-c", program, cwd=tmp_path)
    assert (done.stdout, done.stderr) == (said, "")


def test_every_program_of_the_page_is_run():
    assert TEXT.count("```python") == len(PROGRAMS) > 0


def test_the_page_names_the_limits_that_hold():
    texts, keys = f"{MAX_JSON_TEXT:,} characters", f"{MAX_JSON_KEYS} keys"
    for limit in (f"{VALUE_BYTES:,} bytes", texts, keys, f"more than {VALUE_DEPTH} levels"):
        assert limit in TEXT
    assert f"{WRITES_WAITING} writes wait" in TEXT
    assert f"more than {CHANGES_KEPT} changes behind" in TEXT
