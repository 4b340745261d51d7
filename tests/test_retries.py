"""The table of repetitions in `docs/architecture.md` names places, tests and limits that exist."""

import re
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
SECTION = (
    (TOP / "docs" / "architecture.md").read_text().split("## Repetitions\n")[1].split("\n## ")[0]
)
ROWS = [
    [re.findall("`([^`]+)`", cell) for cell in line.strip("|").split(" | ")[2:]]
    for line in SECTION.splitlines()
    if line.startswith("| ") and "`" in line
]
LIMIT = re.compile(r"^([A-Z_]+_(?:ATTEMPTS|TRIES|RETRY)|REASSERTIONS): Final", re.MULTILINE)


def limits():
    """Return the names of all limits of repetitions."""
    files = (TOP / "specs" / "limits").glob("*.py")
    return {name for file in files for name in LIMIT.findall(file.read_text())}


def test_each_limit_of_repetitions_is_in_the_table():
    assert limits() <= {name for names, _, _ in ROWS for name in names}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][0])
def test_each_repetition_has_a_place_and_a_test(row):
    _, places, tests = row
    assert places
    assert tests
    assert all((TOP / place).is_file() for place in places)
    for test in tests:
        file, _, name = test.partition("::")
        assert f"def {name}(" in (TOP / file).read_text()
