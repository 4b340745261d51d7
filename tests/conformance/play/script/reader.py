"""Reads and checks scenario files: JSON Lines, one word or one step per line."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Final, final, get_args, get_origin

import attrs
import orjson

from specs.addresses.address import host_of
from specs.errors import ProtoflyError
from specs.jsonvalue import Json
from tests.conformance.play.script.addresses import Places, expanded
from tests.conformance.play.script.fields import declared, field_name, nearest, read_fields
from tests.conformance.play.script.hop import GAP, Place
from tests.conformance.play.script.steps import (
    STEP_WORDS,
    AuthzStep,
    FaultStep,
    MessageStep,
    ResolveStep,
    Scenario,
    Setting,
    Step,
    TableStep,
)
from tests.conformance.play.script.vocabulary import (
    DO_WORDS,
    FAULT_WORDS,
    GIVEN_WORDS,
    Action,
    Deploy,
    Given,
    HypertyUrl,
    Node,
    NodeUrl,
    ObjectUrl,
    ProcessUrl,
    Runtime,
    RuntimeUrl,
)


@final
class ScriptError(ProtoflyError):
    """A scenario file cannot be played; its author must act.

    Attributes:
        file: The file.
        line: Its line, from 1; 0 for the file as a whole.
        what: What is wrong, and what to do, as half a sentence.
    """

    def __init__(self, file: str, line: int, what: str) -> None:
        where = f"{file}, line {line}" if line else file
        super().__init__(f"{where}: {what}")
        self.file = file
        self.line = line
        self.what = what


# ---- files


@final
@attrs.frozen
class _Line:
    """The content of one line, and its place."""

    file: str
    line: int
    scenario: str
    said: Given | Action | Step

    def error(self, what: str) -> ScriptError:
        return ScriptError(self.file, self.line, what)


_PLACES: Final = frozenset({"hop", "at", "p2p", "machine", "table"})
"""Fields of steps in which macros stay as they are."""

_WORDS: Final[Mapping[str, Mapping[str, type[Given | Action | Step]]]] = MappingProxyType(
    {"given": GIVEN_WORDS, "do": DO_WORDS, "fault": FAULT_WORDS, "k": STEP_WORDS}
)
"""The kinds of lines, and the words of each."""


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
    """Read all scenarios of some lines; `file` is for error messages.

    Args:
        file: Name of the file.
        lines: Lines of the file.

    Raises:
        ScriptError: There is no step at all, or a line cannot be read.
    """
    found: dict[str, list[_Line]] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            one = _read_line(file, number, line)
            found.setdefault(one.scenario, []).append(one)
    if not found:
        raise ScriptError(file, 0, "holds no step; write one JSON object per line")
    return tuple(_scenario(name, said) for name, said in found.items())


def _read_line(file: str, number: int, line: bytes) -> _Line:
    try:
        value: object = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ScriptError(file, number, f"is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise ScriptError(file, number, "is no JSON object")
    scenario = value.pop("sc", None)
    if not isinstance(scenario, str):
        raise ScriptError(file, number, "sc is missing, the name of the scenario")
    try:
        return _Line(file, number, scenario, _said(value))
    except ValueError as error:
        raise ScriptError(file, number, str(error)) from error


def _said(line: dict[str, Json]) -> Given | Action | Step:
    """Read what a line says.

    Raises:
        ValueError: A word or a field is unknown, or a field is wrong; says what.
    """
    kind = next((kind for kind in _WORDS if kind in line), None)
    if kind is None:
        near = nearest(next(iter(line), ""), _WORDS)
        raise ValueError(f"one of {', '.join(_WORDS)} is missing; {near}")
    word, known = line.pop(kind), _WORDS[kind]
    form = known.get(word) if isinstance(word, str) else None
    if form is None:
        raise ValueError(f"there is no {kind} {word!r}; {nearest(str(word), known)}")
    unread = _PLACES if kind == "k" else ()
    fields = {name: one if name in unread else expanded(one) for name, one in line.items()}
    return read_fields(form, fields)


def _scenario(name: str, lines: list[_Line]) -> Scenario:
    """Put the lines of a scenario together.

    Raises:
        ScriptError: A line stands at a wrong place, or names what is not there.
    """
    steps = [(one, one.said) for one in lines if isinstance(one.said, Step)]
    if not steps:
        raise lines[-1].error(f"{name} has no step; write what must be seen")
    for (_, step), (line, following) in pairwise(steps):
        if following.number <= step.number:
            raise line.error(
                f"step {following.number} of {name} comes after step {step.number}; "
                "number the steps upwards"
            )
    actions = _actions(lines, [line for line, _ in steps])
    given = tuple(one.said for one in lines if isinstance(one.said, Given))
    setting = Setting(given, tuple(one.said for one in lines if isinstance(one.said, Deploy)))
    scenario = Scenario(name, tuple(step for _, step in steps), setting, actions)
    places = Places(setting)
    for line in lines:
        if isinstance(line.said, Step):
            _check_step(line, line.said, scenario, places)
        else:
            _check_references(line, setting)
    return scenario


def _actions(lines: list[_Line], steps: list[_Line]) -> Mapping[int, tuple[Action, ...]]:
    """Return what is done before each step, by the step's number."""
    found: dict[int, tuple[Action, ...]] = {}
    waiting: list[Action] = []
    for line in lines:
        said = line.said
        if isinstance(said, Given):
            if waiting or line.line > steps[0].line:
                raise line.error("given lines stand before all others of a scenario")
        elif isinstance(said, Action):
            waiting.append(said)
        elif waiting:
            found[said.number] = tuple(waiting)
            waiting = []
    if waiting:
        raise lines[-1].error("a step that must be seen is missing behind the last line")
    return found


