"""Python workers begin their tasks without what no fold needs."""

import os
import sys
from collections.abc import Iterator

import orjson
import pyarrow as pa
import pytest

from spark.workers.folds import iterating

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]


def looked_at(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
    """Say in which process a task runs, and what is loaded there."""
    told = {
        "parent": os.getppid(), "file": sys.modules["pyspark"].__file__,
        "archives": [one for one in sys.path if one.endswith(".zip")],
        "loaded": [name for name in ("fsm.judge.verdict", "pandas") if name in sys.modules],
    }  # fmt: skip
    for batch in batches:
        yield pa.array([orjson.dumps(told).decode()] * len(batch))


def test_workers_use_the_installed_pyspark_and_no_pandas(spark_session):
    column = iterating(looked_at, "string")("id").alias("told")
    rows = spark_session.range(0, 4, 1, 4).select(column).collect()
    told = [orjson.loads(row["told"]) for row in rows]
    assert len({one.pop("parent") for one in told}) == 1
    installed = sys.modules["pyspark"].__file__
    assert told == [{"file": installed, "archives": [], "loaded": ["fsm.judge.verdict"]}] * 4
