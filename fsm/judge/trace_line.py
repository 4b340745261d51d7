"""Line of a trace, and the vocabulary that all judges of traces share.

`fsm.judge.replay` and the Spark job judge the same lines by the same rules; this file has the
definitions that both need. A valid line is a JSON object with every field of the stamp
(`specs.trace.Stamp`), and each field of the stamp and the fact (`specs.trace.Fact`) has that
field's type; null counts as absent. A record of a state machine must name machine and entity, and
for a transition also `old`, `new` and `cause`. Undeclared fields are ignored. Other lines are
quarantined, not judged.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from math import isfinite
from operator import attrgetter, itemgetter
from sys import intern
from types import MappingProxyType, NoneType
from typing import Final, TypeAlias, get_args

import attrs
import orjson

from specs.errors import ProtoflyError
from specs.jsonvalue import Json
from specs.trace import Fact, Kind, Op, Stamp

MAX_LINE: Final = 1 << 20
"""Largest number of bytes of a line (our choice); processes write some hundred."""

_Scalar: TypeAlias = type[str] | type[int] | type[float]


class Claim(StrEnum):
    """Rule that the state machine records of a trace must obey; listed by precedence.

    Attributes:
        DECLARED_STEP: The machine's table has the transition (old, cause, new).
        STARTS_AT_INITIAL: The first transition of an entity leaves `[*]`.
        NO_GAP_BETWEEN_STEPS: Any other transition leaves the state that the previous one
            entered; or `[*]`, if the entity may have ended in that state.
        ENDS_AT_REST: In a trace that has its end, the last transition of an entity enters a
            state that may end.
        REFUSED_STEP: No entity got a trigger that its table does not allow.
        UNKNOWN_MACHINE: The machine is declared; if it is not, DECLARED_STEP and
            ENDS_AT_REST are not judged, and the others are judged as usual.
    """

    DECLARED_STEP = "declared_step"
    STARTS_AT_INITIAL = "starts_at_initial"
    NO_GAP_BETWEEN_STEPS = "no_gap_between_steps"
    ENDS_AT_REST = "ends_at_rest"
    REFUSED_STEP = "refused_step"
    UNKNOWN_MACHINE = "unknown_machine"


CLAIMS: Final = tuple(Claim)
"""All rules for state machine records, in the order of precedence."""

STEP_TEXTS: Final[Mapping[Claim, str]] = MappingProxyType(
    {
        Claim.DECLARED_STEP: "Every step is a row of its machine's table.",
        Claim.STARTS_AT_INITIAL: "The first step of every entity is its creation.",
        Claim.NO_GAP_BETWEEN_STEPS: "Every step leaves the state the step before it entered.",
        Claim.ENDS_AT_REST: "When its process ends orderly, every entity may end in its state.",
        Claim.REFUSED_STEP: "Nothing undeclared is asked of an entity.",
        Claim.UNKNOWN_MACHINE: "Every machine in the trace is declared.",
    }
)
"""Statement of each rule for state machine records, for reports."""


class Flaw(StrEnum):
    """Reason why the trace of one node, sorted by `ln`, is incomplete.

    Attributes:
        NO_START: Its first record is not `start`.
        NO_END: Its last record is not `end`: the process did not end normally.
        GAP: Its `ln` are not 1, 2, 3, ... without a hole or a duplicate.
        DROPPED: It has a `dropped` record: the disk was slower than the process.
    """

    NO_START = "no_start"
    NO_END = "no_end"
    GAP = "gap"
    DROPPED = "dropped"


class Verdict(StrEnum):
    """Verdict on a trace; `violations` takes precedence, then `incomplete`, then `open`.

    Attributes:
        OPEN: No violation and nothing missing so far; the trace is still written.
    """

    CONFORMANT = "conformant"
    OPEN = "open"
    VIOLATIONS = "violations"
    INCOMPLETE = "incomplete"


class BadTraceLineError(ProtoflyError):
    """Error: a line of a trace is invalid, and must be quarantined.

    Attributes:
        reason: The rule that the line breaks, as half a sentence.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"bad trace line: {reason}")
        self.reason = reason


@attrs.define(order=False, unsafe_hash=True)
class TraceLine:
    """Record of a trace with the fields that judges use; `specs.trace` explains the fields.

    A line does not change once it is read. The class is not frozen, since that would double the
    time to make one.
    """

    run: str
    node: str
    ln: int
    k: str
    t: float = 0.0
    wall_ns: int = 0
    actor: str = ""
    op: str | None = None
    machine: str | None = None
    key: str | None = None
    old: str | None = None
    new: str | None = None
    cause: str | None = None
    why: str | None = None
    mid: str | None = None
    ref: str | None = None
    type: str | None = None
    id: int | None = None
    from_: str | None = None
    to: str | None = None
    code: int | None = None
    digest: str | None = None
    body: str | None = None
    via: str | None = None
    by: str | None = None
    listener: str | None = None
    stub: str | None = None
    link: str | None = None
    seq: int | None = None
    reason: str | None = None
    direction: str | None = None
    decision: str | None = None
    result: str | None = None
    table: str | None = None
    val: str | None = None
    writer: str | None = None
    a: str | None = None
    b: str | None = None
    kind: str | None = None
    targets: int | None = None
    version: int | None = None

    @property
    def is_step(self) -> bool:
        """True if the record is a state machine transition."""
        return self.k == Kind.STATE and self.op == Op.STEP

    @property
    def is_refused(self) -> bool:
        """True if the record is a trigger that the table of the machine did not allow."""
        return self.k == Kind.STATE and self.op == Op.REFUSED


