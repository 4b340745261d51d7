"""Which row of the catalogue each golden message is of, named by hand.

`golden-kinds.csv` was written from pages 04 and 09 of the protocol: for each message of
a scenario the row it is of, an answer by its request; nothing for what hyperties say to
each other.
"""

import csv
import json
from pathlib import Path

from specs.message import Message
from specs.message_catalogue import KINDS, Answers, Kind

FIXTURES = Path(__file__).parents[1] / "fixtures"

STEPS = [
    step
    for step in map(json.loads, (FIXTURES / "golden-steps.jsonl").read_text().splitlines())
    if step["k"] == "msg"
]
"""The messages of all scenarios."""

with (FIXTURES / "golden-kinds.csv").open() as lines:
    ORACLE = {(row["scenario"], int(row["step"])): row["kind"] for row in csv.DictReader(lines)}

MALFORMED = {("SC-09", 19)}
"""Sent to be refused: the answer to it is 400."""

ROWS: dict[str, Kind] = {kind.id: kind for kind in reversed(KINDS)}
"""The first row of each name."""


def place(step: dict) -> tuple[str, int]:
    """Return scenario and number of a step."""
    return step["sc"], step["n"]


def named(step: dict) -> str:
    """Return the name of a step, for a test's name."""
    return f"{step['sc']}-{step['n']}"


IN_CATALOGUE = [step for step in STEPS if ORACLE[place(step)]]
"""The messages of all scenarios that the catalogue knows."""


def class_of(step: dict, message: Message) -> type:
    """Return the class its body is read into; the refusal of an event is like any other."""
    kind = ROWS[ORACLE[place(step)]]
    if not message.is_response:
        return kind.body
    return (kind.answers or Answers(kind.body)).body(message.code)
