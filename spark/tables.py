"""The declared machines as DataFrames, made from Python data without Python workers."""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, final

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from fsm.table import Table
from spark.schemas import END, MACHINE, TRANSITION
from specs.jsonvalue import Json

__all__ = ["small_frame"]


def small_frame(
    session: SparkSession, rows: Iterable[Mapping[str, Json]], schema: StructType
) -> DataFrame:
    """Turn rows into a DataFrame.

    `createDataFrame` would run a Python process per task, which takes a second and needs
    the same Python on every machine; a literal travels with the plan.
    """
    text = json.dumps([dict(row) for row in rows])
    # An array of rows, read by the JVM; one output row per element.
    parsed = F.from_json(F.lit(text), ArrayType(schema))
    return session.range(1).select(F.inline(parsed))


if TYPE_CHECKING:
    from specs.jsonvalue import JsonObject

__all__ = ["Tables", "tables_of"]


@final
@attrs.frozen
class Tables:
    """What the steps are joined with; all of it is small.

    Attributes:
        machines: machine, rest (its states that may end, in words).
        transitions: machine, old, cause, targets (one, or more where guards decide),
            wanted (the targets in words).
        ends: machine, new, rests (true): the states that may end.
    """

    machines: DataFrame
    transitions: DataFrame
    ends: DataFrame


def tables_of(session: SparkSession, machines: Iterable[Table]) -> Tables:
    """Turn tables into DataFrames."""
    names: list[JsonObject] = []
    rows: list[JsonObject] = []
    ends: list[JsonObject] = []
    for table in machines:
        resting = [state.value for state in table.states if state in table.may_end]
        names.append({"machine": table.name, "rest": " or ".join(map(repr, resting))})
        ends += [{"machine": table.name, "new": state, "rests": True} for state in resting]
        rows += [_steps(table, *pair) for pair in _pairs(table)]
    return Tables(
        machines=small_frame(session, names, MACHINE),
        transitions=small_frame(session, rows, TRANSITION),
        ends=small_frame(session, ends, END),
    )


def _pairs(table: Table) -> Iterable[tuple[str, str]]:
    return dict.fromkeys((row.old, row.trigger.value) for row in table.rows)


def _steps(table: Table, old: str, cause: str) -> "JsonObject":
    targets = [target.value for target in table.targets(old, cause)]
    wanted = " or ".join(map(repr, targets))
    return {
        "machine": table.name, "old": old, "cause": cause, "targets": [*targets], "wanted": wanted
    }  # fmt: skip
