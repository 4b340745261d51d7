"""The declared machines as DataFrames: the rows that the actors run, nothing else."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, final

import attrs
from pyspark.sql import DataFrame, SparkSession

from fsm.table import Table
from spark.schemas import END, MACHINE, TRANSITION
from spark.small import small_frame

if TYPE_CHECKING:
    from specs.jsonvalue import JsonObject

__all__ = ["Tables", "tables_of"]


@final
@attrs.frozen
class Tables:
    """What the steps are joined with; all of it is small.

    Attributes:
        machines: machine, rest (its states that may end, in words).
        transitions: machine, old, cause, target.
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
        rows += [
            {
                "machine": table.name,
                "old": row.old,
                "cause": row.trigger.value,
                "target": row.target.value,
            }
            for row in table.rows
        ]
    return Tables(
        machines=small_frame(session, names, MACHINE),
        transitions=small_frame(session, rows, TRANSITION),
        ends=small_frame(session, ends, END),
    )
