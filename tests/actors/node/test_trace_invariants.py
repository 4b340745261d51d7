"""What a whole node traces keeps the claims on addresses and paths (I-A1..I-A7, I-M4..I-M7).

They are notified again here from rows, steps and hops alone, by other means than the tables use.
"""

from collections import defaultdict
from random import Random

import pytest

from fsm.judge.trace_line import Verdict, read_record
from fsm.judge.verdict import judge
from fsm.registry.node_rights import Observation
from specs.addresses.address import domain_of, scheme_of
from specs.trace import Kind, Op
from tests.actors.node.node_walk import Walk, is_of
from tests.support.node.node_peer import MN, open_world
from tests.support.trace.trace_files import records, whole

STEPS = 300


class Reader:
    """Reads a trace from its beginning, and holds each record against what was before."""

    def __init__(self, walk):
        self.walk = walk
        self.owners = {}
        self.histories = defaultdict(list)
        self.active = defaultdict(set)
        self.left = {}
        self.last = None

    def read(self, fact):
        if fact.k is Kind.TABLE and fact.table == "alloc":
            self.row(fact)
        elif fact.k is Kind.STATE:
            self.step(fact)
        elif fact.k is Kind.MSG:
            self.message(fact)

    def row(self, fact):
        if fact.op is Op.ADD:
            assert fact.key not in self.owners, "I-A3: it has an owner"
            self.owners[fact.key] = fact.val
        else:
            assert self.owners.pop(fact.key) == fact.val, "I-A6: only the owner's is released"

    def step(self, fact):
        match fact.machine:
            case "address":
                self.histories[fact.key].append(fact.new)
            case "node_subscription":
                resource, _, runtime = fact.key.partition("|")
                (
                    self.active[resource].add
                    if fact.new == "active"
                    else self.active[resource].discard
                )(runtime)
            case "session" if fact.new in {"closed", "expired"}:
                self.left[fact.key.split("|")[1]] = True
            case "session":
                assert self.nothing_of(fact.key.split("|")[1]), "I-A7, I-M4"

    def nothing_of(self, runtime):
        """When a new session begins, nothing is left of the one before."""
        if not self.left.pop(runtime, False):
            return True
        held = [one for one, owner in self.owners.items() if owner == runtime]
        return not held and not any(runtime in there for there in self.active.values())

    def message(self, fact):
        match fact.op:
            case Op.RCV:
                self.last = self.walk.links[fact.link]
            case Op.ADMIT:
                answers = fact.type == "response" and self.last in self.active[fact.from_]
                assert answers or is_of(self.last, fact.from_, self.owners), "I-A2, I-A3"
            case Op.PUBLISH:
                echo = set() if "/children/" in fact.to else {self.last}
                assert fact.targets == len(self.active[fact.to] - echo), "I-M5"
            case Op.XMIT if fact.from_.startswith(MN):
                assert fact.type in {"response", "execute"}, "I-M13"
            case Op.XMIT if "/changes" in fact.to or "/children/" in fact.to:
                runtime = self.walk.links[fact.link]
                hears = runtime in self.active[fact.to] or is_of(runtime, fact.to, self.owners)
                assert hears, "I-M6, I-M7"


@pytest.mark.parametrize("observation", Observation)
@pytest.mark.parametrize("seed", range(6))
async def test_for_any_acts_of_peers_the_trace_of_a_node_keeps_the_claims(
    seed, observation, autojump_clock
):
    random = Random(f"{seed}{observation}")  # noqa: S311 - no secret
    async with open_world(observation=observation) as world:
        walk = Walk(world, random)
        for _ in range(STEPS):
            await walk.step()
        for runtime in list(walk.peers):
            await walk.leave(runtime)
    reader = Reader(walk)
    for fact in world.tracer.facts:
        reader.read(fact)

    # I-A1; a runtime that is back may claim what was released of it.
    history = ("allocated", "released")
    for steps in map(tuple, reader.histories.values()):
        assert steps == history * (len(steps) // 2)
    assert not reader.owners  # I-A7
    for scheme, number, addresses in walk.granted:  # I-A4
        assert len(set(addresses)) == number
        assert {(scheme_of(one), domain_of(one)) for one in addresses} == {(scheme, "a.ex")}
    reported = [one for one in world.tracer.facts if one.k is Kind.STATE]
    trace = [read_record(line) for line in records(whole(reported))]
    assert judge(trace).verdict is Verdict.CONFORMANT
    assert all(reader.active[one] == set() for one in reader.active)
