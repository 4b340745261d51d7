"""The schemas of the DataFrames in this package; that of a record is derived from its class."""

from enum import StrEnum
from typing import Final

import attrs
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from fsm.judge.trace_line import FIELDS, TraceLine, wire_name

_TYPES: Final[dict[type, DataType]] = {str: StringType(), int: LongType(), float: DoubleType()}


def _fields(**types: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types.items()])


_TEXT: Final = StringType()
_WHOLE: Final = LongType()

_WIRE: Final = _fields(**{name: _TYPES[kind] for name, kind in FIELDS.items()})

READ: Final = tuple(wire_name(field.name) for field in attrs.fields(TraceLine))
"""The fields of a record by which it is judged, as they are called in the trace."""

DECODED: Final = _fields(
    **{name: _TYPES[FIELDS[name]] for name in READ}, flaw=_TEXT, text=_TEXT, position=_WHOLE
)
"""A line: the fields of its record, or its flaw (why it is none) and its text; and how many lines
are before it in the piece of the file that one task reads."""


REST: Final = StructType([field for field in _WIRE.fields if field.name not in READ])
"""The fields of a record that no claim needs."""


class What(StrEnum):
    """Kinds of rows with the schema SAID, which workers return, and the fields that each kind sets.

    Attributes:
        PROCESS: A process: run, node, about (its folder), data.
        SILENT: A process whose files have no record: run (may be empty), node.
        UNREADABLE: A file that cannot be read: expected.
        FLAW: Something that a trace lacks: run, node, ln, expected.
        UNANSWERED: A request without a final answer: run, node, ln, expected.
        BAD: A line that is no record: about (its file), place, expected (why), data (its text).
        UNREAD: How many lines of a folder are no records: ln.
        ASIDE: Lines of a process that were set aside as no records: run (may be empty), node, ln.
        STEP: A violation of a state machine's claim by a transition: run, node, claim, ln, about,
            expected, data.
        FINDING: A violation of any other claim: run, node, claim, ln, about, expected.
        EVIDENCE: For claims about several processes: run, node, claim, place (the bucket of the
            keys), data (items).
        ENTITIES: How many entities a machine has: key, ln.
        USED: How often a transition occurred: key (the machine), data (the transition), ln.
        STAY: How often an entity stayed in a state for a time: key (the machine), about (the
            state), place (the time), ln.
    """

    PROCESS = "process"
    SILENT = "silent"
    UNREADABLE = "unreadable"
    FLAW = "flaw"
    UNANSWERED = "unanswered"
    BAD = "bad"
    UNREAD = "unread"
    ASIDE = "aside"
    STEP = "step"
    FINDING = "finding"
    EVIDENCE = "evidence"
    ENTITIES = "entities"
    USED = "used"
    STAY = "stay"


SAID: Final = _fields(
    what=_TEXT, run=_TEXT, node=_TEXT, claim=_TEXT, key=_TEXT, ln=_WHOLE, place=_WHOLE,
    about=_TEXT, expected=_TEXT, data=_TEXT,
)  # fmt: skip
"""Schema of the rows that the checks in workers return; `What` lists the kinds of rows."""

STEP: Final = _fields(ln=_WHOLE, t=DoubleType(), old=_TEXT, cause=_TEXT, new=_TEXT)
"""Schema of a record about a state machine transition, in the history of an entity."""

VIOLATION: Final = _fields(
    claim=_TEXT, run=_TEXT, node=_TEXT, ln=_WHOLE, about=_TEXT, expected=_TEXT, machine=_TEXT,
    actor=_TEXT, why=_TEXT, record=STEP, before=ArrayType(STEP),
)  # fmt: skip
"""Schema of a violation; for a transition, with the entity's records before, oldest first."""

PIECE: Final = _fields(folder=_TEXT, name=_TEXT, at=_WHOLE, data=BinaryType())
"""Schema of new bytes of a growing trace file: the file, their position, and the bytes."""

FILE: Final = _fields(folder=_TEXT, name=_TEXT)
"""Schema of a trace file: its name, and the folder whose files are checked together."""

QUARANTINE: Final = _fields(file=_TEXT, line=_WHOLE, reason=_TEXT, text=_TEXT)
"""Schema of a line of a trace file that is no valid record."""

PLACE: Final = _fields(file=_TEXT, block=_WHOLE, position=_WHOLE, reason=_TEXT, text=_TEXT)
"""Schema of a line that is no valid record, with its position in a piece of the file."""

WRITER: Final = _fields(run=_TEXT, node=_TEXT)
"""Schema of a process whose files have no record; the run may be empty."""

FACT: Final = _fields(
    run=_TEXT, node=_TEXT, ln=_WHOLE, wall_ns=_WHOLE, actor=_TEXT, k=_TEXT, op=_TEXT,
    machine=_TEXT, key=_TEXT, old=_TEXT, new=_TEXT, cause=_TEXT, type=_TEXT, mid=_TEXT,
    ref=_TEXT, code=_WHOLE, link=_TEXT,
)  # fmt: skip
"""Schema of a record with the fields that the history of a violation shows."""

PLACED: Final = _fields(of_run=_TEXT, of_node=_TEXT, of_ln=_WHOLE)
"""Fields that identify the violating record: run, node and number."""

HOLE: Final = _fields(run=_TEXT, node=_TEXT, after=_WHOLE, reason=_TEXT)
"""Schema of a gap in a trace, with the number of the record after the gap."""

STORY: Final = _fields(
    claim=_TEXT,
    **{field.name: field.dataType for field in PLACED},
    at=_WHOLE,
    **{field.name: field.dataType for field in FACT},
)
"""A record of the history of a violation: its claim, its place, and where in the history."""