def _check_references(line: _Line, setting: Setting) -> None:
    """Make sure that all that a word names is given.

    Raises:
        ScriptError: Something is not; says the nearest that is.
    """
    for one in attrs.fields(type(line.said)):
        kind, value = declared(one), getattr(line.said, one.name)
        kind = get_args(kind)[0] if get_origin(kind) is tuple else kind
        if kind not in _REFERENCES or value is None:
            continue
        known = set(setting.known(kind))
        for name in value if isinstance(value, tuple) else (value,):
            if name not in known:
                raise line.error(f"{field_name(one)}: {name} is not given; {nearest(name, known)}")
    if isinstance(line.said, Runtime):
        domain, domains = host_of(line.said.is_), {one.domain for one in setting.all(Node)}
        if domain not in domains:
            raise line.error(f"no node of {domain} is given; {nearest(domain, domains)}")


_REFERENCES: Final = frozenset({RuntimeUrl, NodeUrl, ProcessUrl, HypertyUrl, ObjectUrl})
"""Types of fields that name something given."""


def _check_step(line: _Line, step: Step, scenario: Scenario, places: Places) -> None:
    """Make sure that places and steps that a step names are known.

    Raises:
        ScriptError: One is not.
    """
    if isinstance(step, AuthzStep) and not isinstance(scenario.step(step.ref), MessageStep):
        raise line.error(f"ref {step.ref} is no message step of {scenario.name}")
    if isinstance(step, FaultStep) and not scenario.breaks(step):
        near = nearest(step.what, FAULT_WORDS)
        raise line.error(f"nothing breaks at step {step.number}: write a fault before it; {near}")
    for place in _places(step):
        if place != GAP and places.address(place) is None:
            near = nearest(place.root, places.known())
            raise line.error(f"nothing given is called {place.root!r}; {near}")


def _places(step: Step) -> Iterable[Place]:
    match step:
        case MessageStep(hop=hop):
            return hop.places
        case TableStep(at=at) | ResolveStep(at=at) | AuthzStep(at=at):
            return (at,)
        case _:
            return ()
