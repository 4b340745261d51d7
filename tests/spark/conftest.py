"""One Spark for all tests: it takes seconds to start."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark.session import Cluster, Effort, open_session


@pytest.fixture(scope="session")
def spark_session() -> Iterator[SparkSession]:
    with open_session(Cluster("local[2]"), effort=Effort.SHORT) as session:
        yield session
