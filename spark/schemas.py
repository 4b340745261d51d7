"""The shapes of DataFrames; that of a record is derived, so that it cannot drift."""

from typing import Final, get_args, get_type_hints

import attrs
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from specs.trace import Fact, Stamp

__all__ = [
    "END", "ENTITY", "MACHINE", "NODE", "QUARANTINE", "REQUIRED", "STEP", "TRACE", "TRANSITION",
    "VIOLATION",
]  # fmt: skip


def _type_of(hint: object) -> DataType:
    kinds = [kind for kind in (get_args(hint) or (hint,)) if isinstance(kind, type)]
    if any(issubclass(kind, float) for kind in kinds):
        return DoubleType()
    if any(issubclass(kind, int) for kind in kinds):
        return LongType()
    return StringType()


def _fields_of(record: type[Fact] | type[Stamp]) -> list[StructField]:
    hints = get_type_hints(record)
    names = [field.name for field in attrs.fields(record)]
    return [StructField(name.rstrip("_"), _type_of(hints[name])) for name in names]


def _texts(*names: str) -> StructType:
    return StructType([StructField(name, StringType()) for name in names])


TRACE: Final = StructType(_fields_of(Stamp) + _fields_of(Fact))
"""A record: the stamp, then what happened. Every field may be absent."""

REQUIRED: Final = (*(field.name for field in attrs.fields(Stamp)), "k")
"""Fields that no record may lack."""

ENTITY: Final = ("run", "node", "machine", "key")
"""What tells entities apart."""

STEP: Final = StructType(
    [
        StructField("ln", LongType()),
        StructField("t", DoubleType()),
        StructField("old", StringType()),
        StructField("cause", StringType()),
        StructField("new", StringType()),
    ]
)
"""A state record, as a timeline shows it."""

VIOLATION: Final = StructType(
    [
        StructField("claim", StringType()),
        *(StructField(name, StringType()) for name in ENTITY),
        *STEP.fields,
        StructField("actor", StringType()),
        StructField("why", StringType()),
        StructField("expected", StringType()),
        StructField("before", ArrayType(STEP)),
    ]
)
"""A record that breaks a claim, and the entity's records before it, oldest first."""

QUARANTINE: Final = StructType(
    [
        StructField("file", StringType()),
        StructField("line", LongType()),
        StructField("reason", StringType()),
        StructField("text", StringType()),
    ]
)
"""A line that is no record."""

NODE: Final = StructType(
    [
        StructField("run", StringType()),
        StructField("node", StringType()),
        StructField("records", LongType()),
        StructField("ended", BooleanType()),
        StructField("dropped", BooleanType()),
        StructField("missing", LongType()),
        StructField("doubled", LongType()),
        StructField("quarantined", LongType()),
        StructField("flaws", ArrayType(StringType())),
    ]
)
"""The trace of one node as a whole: how many records it has, how many its numbers say
are missing, how many have a number used before, how many lines of its files are none."""

MACHINE: Final = _texts("machine", "rest")
"""A declared machine, and in words its states that may end."""

TRANSITION: Final = _texts("machine", "old", "cause", "wanted").add(
    "targets", ArrayType(StringType())
)
"""Where a trigger may lead from a state, and the same in words."""

END: Final = _texts("machine", "new").add("rests", BooleanType())
"""A state that may end."""
