"""Traces of the browser runtime, as Spark judges them."""

import subprocess
from pathlib import Path

import orjson
import pytest

from spark.pipeline import Question
from spark.run import Order, carry_out
from tests.support.node.node_process import DOMAIN, node_process
from tests.web.npm import installed, needs_node

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), needs_node]

TALK = Path(__file__).parents[1] / "web" / "talk.mjs"


def test_runtimes_of_browsers_and_their_node_are_conformant(spark_session, tmp_path):
    installed("ws/package.json")
    traces = tmp_path / "traces"
    options = ("--domain", DOMAIN, "--allow-legacy", "--trace", str(traces))
    with node_process(tmp_path / "log", *options) as node:
        command = ["node", str(TALK), node.ready["url"], DOMAIN, str(traces)]
        done = subprocess.run(  # noqa: S603 - ours
            command, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        assert node.stop() == 0
    steps = carry_out(spark_session, Order(question=Question(traces=(str(traces),)))).as_json()
    assert orjson.loads(steps[-1])["verdict"] == "conformant", steps
