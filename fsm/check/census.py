"""The census of a run: which steps of which machine were taken, and how often.

One JSON object per line: `machine`, `old`, `cause`, `given`, `new`, `times`. `given`
lists the conditions that were true; without it none was.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final, final

import attrs

from fsm.errors import CensusError
from specs.jsonvalue import JsonObject

__all__ = ["MACHINE_USERS", "TakenStep", "read_census", "write_census"]

MACHINE_USERS: Final = (
    "fsm.bus",
    "fsm.catalogue",
    "fsm.limits",
    "fsm.p2p",
    "fsm.policy",
    "fsm.registry",
    "fsm.session",
    "fsm.sync",
    "actors",
)
"""The packages whose code fires triggers; checks and judges only look at machines."""


@final
@attrs.frozen(slots=True, order=True)
class TakenStep:
    """One kind of step.

    Attributes:
        machine: Name of the table.
        old: State left; `[*]`: the entity did not exist.
        cause: The trigger.
        new: State entered.
        given: The conditions that were true.
    """

    machine: str
    old: str
    cause: str
    new: str
    given: frozenset[str] = attrs.field(default=frozenset(), order=sorted)


_WORDS: Final = ("machine", "old", "cause", "new")


def write_census(times: Mapping[TakenStep, int]) -> str:
    """Write a census: one line per kind of step, in order."""
    lines = (json.dumps(_object(step, times[step]), ensure_ascii=False) for step in sorted(times))
    return "".join(f"{line}\n" for line in lines)


def read_census(lines: Iterable[str]) -> frozenset[TakenStep]:
    """Read a census.

    Raises:
        CensusError: A line is none of a census.
    """
    return frozenset(_read(line, number) for number, line in enumerate(lines, start=1))


def _object(step: TakenStep, times: int) -> JsonObject:
    return {
        "machine": step.machine,
        "old": step.old,
        "cause": step.cause,
        "given": [*sorted(step.given)],
        "new": step.new,
        "times": times,
    }


def _read(line: str, number: int) -> TakenStep:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError) as exc:
        raise CensusError(number, "it is no JSON") from exc
    if not isinstance(told, dict):
        raise CensusError(number, "it is no JSON object")
    machine, old, cause, new = (_word(told, name, number) for name in _WORDS)
    given = told.get("given", [])
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise CensusError(number, "given is no list of texts")
    return TakenStep(machine, old, cause, new, frozenset(given))


def _word(told: Mapping[str, object], name: str, number: int) -> str:
    word = told.get(name)
    if not isinstance(word, str):
        raise CensusError(number, f"{name} is no text")
    return word
