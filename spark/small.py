"""Small DataFrames out of Python data, without starting Python workers for them."""

import json
from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

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
