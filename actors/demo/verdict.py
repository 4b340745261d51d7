"""The last act: the traces are judged by both judges, and the judgement is told."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import orjson
import trio

from actors.cli.command_error import CommandError, ExitCode
from actors.demo.script import Line, What
from actors.demo.show import Director
from specs.jsonvalue import Json, JsonObject

__all__ = ["CONFORMANT", "judge"]

CONFORMANT: Final = "conformant"
_WORST_FIRST: Final = ("violations", "incomplete", CONFORMANT)
_SHOWN: Final = 3
"""Edges named per machine; the report names all."""

_STEPS: Final = "protofly.verdict/1"
_MESSAGES: Final = "protofly.judgement/1"
_BROKEN: Final = "protofly.broken-claim/1"
_FLAW: Final = "protofly.flaw/1"
_TETHERED: Final = (sys.executable, "-m", "actors.demo.child", "run", sys.executable, "-m")


async def judge(runs: Sequence[Path], report: Path, director: Director) -> JsonObject:
    """Have the runs judged by Spark and by `fsm judge`, each in a process of its own.

    Returns:
        `verdict`, the worse of both; `steps` and `messages`, what each of them said last.

    Raises:
        CommandError: There came no verdict.
    """
    places = [str(run) for run in runs]
    steps = await _said("spark", "validate", "--json", "--report", str(report), *places)
    messages = await _said("fsm", "judge", "--json", *places)
    both = _last(steps, _STEPS), _last(messages, _MESSAGES)
    verdict = next(word for word in _WORST_FIRST if word in {one["verdict"] for one in both})
    for line in [*_heads(verdict, *both), *map(_line, _found(messages)), *_lines(both[0])]:
        director.line(line)
    return {"verdict": verdict, "steps": both[0], "messages": both[1]}


async def _said(*command: str) -> list[JsonObject]:
    """Run a judge; return the objects that it printed."""
    with _lifeline() as stdin:
        done = await trio.run_process(
            (*_TETHERED, *command), capture_stdout=True, check=False, stdin=stdin
        )
    try:
        said: list[Json] = [orjson.loads(line) for line in done.stdout.splitlines()]
    except orjson.JSONDecodeError:
        said = []
    return [one for one in said if isinstance(one, dict)]


def _last(said: list[JsonObject], schema: str) -> JsonObject:
    """Return the last object, which has to be a verdict.

    Raises:
        CommandError: It is none.
    """
    if not said or said[-1].get("schema") != schema:
        raise CommandError(
            "the traces could not be judged; the messages above say why", ExitCode.FAILED
        )
    return said[-1]


@contextmanager
def _lifeline() -> Iterator[int]:
    """Make a stdin that ends when we do."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


def _heads(verdict: str, steps: JsonObject, messages: JsonObject) -> list[Line]:
    """Print the verdict, the claims that each judge checked, and those that none did."""
    unchecked = steps.get("not_checked")
    nobody = unchecked.get("by_nobody") if isinstance(unchecked, dict) else None
    return [
        Line("demo", What.VERDICT, f"verdict {verdict}: both judges have to say so"),
        _line(
            f"steps {steps['verdict']}: {len(_names(steps.get('checked')))} claims checked, "
            f"{steps['violations']} violations; {steps['events']:,} events of "
            f"{steps['entities']:,} entities (python -m spark validate)"
        ),
        _line(
            f"messages {messages['verdict']}: {messages['claims']} claims on messages, tables "
            f"and links checked, {messages['findings']} violations (python -m fsm judge)"
        ),
        _line(f"not checked: {len(_names(nobody))} claims that no trace can decide"),
    ]


def _names(names: Json) -> list[Json]:
    return names if isinstance(names, list) else []


def _found(messages: list[JsonObject]) -> Iterator[str]:
    """Return the broken claims and the missing records that `fsm judge` reports."""
    for one in messages:
        if one.get("schema") == _BROKEN:
            yield f"broken: {one['text']}; {one['about']}: expected {one['expected']}"
        elif one.get("schema") == _FLAW:
            yield f"incomplete: {one.get('file')}:{one.get('line')}: {one['reason']}"


def _lines(verdict: JsonObject) -> list[Line]:
    lines = [_line(f"trace of {one['node']}: {one['line']}") for one in _rows(verdict, "nodes")]
    machines = [("machine", "steps", "entities", "declared, but never exercised")]
    machines += [_machine(one) for one in _rows(verdict, "machines")]
    width = max(len(name) for name, *_ in machines)
    lines += [
        _line(f"{name:<{width}}{steps:>8}{entities:>10}  {never}")
        for name, steps, entities, never in machines
    ]
    return lines + [_line(f"see {place}") for place in _places(verdict)]


def _line(text: str) -> Line:
    return Line("demo", What.ROW, text)


def _machine(one: JsonObject) -> tuple[str, str, str, str]:
    """Return what was seen of a machine, as the columns of a table."""
    never = list(dict.fromkeys(f"{row['old']} -> {row['new']}" for row in _rows(one, "never")))
    more = len(never) - _SHOWN
    told = ", ".join(never[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return str(one["machine"]), str(one["steps"]), str(one["entities"]), told or "-"


def _rows(verdict: JsonObject, key: str) -> list[JsonObject]:
    rows = verdict.get(key)
    return [one for one in rows if isinstance(one, dict)] if isinstance(rows, list) else []


def _places(verdict: JsonObject) -> list[str]:
    report = verdict.get("report")
    if not isinstance(report, dict):
        return []
    drawings = report.get("drawings")
    count = len(drawings) if isinstance(drawings, dict) else 0
    return [f"{report.get('html')}, and {count} drawings beside it"]
