"""Spark and the reference judge say the same, entity by entity."""

from collections import defaultdict

import pytest

from fsm.judge.replay import judge
from fsm.judge.trace_line import read_record
from fsm.machine_list import MACHINES
from spark.claims import find_violations
from spark.load import parse, read_lines, records
from spark.nodes import holes, judge_nodes
from spark.stories import tell_stories
from spark.tables import tables_of
from tests.support.trace.trace_files import generated, write_trace

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

TRACES = 1000
FILES = 8


def spark_judges(session, path):
    """Violations per entity in the order of the reference, and flaws per node."""
    parsed = parse(read_lines(session, [str(path)]).lines).localCheckpoint()
    told, nodes = records(parsed), judge_nodes(parsed).localCheckpoint()
    stories = tell_stories(told, nodes, tables_of(session, MACHINES.values())).localCheckpoint()
    by_entity = defaultdict(list)
    for row in find_violations(stories, holes(told, nodes)).orderBy("ln", "rank").collect():
        entity = (row["run"], row["node"], row["machine"], row["key"])
        by_entity[entity].append((row["ln"], row["claim"], row["expected"]))
    flaws = {(row["run"], row["node"]): set(row["flaws"]) for row in nodes.collect()}
    return dict(by_entity), flaws


def replay_judges(traces):
    judged = judge(read_record(told) for trace in traces for told in trace)
    by_entity = {
        (one.entity.run, one.entity.node, one.entity.machine, one.entity.key): [
            (broken.ln, broken.claim.value, broken.expected) for broken in one.violations
        ]
        for one in judged.entities
        if one.violations
    }
    return by_entity, {(node.run, node.node): set(node.flaws) for node in judged.nodes}


def test_spark_and_replay_agree_on_generated_and_mutated_traces(spark_session, tmp_path):
    traces = generated(TRACES, seed=20)
    for part in range(FILES):
        lines = [told for trace in traces[part::FILES] for told in trace]
        write_trace(tmp_path, lines, part)
    expected, flaws = replay_judges(traces)

    found, found_flaws = spark_judges(spark_session, tmp_path)

    assert found == expected
    assert found_flaws == flaws


def test_the_generated_traces_break_every_claim_and_keep_them_too():
    traces = generated(TRACES, seed=20)
    expected, _ = replay_judges(traces)
    assert {claim for broken in expected.values() for _, claim, _ in broken} == {
        "declared_step",
        "starts_at_initial",
        "no_gap_between_steps",
        "ends_at_rest",
        "refused_step",
        "unknown_machine",
    }
    assert TRACES / 4 < len({entity[0] for entity in expected}) < TRACES / 2
