"""Reads and checks scenario files: JSON Lines, one word or one step per line."""

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeVar, final

import attrs
import orjson

from actors.play.script.addresses import Places, expanded
from actors.play.script.fields import Fields
from actors.play.script.hop import GAP, Hop, Place, read_hop, read_place
from actors.play.script.steps import (
    AuthzStep,
    CallStep,
    FaultStep,
    Flag,
    IngestStep,
    MessageStep,
    ResolveStep,
    Scenario,
    Setting,
    StateStep,
    Step,
    TableStep,
    TimeStep,
)
from actors.play.script.vocabulary import (
    DO_WORDS,
    FAULT_WORDS,
    GIVEN_WORDS,
    Action,
    AddressAllocated,
    Alias,
    Beginning,
    DataObject,
    Denial,
    Deploy,
    FieldKind,
    Given,
    Hyperty,
    KeptAddress,
    Node,
    P2PLink,
    Runtime,
    Session,
    field_name,
    machine_name,
    machine_words,
    nearest,
)
from specs.addresses.address import canonical, host_of
from specs.dialects.normalise import normalise
from specs.errors import BadUrlError, ProtoflyError
from specs.message import Message
from specs.reply_code import DropReason
from specs.trace import Op

__all__ = ["ScriptError", "read_script", "read_script_lines"]

T = TypeVar("T")

_ROW_OPS: Final = frozenset({Op.ADD, Op.UPD, Op.DEL})
_LOST: Final = "lost"
"""In place of the reason of a drop (ours): no component dropped it, the network lost it."""

_DECISIONS: Final = frozenset({"permit", "deny"})


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


# ---- words


def _read_word(word: str, kinds: Mapping[str, type[T]], what: str, fields: Fields) -> T:
    """Read the fields of a line that begins with a word.

    Raises:
        ValueError: The word or a field is not known, or a field is wrong; says what.
    """
    form = kinds.get(word)
    if form is None:
        raise ValueError(f"there is no {what} {word!r}; {nearest(word, kinds)}")
    values: dict[str, object] = {}
    attributes = attrs.fields(form)  # type: ignore[arg-type]
    fields.check_names([field_name(one) for one in attributes])
    for one in attributes:
        name = field_name(one)
        if one.default is attrs.NOTHING or fields.has(name):
            choice: tuple[str, ...] = one.metadata["choice"]
            values[one.name] = _read_field(fields, name, one.metadata["kind"], choice)
    return form(**values)


def _read_field(fields: Fields, name: str, kind: FieldKind, choice: tuple[str, ...]) -> object:
    value = _FIELD_READERS.get(kind, _address)(fields, name)
    if choice and value not in choice:
        raise ValueError(
            f"{name} must be one of {', '.join(choice)}; {nearest(str(value), choice)}"
        )
    return value


def _address(fields: "Fields", name: str) -> str:
    text = fields.text(name)
    try:
        canonical(text)
    except BadUrlError as error:
        raise ValueError(f"{name}: {error}") from error
    return text


def _pair(fields: "Fields", name: str) -> tuple[str, ...]:
    ends = fields.texts(name)
    if len(ends) != _BOTH:
        raise ValueError(f"{name} must name two")
    return ends


_BOTH: Final = 2

_FIELD_READERS: Final[Mapping[FieldKind, Callable[[Fields, str], object]]] = MappingProxyType(
    {
        FieldKind.TEXT: Fields.text,
        FieldKind.TEXTS: Fields.texts,
        FieldKind.HYPERTIES: Fields.texts,
        FieldKind.PROCESSES: _pair,
        FieldKind.MARK: Fields.mark,
        FieldKind.WHOLE: Fields.whole,
        FieldKind.SECONDS: Fields.seconds,
        FieldKind.DATA: Fields.object,
        FieldKind.RECORDS: Fields.objects,
    }
)
"""Readers of fields; the others are addresses."""


# ---- steps


