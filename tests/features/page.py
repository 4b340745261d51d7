"""The page of features: one row each, with the test that fails without it.

`python -m tests.features.page > docs/features.md` writes it from `features.csv`, which names for
each feature its state and the test, and from `removals.toml`, which removes some of them.
"""

import csv
import sys
import tomllib
from collections.abc import Iterator
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Final

import attrs

ROOT: Final = Path(__file__).parents[2]

_AREAS: Final = {
    "MSG": "Messages", "ADR": "Addresses", "BUS": "Buses", "REG": "Registry of a runtime",
    "RES": "Resolution of addresses", "RT": "Runtime", "HYP": "Hyperties",
    "ALC": "Allocation of addresses", "STB": "Stubs", "CAT": "Catalogue",
    "P2P": "Direct links", "SYN": "Data objects", "MN": "Message node", "POL": "Policies",
    "CON": "Back ends of a node", "PFY": "Protocol on the fly", "OBS": "Evidence",
}  # fmt: skip

_HEAD: Final = """# Features

The features of the protocol, and for each the test that shows it. This page is the output of
`python -m tests.features.page`. Every implementation needs the features of priority P0, most need
those of P1, some those of P2. State: `built`, `partly`, `not` (built), or `left` (out, after it was
built). A row with ✂ was tried: its test fails if the feature is removed (`make soak`). `R`, `D` and
`O` stand for a runtime, a domain and an object.
"""


class State(StrEnum):
    """How much of a feature there is."""

    BUILT = "built"
    PARTLY = "partly"
    NOT = "not"
    LEFT = "left"


@attrs.frozen(kw_only=True)
class Feature:
    """A feature of the protocol.

    Attributes:
        test: File and name of the test that fails without it; empty: there is none.
        lacks: What is not there, as a sentence; empty if all of it is built.
    """

    id: str
    name: str
    priority: str
    state: State = attrs.field(converter=State)
    test: str
    lacks: str

    @property
    def area(self) -> str:
        return self.id.rpartition("-")[0]


@attrs.frozen(kw_only=True)
class Removal:
    """A change of the code that takes a feature away.

    Attributes:
        feature: Its id.
        file: The changed file.
        old: Text that stands in it once.
        new: What takes its place.
    """

    feature: str
    file: str
    old: str
    new: str


def _read() -> Iterator[Feature]:
    lines = (Path(__file__).parent / "features.csv").read_text().splitlines()
    for row in csv.DictReader(lines):
        yield Feature(**row)


FEATURES: Final = {one.id: one for one in _read()}
"""All features, by id."""

REMOVALS: Final = tuple(
    Removal(**one)
    for one in tomllib.loads((Path(__file__).parent / "removals.toml").read_text())["removal"]
)
"""The removals that were tried, each with the test of its feature."""


def page() -> str:
    """Return the page."""
    tried = {one.feature for one in REMOVALS}
    states = [one.state for one in FEATURES.values()]
    counts = ", ".join(f"{states.count(state)} {state}" for state in State)
    parts = [_HEAD, f"{len(FEATURES)} features: {counts}. {len(tried)} removals were tried.\n"]
    for area, features in groupby(FEATURES.values(), lambda one: one.area):
        rows = [_row(one, is_tried=one.id in tried) for one in features]
        parts.append(f"## {_AREAS[area]}\n\n{_TITLES}\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


_TITLES: Final = "| id | feature | priority | state | shown by |\n|---|---|---|---|---|"


def _row(one: Feature, *, is_tried: bool) -> str:
    shown = ""
    if one.test:
        file, _, name = one.test.partition("::")
        shown = f"[{name}](../{file})" + (" ✂" if is_tried else "")
    said = f"{one.state}: {one.lacks}" if one.lacks else str(one.state)
    return f"| {one.id} | {one.name} | {one.priority} | {said} | {shown} |"


if __name__ == "__main__":
    sys.stdout.write(page())
