"""Every program of the tutorial runs as it stands there, and prints what stands below it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import actors
from tests.support.warm import run_warm

PAGE = Path(__file__).parents[1] / "docs" / "embedding.md"
PROGRAM = re.compile(r"```python\n(.*?)```\n+```output\n(.*?)```", re.DOTALL)
_TEST = re.compile(r"```python test\n(.*?)```", re.DOTALL)
TEXT = PAGE.read_text()
PROGRAMS = PROGRAM.findall(TEXT)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("program", "said"), PROGRAMS, ids=range(1, len(PROGRAMS) + 1))
def test_the_program_prints_what_the_page_says(program, said, tmp_path):
    done = run_warm("-c", program, cwd=tmp_path)
    assert (done.stdout, done.stderr) == (said, "")


@pytest.mark.timeout(240)
def test_the_test_passes(tmp_path):
    (text,) = _TEST.findall(TEXT)
    (tmp_path / "test_page.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_page.py"]
    done = subprocess.run(  # noqa: S603 - the program is ours
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200
    )
    assert "1 passed" in done.stdout, done.stdout


def test_every_program_of_the_page_is_run():
    assert TEXT.count("```python") == len(PROGRAMS) + 1


def test_every_public_name_is_explained():
    _, names = TEXT.split("## All names")
    rows = re.findall(r"^\| (`.*?) \|", names, re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == actors.__all__