def _read_step(number: int, fields: Fields) -> Step:
    """Read the fields of a line, behind its scenario and number.

    Raises:
        ValueError: They are no step; says what is wrong.
    """
    kind = fields.text("k")
    reader = _READERS.get(kind)
    if reader is None:
        raise ValueError(f"there is no k {kind!r}; {nearest(kind, _READERS)}")
    step = reader(number, fields)
    fields.check_names()
    return step


def _message(fields: Fields, name: str) -> Message:
    try:
        return normalise(fields.object(name))
    except ProtoflyError as error:
        raise ValueError(f"{name} is no message: {error}") from error


def _hop(fields: Fields) -> Hop:
    return read_hop(fields.text("hop"))


def _place(fields: Fields) -> Place:
    return read_place(fields.text("at"))


def _message_step(number: int, fields: Fields) -> Step:
    drop = fields.some_text("drop")
    is_lost = _first_word(drop) == _LOST
    return MessageStep(
        number=number,
        hop=_hop(fields),
        message=_message(fields, "msg"),
        flags=frozenset(flag for flag in Flag if fields.maybe(flag, fields.mark)),
        drop=None if is_lost else _drop(drop),
        is_lost=is_lost,
        delay=fields.maybe("delayed", fields.seconds) or 0.0,
        link=fields.maybe("p2p", fields.text),
        deliver_to=fields.maybe("deliver_to", fields.texts),
    )


def _drop(text: str) -> DropReason | None:
    """Read `loop: own stub already in via`: the reason, then words for people."""
    if not text:
        return None
    word = _first_word(text)
    if word not in set(DropReason):
        raise ValueError(f"drop must begin with one of {', '.join(DropReason)}, {_LOST}")
    return DropReason(word)


def _first_word(text: str) -> str:
    return text.partition(":")[0].strip()


def _state_step(number: int, fields: Fields) -> Step:
    key = fields.take("key")
    parts = key.split("|") if isinstance(key, str) else key
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise ValueError("key must be a text or a list of texts")
    return StateStep(
        number=number,
        machine=fields.text("machine"),
        key=tuple(str(expanded(part)) for part in parts),
        old=fields.text_or_null("old"),
        new=fields.text("new"),
        cause=fields.some_text("cause"),
    )


def _table_step(number: int, fields: Fields) -> Step:
    op = fields.text("op")
    if op not in _ROW_OPS:
        raise ValueError(f"op must be one of {', '.join(sorted(_ROW_OPS))}")
    return TableStep(
        number=number,
        table=fields.text("table"),
        op=Op(op),
        at=_place(fields),
        key=fields.text("key"),
        val=fields.maybe("val", fields.take),
    )


def _resolve_step(number: int, fields: Fields) -> Step:
    return ResolveStep(
        number=number,
        at=_place(fields),
        to=fields.text("to"),
        result=fields.text_or_null("result"),
        why=fields.some_text("why"),
    )


def _authz_step(number: int, fields: Fields) -> Step:
    decision = fields.text("decision")
    if decision not in _DECISIONS:
        raise ValueError("decision must be permit or deny")
    return AuthzStep(
        number=number,
        at=_place(fields),
        ref=fields.whole("ref"),
        decision=decision,
        why=fields.some_text("why"),
    )


def _time_step(number: int, fields: Fields) -> Step:
    return TimeStep(number=number, seconds=fields.seconds("dt"), why=fields.some_text("why"))


def _fault_step(number: int, fields: Fields) -> Step:
    return FaultStep(number=number, what=fields.text("what"))


def _call_step(number: int, fields: Fields) -> Step:
    return CallStep(number=number, what=fields.text("what"))


def _ingest_step(number: int, fields: Fields) -> Step:
    return IngestStep(number=number, raw=fields.object("raw"), normal=_message(fields, "norm"))


_READERS: Final[Mapping[str, Callable[[int, Fields], Step]]] = MappingProxyType(
    {
        "msg": _message_step,
        "state": _state_step,
        "table": _table_step,
        "resolve": _resolve_step,
        "authz": _authz_step,
        "time": _time_step,
        "fault": _fault_step,
        "call": _call_step,
        "ingest": _ingest_step,
    }
)


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