def wire_name(field: str) -> str:
    """Return the name that a field of a Python class has in the trace (`from_` is `from`)."""
    return field.removesuffix("_")


def _scalar(declared: object) -> _Scalar:
    kinds = [kind for kind in (declared, *get_args(declared)) if isinstance(kind, type)]
    if any(issubclass(kind, int) for kind in kinds):
        return int
    return float if float in kinds else str


FIELDS: Final[Mapping[str, _Scalar]] = {
    wire_name(field.name): _scalar(field.type)
    for field in (*attrs.fields(Stamp), *attrs.fields(Fact))
}
"""Type of each field that a record may have, by the field's name in the trace."""

_INT64: Final = 2**63
"""Limit of whole numbers in a trace, which must fit into 64 bits."""

_JUDGED: Final = {wire_name(field.name): field.name for field in attrs.fields(TraceLine)}
"""Fields that judges use, by their names in the trace."""

_OF_STAMP, _OF_FACT = (
    tuple((wire_name(field.name), field.name) for field in attrs.fields(cls))
    for cls in (Stamp, Fact)
)
_STAMP: Final = tuple(wire for wire, _ in _OF_STAMP)
_KINDS: Final = frozenset(Kind)
_STATE_OPS: Final = frozenset({Op.STEP, Op.REFUSED})
_STATE_FIELDS: Final = {
    Op.STEP.value: ("machine", "key", "old", "new", "cause"),
    Op.REFUSED.value: ("machine", "key", "cause"),
}


def read_line(text: str | bytes) -> TraceLine:
    """Decode one line of a trace into a record.

    Raises:
        BadTraceLineError: It is no valid record.
    """
    if len(text) > MAX_LINE:
        raise BadTraceLineError(f"it has more than {MAX_LINE:,} bytes")
    try:
        record = orjson.loads(text)
    except ValueError as exc:
        raise BadTraceLineError("no JSON") from exc
    if not isinstance(record, dict):
        raise BadTraceLineError("no JSON object")
    return TraceLine(*_ALL.of(record))  # type: ignore[arg-type] # the types were checked


def read_record(record: Mapping[str, object]) -> TraceLine:
    """Convert one decoded JSON object into a record.

    Raises:
        BadTraceLineError: A field is missing or of the wrong type.
    """
    fields = _fields(record)
    kind, op = record.get("k"), record.get("op")
    if kind not in _KINDS:
        raise BadTraceLineError("k is no kind of record")
    _check_present(record, _STAMP)
    if kind == "state":
        if op not in _STATE_OPS:
            raise BadTraceLineError("op is neither step nor refused")
        _check_present(record, _STATE_FIELDS[str(op)])
    return TraceLine(**fields)  # type: ignore[arg-type] # the types were checked


def _check_present(record: Mapping[str, object], names: Iterable[str]) -> None:
    for name in names:
        if record.get(name) is None:
            raise BadTraceLineError(f"{name} is missing")


