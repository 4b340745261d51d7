"""Every program of a document runs as it stands there, and prints what stands below it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import actors
from specs.limits import sync
from specs.limits.protocol import MAX_JSON_KEYS, MAX_JSON_TEXT
from specs.limits.sync import CHANGES_KEPT, VALUE_BYTES, VALUE_DEPTH, WRITES_WAITING
from tests.support.warm import run_warm

DOCS = Path(__file__).parents[1] / "docs"
PROGRAM = re.compile(r"```python\n(.*?)```\n+```output\n(.*?)```", re.DOTALL)
PARTS = {"index.md": 1, "policies.md": 1, "stubs.md": 2}
"""How many pieces of Python a page shows that are no programs."""

_TEST = re.compile(r"```python test\n(.*?)```", re.DOTALL)
PAGES = {path.name: path.read_text() for path in sorted(DOCS.glob("*.md"))}
PROGRAMS = {
    f"{name}-{number}": program
    for name, text in PAGES.items()
    for number, program in enumerate(PROGRAM.findall(text), 1)
}


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("program", "said"), PROGRAMS.values(), ids=PROGRAMS)
def test_the_program_prints_what_the_page_says(program, said, tmp_path):
    done = run_warm("-c", program, cwd=tmp_path)
    assert (done.stdout, done.stderr) == (said, "")


@pytest.mark.timeout(240)
def test_the_test_passes(tmp_path):
    (text,) = _TEST.findall(PAGES["application-tests.md"])
    (tmp_path / "test_page.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_page.py"]
    done = subprocess.run(  # noqa: S603 - the program is ours
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200
    )
    assert "1 passed" in done.stdout, done.stdout


def test_every_program_of_a_page_is_run():
    shown = {name: text.count("```python\n") for name, text in PAGES.items()}
    run = {name: len(PROGRAM.findall(text)) + PARTS.get(name, 0) for name, text in PAGES.items()}
    assert shown == run
    assert len(PROGRAMS) > 15


def test_every_public_name_is_explained():
    rows = re.findall(r"^\| (`.*?) \|", PAGES["api.md"], re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == actors.__all__


def kibibytes(size):
    return f"{size // 1024} KiB"


def test_the_page_of_data_objects_names_the_limits_that_hold():
    text = PAGES["data-objects.md"]
    texts, keys = f"{MAX_JSON_TEXT:,} characters", f"{MAX_JSON_KEYS} keys"
    for limit in (f"{VALUE_BYTES:,} bytes", texts, keys, f"more than {VALUE_DEPTH} levels"):
        assert limit in text
    assert f"{WRITES_WAITING} writes wait" in text
    rows = [line.split(" | ")[1:] for line in text.splitlines() if line.startswith("| ")]
    for kept, window in (
        (str(sync.CHILDREN_OF_OBJECT), f"`last`, at most {sync.WINDOW_CHILDREN:,} |"),
        (str(sync.CHILDREN_OF_CREATOR), "none |"),
        (kibibytes(sync.CHILDREN_BYTES), f"`bytes`, at most {kibibytes(sync.WINDOW_BYTES)} |"),
        (kibibytes(sync.CREATOR_BYTES), "none |"),
        (kibibytes(sync.CHILD_BYTES), f"{kibibytes(sync.CHILD_BYTES)} |"),
    ):
        assert [kept, window] in rows
    assert f"more than {CHANGES_KEPT} changes behind" in text