_NAMES: Final = frozenset({"sc"})
_PLACES: Final = _NAMES | frozenset({"k", "hop", "at", "p2p", "machine", "table"})
"""Fields of steps in which macros stay as they are."""

_KINDS_OF_LINES: Final = ("given", "do", "fault", "k")


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
    places = _PLACES if "k" in value else _NAMES
    fields = Fields(
        {name: part if name in places else expanded(part) for name, part in value.items()}
    )
    try:
        return _Line(file, number, fields.text("sc"), _said(fields))
    except ValueError as error:
        raise ScriptError(file, number, str(error)) from error


def _said(fields: Fields) -> Given | Action | Step:
    for kind in _KINDS_OF_LINES:
        if fields.has(kind):
            break
    else:
        names = ", ".join(_KINDS_OF_LINES)
        raise ValueError(f"one of {names} is missing; {fields.nearest(_KINDS_OF_LINES)}")
    match kind:
        case "given":
            return _read_word(fields.text(kind), GIVEN_WORDS, "given", fields)
        case "do":
            return _read_word(fields.text(kind), DO_WORDS, "do", fields)
        case "fault":
            return _read_word(fields.text(kind), FAULT_WORDS, "fault", fields)
        case _:
            return _read_step(fields.whole("n"), fields)


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
    setting = _setting(lines)
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


def _setting(lines: list[_Line]) -> Setting:
    """Put together what is given."""

    def of(kind: type[T]) -> tuple[T, ...]:
        return tuple(one.said for one in lines if isinstance(one.said, kind))

    begins = of(Beginning)
    return Setting(
        nodes=of(Node),
        runtimes=of(Runtime),
        hyperties=of(Hyperty),
        kept=of(KeptAddress),
        objects=of(DataObject),
        links=of(P2PLink),
        sessions=of(Session),
        addresses=of(AddressAllocated),
        denials=of(Denial),
        aliases=of(Alias),
        beginning=begins[-1].before if begins else "",
        deployed={one.is_: one.in_ for one in of(Deploy)},
    )


def _check_references(line: _Line, setting: Setting) -> None:
    """Make sure that all that a word names is given.

    Raises:
        ScriptError: Something is not; says the nearest that is.
    """
    for one in attrs.fields(type(line.said)):
        kind, value = one.metadata["kind"], getattr(line.said, one.name)
        if kind not in _REFERENCES or value is None:
            continue
        known = set(setting.known(kind))
        for name in value if isinstance(value, tuple) else (value,):
            if name not in known:
                raise line.error(f"{field_name(one)}: {name} is not given; {nearest(name, known)}")
    if isinstance(line.said, Runtime):
        domains = {one.domain for one in setting.nodes}
        if host_of(line.said.is_) not in domains:
            domain = host_of(line.said.is_)
            raise line.error(f"no node of {domain} is given; {nearest(domain, domains)}")


_REFERENCES: Final = frozenset(
    {
        FieldKind.RUNTIME,
        FieldKind.NODE,
        FieldKind.PROCESS,
        FieldKind.PROCESSES,
        FieldKind.HYPERTY,
        FieldKind.HYPERTIES,
        FieldKind.OBJECT,
    }
)
"""Kinds of fields that name something given."""


def _check_step(line: _Line, step: Step, scenario: Scenario, places: Places) -> None:
    """Make sure that places, machines and steps that a step names are known.

    Raises:
        ScriptError: One is not.
    """
    if isinstance(step, AuthzStep) and not isinstance(scenario.step(step.ref), MessageStep):
        raise line.error(f"ref {step.ref} is no message step of {scenario.name}")
    if isinstance(step, FaultStep) and not scenario.breaks(step):
        near = nearest(step.what, FAULT_WORDS)
        raise line.error(f"nothing breaks at step {step.number}: write a fault before it; {near}")
    if isinstance(step, StateStep) and machine_name(step.machine) is None:
        near = nearest(step.machine, machine_words())
        raise line.error(f"no machine is called {step.machine!r}; {near}")
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
