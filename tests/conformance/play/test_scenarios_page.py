"""The document of scenario files lists all words and fields, and what it promises is played."""

import re
from pathlib import Path

import orjson
import pytest

from tests.conformance.play import script
from tests.conformance.play.player import play

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "scenarios.md").read_text()
NEW = ROOT / "tests" / "fixtures" / "new-scenarios.jsonl"
ROWS = [
    re.split(r"(?<!\\) *\| *", line.strip("| ")) for line in PAGE.splitlines() if line[:1] == "|"
]


def rows_of(heading):
    """Rows of the table whose first column is headed so."""
    begin = next(n for n, row in enumerate(ROWS) if row[0] == heading)
    below = ROWS[begin + 2 :]
    end = next((n for n, row in enumerate(below) if set(row[0]) == {"-"}), len(below) + 1)
    return {row[0].strip("`"): row[1] for row in below[: end - 1 if end <= len(below) else end]}


@pytest.mark.parametrize("kind", ["given", "do", "fault"])
def test_the_page_lists_every_word_with_its_fields(kind):
    listed = rows_of(f"`{kind}`")
    assert set(listed) == set(script.WORDS[kind])
    for word in script.WORDS[kind]:
        reported = re.findall(r"`(\w+)`( \(optional\))?: ", listed[word])
        optional = {name: one for name, (one, _) in script.fields_of(kind, word).items()}
        assert {name: bool(mark) for name, mark in reported} == optional


def test_the_page_lists_every_field_of_a_step():
    listed = rows_of("`k`")
    for word in script.WORDS["k"]:
        assert set(re.findall(r"`(\w+)`", listed[word])) >= script.fields_of("k", word).keys() - {
            "n"
        }


def test_the_page_lists_every_macro():
    assert {name: url.strip("`") for name, url in rows_of("macro").items()} == script.MACROS


async def test_the_example_of_the_page_passes(autojump_clock):
    (block,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    (scenario,) = script.read_script_lines("page", block.encode().splitlines())
    assert await play(scenario) is None


@pytest.mark.parametrize("name", ["link-cut", "observer-vanishes"])
async def test_a_scenario_written_from_the_page_passes(autojump_clock, name):
    scenario = next(one for one in script.read_script(NEW) if one.name == name)
    assert await play(scenario) is None


@pytest.mark.parametrize(
    ("name", "fault"), [("link-cut", "link cut"), ("observer-vanishes", "peer vanishes")]
)
async def test_without_its_fault_it_differs_behind_it(autojump_clock, name, fault):
    lines = [line for line in NEW.read_bytes().splitlines() if orjson.loads(line)["sc"] == name]
    broken = next(n for n, line in enumerate(lines) if orjson.loads(line).get("fault") == fault)
    first = next(orjson.loads(line)["n"] for line in lines[broken:] if b'"n"' in line)
    (scenario,) = script.read_script_lines("new", lines[:broken] + lines[broken + 1 :])
    assert (await play(scenario)).number == first
