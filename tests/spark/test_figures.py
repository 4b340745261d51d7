"""The figures of a report, against the same calculated from the records by other means."""

import math
import random
from collections import Counter, defaultdict

import pytest

from fsm.judge.trace_files import Missing
from spark.load import read_source
from spark.report.figures import BINS, QUANTILES, Way, figures_of, select_records
from tests.support.trace.trace_files import write_trace

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

BEGAN = 1_700_000_000_000_000_000
HOLE = 40
REQUESTS = 90


class Writer:
    """A process with a clock of its own."""

    def __init__(self, name, clock):
        self.name, self.clock, self.records = name, clock, []

    def write(self, at, actor, **fields):
        stamp = {
            "run": f"r-{self.name}", "node": self.name, "ln": len(self.records) + 1,
            "wall_ns": BEGAN + int(at * 1e9), "mono_ns": 0, "t": at + self.clock, "actor": actor,
        }  # fmt: skip
        self.records.append(stamp | fields)

    def msg(self, at, op, mid, **fields):
        self.write(at, fields.pop("actor", "bus"), k="msg", op=op, mid=mid, **fields)


def written_trace():
    """Two runtimes and a node, whose requests go all ways, and some both."""
    dice = random.Random(5)  # noqa: S311 - reproducible, not secret
    a, b, node = Writer("a", 7.0), Writer("b", 900.5), Writer("mn", 0.0)
    for one in (a, b, node):
        one.write(0.0, "trace", k="start", why="protofly.trace/1")
    a.write(0.1, "pq", k="link", op="open", link="l1", kind="p2p")
    b.write(0.1, "ph", k="link", op="open", link="l1", kind="p2p")
    node.write(0.1, "bus", k="link", op="open", link="mn-1", kind="mn")
    a.write(0.2, "pq", k="state", op="step", machine="p2p_connection", key="l1",
            old="[*]", cause="started", new="created")  # fmt: skip
    a.write(0.7, "pq", k="state", op="step", machine="p2p_connection", key="l1",
            old="in-progress", cause="established", new="live")  # fmt: skip
    at = 1.0
    for number in range(REQUESTS):
        ways = dice.choice(
            [("direct",), ("node",), ("node",), ("service",), (), ("direct", "node")]
        )
        mid = f"hyperty://a.ex/1#{number}"
        to = "domain://registry.a.ex" if ways == ("service",) else "hyperty://a.ex/2"
        ends = {"type": "read", "from": "hyperty://a.ex/1", "to": to}
        a.msg(at, "submit", mid, **ends)
        for way in ways:
            link = "l1" if way == "direct" else "mn-0"
            a.msg(at + 0.001, "xmit", mid, link=link, actor=way, **ends)
            if way != "direct":
                node.msg(at + 0.002, "rcv", mid, link="mn-0", **ends)
                node.msg(at + 0.002, "xmit", mid, link="mn-1", **ends)
        b.msg(at + 0.003, "submit", mid, **ends)
        answer = {"ref": mid, "type": "response", "from": to, "to": "hyperty://a.ex/1"}
        took = dice.expovariate(30 if ways == ("direct",) else 15)
        if dice.random() < 0.3:
            a.msg(at + took / 2, "callback", f"{mid}!183", code=183, **answer)
        if dice.random() < 0.9:
            a.msg(at + took, "callback", f"{mid}!200", code=200, **answer)
        if dice.random() < 0.2:
            a.msg(at + 3, "callback", f"{mid}>other!200", code=200, **answer)
        at += dice.expovariate(5)
    return [a, b, node]


@pytest.fixture(scope="module")
def writers():
    return written_trace()


@pytest.fixture(scope="module")
def figures(writers, spark_session, tmp_path_factory):
    place = tmp_path_factory.mktemp("trace")
    for one in writers:
        lines = [record for record in one.records if (one.name, record["ln"]) != ("a", HOLE)]
        write_trace(place / one.name, [*lines, "garbage"])
    source = read_source(spark_session, [str(place)])
    gaps = [Missing("r-a", "a", HOLE + 1, "missing"), Missing("r-z", "z", 3, "no trace at all")]
    return figures_of(spark_session, select_records(source.records), gaps)


@pytest.fixture(scope="module")
def lines(writers):
    every = [record for one in writers for record in one.records]
    return [one for one in every if (one["node"], one["ln"]) != ("a", HOLE)]


