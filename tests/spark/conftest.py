"""One Spark for all tests: it takes seconds to start."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark.session import open_session


@pytest.fixture(scope="session")
def spark_session() -> Iterator[SparkSession]:
    with open_session("local[2]") as session:
        yield session
