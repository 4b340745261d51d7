"""The recordings: one compressed text for each part, and one more for what its cores did.

A line `=grade`, a line `-subject`, then a line for each thing that happened: the milliseconds since
the thing before, if it was not at the same time, a space, and what happened.
"""

import lzma
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from tests.golden.compositions import COMPOSITIONS, record_composition
from tests.golden.form import GRADES, Lines, Part
from tests.golden.runs import record_run
from tests.golden.scenarios import record_scenario, scenario_names

FOLDER: Final = Path(__file__).parent / "recordings"

_FILTERS: Final = (
    {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0},
)

WEAKEST: Final = "cores"
"""The grade in a file of its own: it is recorded anew more often."""

_SEEDS: Final = (
    *(("plain", seed) for seed in range(120)),
    *(("group", seed) for seed in range(1000, 1040)),
    *(("stored", seed) for seed in range(2000, 2040)),
)


def _parts() -> Iterator[tuple[str, Callable[[], Part]]]:
    for number, (kind, seed) in enumerate(_SEEDS):
        # Cores are two thirds of a recording: of a third of the seeds they are enough.
        has_cores = number % 3 == 0
        yield f"seed-{kind}-{seed}", partial(record_run, kind, seed, has_cores=has_cores)
    for name in scenario_names():
        yield f"scenario-{name}", partial(record_scenario, name)
    for name in COMPOSITIONS:
        yield f"composition-{name}", partial(record_composition, name)


PARTS: Final[Mapping[str, Callable[[], Part]]] = dict(_parts())
"""What is recorded, by name: each is run anew by a call."""


def recorded_parts() -> list[str]:
    """Return the names of the parts that have a recording."""
    return [name for name in PARTS if _file(name).exists()]


def sample() -> list[str]:
    """Return the parts that every run of the tests checks: a tenth, of the seeds a twentieth."""
    return [part for part in recorded_parts()[::10] if not re.fullmatch("seed-.*[13579]0", part)]


def _file(name: str, grade: str = "") -> Path:
    return FOLDER / (f"{name}.{grade}.xz" if grade == WEAKEST else f"{name}.xz")


def read_part(name: str) -> Part:
    """Return the recording of a part.

    Raises:
        FileNotFoundError: It has none.
    """
    part = _read(_file(name))
    weakest = _file(name, WEAKEST)
    return part | _read(weakest) if weakest.exists() else part


def write_part(name: str, part: Part) -> None:
    """Keep the recording of a part."""
    FOLDER.mkdir(exist_ok=True)
    strong = {grade: part[grade] for grade in GRADES if grade in part and grade != WEAKEST}
    _write(_file(name), strong)
    if WEAKEST in part:
        _write(_file(name, WEAKEST), {WEAKEST: part[WEAKEST]})
    else:
        _file(name, WEAKEST).unlink(missing_ok=True)


def _write(file: Path, part: Part) -> None:
    file.write_bytes(lzma.compress(_text(part).encode(), filters=list(_FILTERS)))


def _text(part: Part) -> str:
    lines: list[str] = []
    for grade, subjects in part.items():
        lines.append(f"={grade}")
        for subject, happened in sorted(subjects.items()):
            lines.append(f"-{_flat(subject)}")
            before = 0
            for at, line in happened:
                lines.append(f"{at - before or ''} {_flat(line)}")
                before = at
    return "\n".join(lines)


def _flat(text: str) -> str:
    return text.replace("\n", "\\n").encode(errors="replace").decode()


def _read(file: Path) -> Part:
    part: Part = {}
    subjects: dict[str, Lines] = {}
    happened: Lines = []
    at = 0
    for line in lzma.decompress(file.read_bytes()).decode().split("\n"):
        if line.startswith("="):
            subjects = part[line[1:]] = {}
        elif line.startswith("-") and not line[1:2].isdigit():
            happened, at = subjects.setdefault(line[1:], []), 0
        elif line:
            since, _, text = line.partition(" ")
            at += int(since or 0)
            happened.append((at, text))
    return part