def sends(lines):
    """What was written on links, with the way that it went."""
    direct = {(one["node"], one["link"]) for one in lines if one.get("kind") == "p2p"}
    for one in lines:
        if one.get("op") == "xmit":
            is_direct = (one["node"], one["link"]) in direct
            yield one, Way.DIRECT if is_direct else Way.NODE


def test_when_each_process_wrote(figures, lines):
    by_node = defaultdict(list)
    for one in lines:
        by_node[one["node"]].append(one["wall_ns"] / 1e9)
    written_trace = {one.node: (one.began, one.ended, one.records) for one in figures.processes}
    assert written_trace == {
        node: (pytest.approx(min(at), abs=1e-6), pytest.approx(max(at), abs=1e-6), len(at))
        for node, at in by_node.items()
    }
    assert figures.others == 0


def test_a_hole_lies_between_the_records_around_it(figures, lines):
    times = {one["ln"]: one["wall_ns"] / 1e9 for one in lines if one["node"] == "a"}
    (hole,) = figures.holes
    assert (hole.node, hole.reason) == ("a", "missing")
    around = hole.began, hole.ended
    assert around == pytest.approx((times[HOLE - 1], times[HOLE + 1]), abs=1e-6)


def test_messages_are_counted_by_sender_route_and_time(figures, lines):
    first, last = min(one["wall_ns"] for one in lines), max(one["wall_ns"] for one in lines)
    width = (last - first) // BINS + 1
    counts = Counter(
        (one["node"], way, (one["wall_ns"] - first) // width) for one, way in sends(lines)
    )
    written_trace = {
        (hop.sender, hop.way, at): count
        for hop in figures.hops
        for at, count in enumerate(hop.counts)
        if count
    }
    assert written_trace == counts
    for hop in figures.hops:
        assert hop.mean * hop.seconds * BINS == pytest.approx(hop.messages)
        assert hop.busiest * hop.seconds == pytest.approx(max(hop.counts))


def test_the_p2p_share_counts_each_message_once(figures, lines):
    ways = defaultdict(set)
    services = set()
    for one, way in sends(lines):
        ways[one["mid"]].add(way)
        if one["to"].startswith("domain://"):
            services.add(one["mid"])
    direct = {mid for mid, taken in ways.items() if Way.DIRECT in taken}
    traffic = figures.traffic
    assert traffic.direct == len(direct)
    assert traffic.services == len(services - direct)
    assert traffic.by_node == len(set(ways) - direct - services)
    assert traffic.share == pytest.approx(len(direct) / (traffic.direct + traffic.by_node))


def test_latencies_are_those_of_requests_that_used_one_route(figures, lines):
    ways = defaultdict(set)
    for one, way in sends(lines):
        if one["node"] == "a":
            ways[one["mid"]].add(way)
    began = {
        one["mid"]: one["t"] for one in lines if (one["node"], one.get("op")) == ("a", "submit")
    }
    took = defaultdict(list)
    answered = set()
    for one in sorted(lines, key=lambda one: one["wall_ns"]):
        is_final = one.get("op") == "callback" and one["code"] >= 200
        if not is_final or one["ref"] in answered or one["from"].startswith("domain:"):
            continue
        answered.add(one["ref"])
        if len(ways[one["ref"]]) == 1 and one["ref"] in began:
            (way,) = ways[one["ref"]]
            took[way].append(one["t"] - began[one["ref"]])
    assert set(figures.latencies) == set(took) == {Way.DIRECT, Way.NODE}
    for way, seconds in took.items():
        seconds.sort()
        least = [seconds[max(math.ceil(part * len(seconds)) - 1, 0)] for part in QUANTILES]
        assert figures.latencies[way].requests == len(seconds)
        assert figures.latencies[way].quantiles == pytest.approx(least)
        assert figures.latencies[way].median == pytest.approx(least[10])


def test_records_of_components_and_set_ups(figures, lines):
    written_trace = {(one.actor, one.op): one.records for one in figures.components}
    assert written_trace == Counter((one["actor"], one["op"]) for one in lines if one["k"] == "msg")
    (set_up,) = figures.set_ups
    assert (set_up.machine, set_up.node) == ("p2p_connection", "a")
    assert set_up.seconds == pytest.approx(0.5)
