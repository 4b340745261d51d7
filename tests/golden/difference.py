"""In what a run differs from its recording, for people to read."""

import math
import tomllib
from collections.abc import Collection, Iterator, Mapping
from difflib import unified_diff
from functools import cache
from pathlib import Path
from typing import Final

import attrs

from tests.golden.form import GRADES, Lines, Part

LATE: Final = 100
"""Milliseconds by which something may come earlier or later: no timer is as short."""

_WORDS: Final = Path(__file__).with_name("words.toml")

_SUBJECTS: Final = 3
"""Subjects of a grade that are shown, those that differ first."""

_ROWS: Final = 14
"""Lines of a subject that are shown."""

_WIDTH: Final = 300


@attrs.frozen
class Difference:
    """A subject that is otherwise.

    Attributes:
        at: Milliseconds of virtual time at which it is otherwise for the first time.
        rows: Of the recording with `-`, of this run with `+`.
    """

    grade: str
    subject: str
    at: int
    rows: tuple[str, ...]


def differences(recorded: Part, now: Part, grades: Collection[str] = GRADES) -> list[Difference]:
    """Return in what subjects a run differs from its recording; those of chosen grades only."""
    found = []
    for grade in GRADES:
        if grade not in grades or grade not in recorded:
            continue
        before, after = _renamed(recorded[grade]), now.get(grade, {})
        for subject in sorted({*before, *after}):
            rows = before.get(subject, []), after.get(subject, [])
            found += _of_subject(grade, subject, *rows)
    return sorted(found, key=lambda one: (GRADES.index(one.grade), one.at, one.subject))


def _of_subject(grade: str, subject: str, before: Lines, after: Lines) -> Iterator[Difference]:
    was, now = [line for _, line in before], [line for _, line in after]
    if was != now:
        same = next(
            (n for n, pair in enumerate(zip(was, now, strict=False)) if pair[0] != pair[1]),
            min(len(was), len(now)),
        )
        at = min((lines[same][0] for lines in (before, after) if same < len(lines)), default=0)
        rows = list(unified_diff(was, now, n=1, lineterm=""))[2:]
        yield Difference(grade, subject, at, tuple(rows))
        return
    moved = (
        (first, second, line)
        for (first, line), (second, _) in zip(before, after, strict=True)
        if abs(first - second) > LATE
    )
    if (late := next(moved, None)) is not None:
        first, second, line = late
        rows = f"-at {first / 1000:.3f} s: {line}", f"+at {second / 1000:.3f} s: {line}"
        yield Difference(grade, subject, min(first, second), rows)


@cache
def _words() -> Mapping[str, str]:
    return tomllib.loads(_WORDS.read_text())["renamed"]


def _renamed(subjects: Mapping[str, Lines]) -> Mapping[str, Lines]:
    """Put today's words into a recording."""
    words = _words()

    def renamed(text: str) -> str:
        for old, new in words.items():
            text = text.replace(old, new)
        return text

    return {
        renamed(subject): [(at, renamed(line)) for at, line in lines]
        for subject, lines in subjects.items()
    }


def report(name: str, found: list[Difference], rows: float = _ROWS) -> str:
    """Return differences as text: what comes first in time is most likely the cause.

    Args:
        name: The part.
        found: Its differences.
        rows: How many lines of a subject are shown; infinity: all, of all subjects.
    """
    grades = {grade: [one for one in found if one.grade == grade] for grade in GRADES}
    counts = ", ".join(f"{len(ones)} of {grade}" for grade, ones in grades.items() if ones)
    lines = [f"{name} differs from its recording in {counts}"]
    subjects = math.inf if math.isinf(rows) else _SUBJECTS
    for ones in grades.values():
        for number, one in enumerate(ones):
            if number >= subjects:
                lines.append(f"  and {len(ones) - number} more subjects of {one.grade}")
                break
            lines.append(f"{one.grade} | {one.subject} | from {one.at / 1000:.3f} s")
            for count, row in enumerate(one.rows):
                if count >= rows:
                    lines.append(f"    and {len(one.rows) - count} more lines")
                    break
                lines.append(f"    {row if math.isinf(rows) else row[:_WIDTH]}")
    lines += [
        "A user would see no difference? Explain it in the commit, and record it anew:",
        f"    python -m tests.golden record {name}",
    ]
    return "\n".join(lines)
