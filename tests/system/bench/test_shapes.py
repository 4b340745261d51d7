"""What benches of Spark write: traces of the shapes that they promise, and a net."""

from collections import Counter
from xml.etree import ElementTree as ET

import pyarrow.parquet as pq
import pytest

from bench.growth import write_columns
from bench.machines import by_columns
from bench.peers import net_of
from fsm.judge.trace_line import Verdict
from fsm.machine_list import MACHINES


def steps_by_entity(directory):
    found = Counter()
    for file in directory.rglob("*.parquet"):
        keys = pq.ParquetFile(file).read(["key"]).column("key").drop_null().to_pylist()
        found.update((file.parent.name, key) for key in keys)
    return found


@pytest.mark.parametrize("shape", ["many", "one", "skewed"])
def test_a_trace_of_each_shape_keeps_every_claim_on_machines(shape, tmp_path):
    records = write_columns(tmp_path, shape, 20_000)

    files = [*tmp_path.rglob("*.parquet")]
    assert sum(pq.ParquetFile(file).metadata.num_rows for file in files) == records
    assert by_columns(tmp_path) is Verdict.CONFORMANT


def test_one_of_a_hundred_entities_has_nine_of_ten_steps(tmp_path):
    write_columns(tmp_path, "skewed", 40_000)

    steps = [times for _, times in steps_by_entity(tmp_path).most_common()]
    frequent = len(steps) // 100
    assert sum(steps[:frequent]) == 0.9 * sum(steps)


def test_one_entity_has_all_steps(tmp_path):
    write_columns(tmp_path, "one", 1_000)

    assert [*steps_by_entity(tmp_path).values()] == [1_000]


def test_a_machine_is_a_net_with_a_place_for_each_state():
    table = MACHINES["session"]

    net = ET.fromstring(net_of(table, "closed"))  # noqa: S314 - our own text

    tags = Counter(one.tag.rpartition("}")[2] for one in net.iter())
    assert tags["transition"] == len(table.rows)
    assert tags["arc"] == 2 * len(table.rows)
    # And once it is said in which of them histories end.
    assert tags["place"] == len(table.states) + 1 + 1