def _fields(record: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a JSON object that judges use, after checking all declared fields."""
    fields: dict[str, object] = {}
    for name, value in record.items():
        kind = FIELDS.get(name)
        if kind is None or value is None:
            continue
        if type(value) is not kind or kind is not str:
            value = _check_field(name, value, kind)  # noqa: PLW2901
        if name in _JUDGED:
            # One copy of each text: a trace has few different ones and repeats them often.
            fields[_JUDGED[name]] = intern(value) if type(value) is str else value
    return fields


def _check_field(name: str, value: object, kind: _Scalar) -> object:
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        if -_INT64 <= value < _INT64:
            return value
    elif kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        if isfinite(value) if isinstance(value, float) else abs(value) < _INT64:
            return float(value)
    elif kind is str and isinstance(value, str):
        return str(value)
    raise BadTraceLineError(f"{name} is no {kind.__name__}")


def needed_fields(kind: str, op: str | None) -> Sequence[str] | None:
    """Return the fields that a record of a kind must have, or None if the kind is unknown.

    Args:
        kind: The field `k` of the record.
        op: The field `op` of the record.
    """
    if kind not in _KINDS:
        return None
    if kind != Kind.STATE:
        return _STAMP
    fields = _STATE_FIELDS.get(op or "")
    return None if fields is None else (*_STAMP, *fields)


def are_records(columns: Mapping[str, Sequence[object]]) -> bool:
    """Return whether decoded objects with the same fields are all valid records with exact types.

    False means that the objects have to be read one by one (`read_record`): some may be records.

    Args:
        columns: The values of all objects, by field name.
    """
    present = {name: kind for name, kind in FIELDS.items() if name in columns}
    absent = set()
    for name, kind in present.items():
        values = columns[name]
        kinds = set(map(type, values))
        if kinds == {NoneType}:
            absent.add(name)
        elif kinds != {kind} or not _IN_RANGE[kind](values):
            return False
    fields = present.keys() - absent
    if not fields.issuperset(_STAMP) or "k" not in fields or not _KINDS.issuperset(columns["k"]):
        return False
    kinds_of_record = set(columns["k"])
    if Kind.STATE not in kinds_of_record:
        return True
    ops = set(columns["op"]) if "op" in fields else {None}
    is_state = len(kinds_of_record) == 1 and ops <= _STATE_OPS
    return is_state and all(fields.issuperset(_STATE_FIELDS[str(op)]) for op in ops)


_IN_RANGE: Final[Mapping[_Scalar, Callable[[Sequence[object]], bool]]] = {
    int: lambda values: min(values) >= -_INT64 and max(values) < _INT64,  # type: ignore[type-var, operator] # numbers
    float: lambda values: all(map(isfinite, values)),  # type: ignore[arg-type] # numbers
    str: lambda _: True,
}


def line_of(stamp: Stamp, fact: Fact) -> TraceLine:
    """Return the record that a reader gets for a stamp and a fact as a process writes them.

    Args:
        stamp: Run, process, number and time of the record.
        fact: Content of the record.
    """
    fields = {wire: getattr(stamp, name) for wire, name in _OF_STAMP}
    return read_record(fields | {wire: getattr(fact, name) for wire, name in _OF_FACT})


class _Plan:
    """Prepared conversion of JSON objects with the same fields and types to records.

    A trace has few different sets of fields. Some decisions depend on the set alone and are made
    once: which fields are declared, and whether all needed fields are present.
    """

    __slots__ = ("_fields", "_is_exact", "_kind", "_numbers", "_op", "_ops")

    def __init__(self, record: Mapping[str, object], names: Iterable[str]) -> None:
        """Prepare the conversion for JSON objects like a given valid one.

        Args:
            record: The object.
            names: The fields that are wanted.
        """
        indices = {name: index for index, name in enumerate(record)}
        fields = {name for name, value in record.items() if value is not None and name in FIELDS}
        # A whole number may stand where a fraction is expected; then it is converted.
        self._is_exact = all(type(record[name]) is FIELDS[name] for name in fields)
        self._numbers = tuple(indices[name] for name in fields if FIELDS[name] is int)
        self._kind, self._op = indices["k"], indices.get("op", indices["k"])
        self._ops = frozenset(
            op for op, needed in _STATE_FIELDS.items() if fields.issuperset(needed)
        )
        self._fields = itemgetter(
            *(
                indices[name] if name in fields else len(indices) + number
                for number, name in enumerate(_JUDGED)
                if name in names
            )
        )

    def fields(self, values: tuple[object, ...]) -> tuple[object, ...] | None:
        """Return the wanted fields of an object, or None if its values must be checked singly."""
        kind = values[self._kind]
        is_known = values[self._op] in self._ops if kind == "state" else kind in _KINDS
        if not (is_known and self._is_exact):
            return None
        for index in self._numbers:
            if not -_INT64 <= values[index] < _INT64:  # type: ignore[operator] # a number
                return None
        fields: tuple[object, ...] = self._fields(values + _DEFAULTS)
        return fields


_DEFAULTS: Final = tuple(field.default for field in attrs.fields(TraceLine))
_MOST_PLANS: Final = 1000


class Reader:
    """Converts JSON objects to the chosen fields of records, and checks all declared fields.

    Attributes:
        names: The fields, by their names in the trace, in the order of `TraceLine`.
    """

    def __init__(self, names: Iterable[str]) -> None:
        """Choose the fields to read.

        Args:
            names: Two fields or more, by their names in the trace.
        """
        wanted = frozenset(names)
        self.names = tuple(name for name in _JUDGED if name in wanted)
        self._plans: dict[tuple[object, ...], _Plan] = {}
        self._values = attrgetter(*(_JUDGED[name] for name in self.names))

    def of(self, record: Mapping[str, object]) -> tuple[object, ...]:
        """Return the chosen fields of a JSON object.

        Raises:
            BadTraceLineError: It is no valid record.
        """
        values = (*record.values(),)
        shape = (*record, *map(type, values))
        plan = self._plans.get(shape)
        fields = None if plan is None else plan.fields(values)
        if fields is None:
            fields = self._values(read_record(record))
            if plan is None and len(self._plans) < _MOST_PLANS:
                self._plans[shape] = _Plan(record, self.names)
        return fields


_ALL: Final = Reader(_JUDGED)


Body: TypeAlias = Mapping[str, Json]
"""Body of a message, as far as the trace contains it."""


def body_of(record: TraceLine) -> Body:
    """Return the body in a record; empty: no body that can be read."""
    return _body(record.body or "")


@lru_cache(maxsize=1024)
def _body(text: str) -> Body:
    try:
        body = orjson.loads(text)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
