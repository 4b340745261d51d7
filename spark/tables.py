"""The declared machines as DataFrames: the rows that the actors run, nothing else."""

from collections.abc import Iterable
from typing import final

import attrs
from pyspark.sql import DataFrame, SparkSession

from fsm.table import Table

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
    names, rows = [], []
    ends: list[tuple[str, str, bool]] = []
    for table in machines:
        resting = [state.value for state in table.states if state in table.may_end]
        names.append((table.name, " or ".join(repr(state) for state in resting)))
        ends += [(table.name, state, True) for state in resting]
        rows += [(table.name, row.old, row.trigger.value, row.target.value) for row in table.rows]
    return Tables(
        machines=session.createDataFrame(names, "machine string, rest string"),
        transitions=session.createDataFrame(
            rows, "machine string, old string, cause string, target string"
        ),
        ends=session.createDataFrame(ends, "machine string, new string, rests boolean"),
    )
