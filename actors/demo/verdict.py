"""The last act: the traces are judged, and the judgement is told."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import orjson
import trio

from actors.commands.command_error import CommandError
from actors.commands.exit_code import ExitCode
from actors.demo.director import Director
from actors.demo.line import Line, What
from specs.jsonvalue import Json, JsonObject

__all__ = ["CONFORMANT", "judge"]

CONFORMANT: Final = "conformant"
_SHOWN: Final = 3
"""Edges named per machine; the report names all."""

_SCHEMA: Final = "protofly.verdict/1"
_TETHERED: Final = (sys.executable, "-m", "actors.demo.tether")
_VALIDATE: Final = (sys.executable, "-m", "spark", "validate", "--json")


async def judge(traces: Path, report: Path, director: Director) -> JsonObject:
    """Have the traces judged in a process of its own; return the verdict.

    Raises:
        CommandError: There came no verdict.
    """
    command = (*_TETHERED, *_VALIDATE, "--report", str(report), str(traces))
    with _lifeline() as stdin:
        done = await trio.run_process(command, capture_stdout=True, check=False, stdin=stdin)
    verdict = _verdict(done.stdout)
    if verdict is None:
        raise CommandError(
            f"the traces in {traces} could not be judged (status {done.returncode}); "
            "the messages above say why",
            ExitCode.FAILED,
        )
    for line in _lines(verdict):
        director.line(line)
    return verdict


@contextmanager
def _lifeline() -> Iterator[int]:
    """Make a stdin that ends when we do."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


def _verdict(output: bytes) -> JsonObject | None:
    """Return the last object of the output, if it is a verdict."""
    lines = output.splitlines()
    try:
        told: Json = orjson.loads(lines[-1]) if lines else None
    except orjson.JSONDecodeError:
        return None
    return told if isinstance(told, dict) and told.get("schema") == _SCHEMA else None


def _lines(verdict: JsonObject) -> list[Line]:
    head = f"verdict {verdict.get('verdict')}: {verdict.get('events'):,} events, "
    head += f"{verdict.get('entities')} entities, {verdict.get('violations')} violations"
    lines = [Line("demo", What.VERDICT, head)]
    lines += [_line(f"trace of {one['node']}: {one['line']}") for one in _rows(verdict, "nodes")]
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
