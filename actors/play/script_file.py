"""Reads scenario files: JSON Lines, one step per line."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import final

import attrs
import orjson

from actors.play.macros import expanded
from actors.play.script import AuthzStep, MessageStep, Scenario, Step
from actors.play.script_error import ScriptError
from actors.play.script_line import Fields, read_step
from specs.jsonvalue import Json

__all__ = ["read_script", "read_script_lines"]


@final
@attrs.frozen
class _Line:
    """One step and where it stands."""

    file: str
    line: int
    scenario: str
    step: Step

    def error(self, what: str) -> ScriptError:
        return ScriptError(self.file, self.line, what)


def read_script(path: Path) -> tuple[Scenario, ...]:
    """Read all scenarios of a file, in the order of their first lines.

    Raises:
        ScriptError: The file or one of its lines cannot be read.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        why = str(error.strerror or error)
        raise ScriptError(str(path), 0, f"cannot be read: {why}; name another file") from error
    return read_script_lines(str(path), lines)


def read_script_lines(file: str, lines: Iterable[bytes]) -> tuple[Scenario, ...]:
    """Read all scenarios of some lines; `file` is for what is said of errors.

    Raises:
        ScriptError: There is no step at all, or a line cannot be read.
    """
    found: dict[str, list[_Line]] = {}
    for one in _read(file, lines):
        found.setdefault(one.scenario, []).append(one)
    if not found:
        raise ScriptError(file, 0, "holds no step; write one JSON object per line")
    return tuple(_scenario(name, steps) for name, steps in found.items())


def _read(file: str, lines: Iterable[bytes]) -> Iterator[_Line]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _read_line(file, number, line)


def _read_line(file: str, number: int, line: bytes) -> _Line:
    try:
        value: Json = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ScriptError(file, number, f"is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise ScriptError(file, number, "is no JSON object")
    fields = Fields({name: _expanded(name, part) for name, part in value.items()})
    try:
        scenario = fields.text("sc")
        return _Line(file, number, scenario, read_step(fields.whole("n"), fields))
    except ValueError as error:
        raise ScriptError(file, number, str(error)) from error


def _expanded(name: str, value: Json) -> Json:
    """Write out macros where addresses stand; places keep their short names."""
    return value if name in {"sc", "k", "hop", "at", "p2p", "machine", "table"} else expanded(value)


def _scenario(name: str, lines: list[_Line]) -> Scenario:
    for one, following in pairwise(lines):
        if following.step.number <= one.step.number:
            raise following.error(
                f"step {following.step.number} of {name} comes after step {one.step.number}; "
                "number the steps upwards"
            )
    messages = {one.step.number for one in lines if isinstance(one.step, MessageStep)}
    for one in lines:
        if isinstance(one.step, AuthzStep) and one.step.ref not in messages:
            raise one.error(f"ref {one.step.ref} is no message step of {name}")
    return Scenario(name, tuple(one.step for one in lines))
