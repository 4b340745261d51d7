"""The subscription table against a model of it, and each pair's story by its table (I-M5..I-M7)."""

import tracemalloc

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fsm.cores.refused import Refused
from fsm.cores.subscription_terms import (
    AddressGone,
    RuntimeGone,
    Subscribe,
    Unsubscribe,
    entity_of,
)
from fsm.cores.subscriptions import SubscriptionCore
from fsm.replay import judge
from fsm.trace_line import Verdict
from specs.limits import MAX_SUBSCRIPTIONS
from specs.trace import Op
from tests.support.traces import step, trace

RUNTIMES = st.sampled_from(["r1", "r2", "r3"])
ENTITIES = [f"comm://a.ex/o{n}" for n in range(3)]
PARTS = ["", "/changes", "/child", "/children/chat", "/children/chat/x"]
RESOURCES = st.sampled_from([one + part for one in ENTITIES for part in PARTS])
LISTS = st.lists(RESOURCES, max_size=4).map(tuple)


NAME = "node_subscription"
ENDS = {Op.ADD: "active", Op.DEL: "removed"}


def effects(core, happened):
    """Each change of the table and, right before it, the step it is made by."""
    told = core.feed(happened, 0.0)
    return list(zip(told[::2], told[1::2], strict=True))


class SubscriptionTable(RuleBasedStateMachine):
    """A set of pairs."""

    def __init__(self):
        super().__init__()
        self.core = SubscriptionCore()
        self.pairs = set()
        self.steps = []

    def feed(self, happened, wanted, cause):
        told = set(self.pairs)
        for moved, row in effects(self.core, happened):
            pair = (row.key, row.val)
            assert (pair in told) == (row.op is Op.DEL)
            assert (moved.key, moved.new, moved.cause) == ("|".join(pair), ENDS[row.op], cause)
            told ^= {pair}
            self.steps.append(step(f"{moved.old or '[*]'} {cause} {moved.new}", moved.key, NAME))
        assert told == wanted
        self.pairs = wanted

    @rule(runtime=RUNTIMES, resources=LISTS)
    def subscribe(self, runtime, resources):
        wanted = self.pairs | {(r, runtime) for r in resources}
        self.feed(Subscribe(runtime, resources), wanted, "subscribe")

    @rule(runtime=RUNTIMES, resources=LISTS)
    def unsubscribe(self, runtime, resources):
        wanted = self.pairs - {(r, runtime) for r in resources}
        self.feed(Unsubscribe(runtime, resources), wanted, "unsubscribe")

    @rule(runtime=RUNTIMES)
    def runtime_gone(self, runtime):
        wanted = {(r, one) for r, one in self.pairs if one != runtime}
        self.feed(RuntimeGone(runtime), wanted, "session-over")

    @rule(address=RESOURCES)
    def address_gone(self, address):
        below = {p for p in self.pairs if p[0] == address or p[0].startswith(f"{address}/")}
        self.feed(AddressGone(address), self.pairs - below, "address-released")

    def teardown(self):
        for runtime in ("r1", "r2", "r3"):
            self.runtime_gone(runtime)
        assert judge(trace(*self.steps)).verdict is Verdict.CONFORMANT

    @invariant()
    def the_tables_are_equal(self):
        assert len(self.core) == len(self.pairs)
        for resource, runtime in self.pairs:
            assert runtime in self.core.subscribers(resource)
            assert resource in self.core.resources_of(runtime)


TestSubscriptionTable = SubscriptionTable.TestCase


def test_a_session_has_no_more_paths_than_its_share():
    core = SubscriptionCore()
    resources = tuple(f"comm://a.ex/o{n}" for n in range(MAX_SUBSCRIPTIONS + 1))

    (effect,) = core.feed(Subscribe("r1", resources), 0.0)

    assert isinstance(effect, Refused)
    assert (effect.code, len(core)) == (413, 0)


def test_an_entity_is_scheme_domain_and_first_segment():
    assert entity_of("comm://a.ex/o1/children/chat") == "comm://a.ex/o1"
    assert entity_of("comm://a.ex/o1") == "comm://a.ex/o1"
    assert entity_of("comm://a.ex") == "comm://a.ex"


def test_a_pair_costs_no_more_than_its_places_in_the_tables():
    """An entity as an object and its key would cost 165 bytes more each (measured)."""
    resources = tuple(f"comm://a.ex/o{n}" for n in range(MAX_SUBSCRIPTIONS))
    core = SubscriptionCore()
    core.feed(Subscribe("r1", resources), 0.0)
    tracemalloc.start()
    for number in range(2, 12):
        core.feed(Subscribe(f"r{number}", resources), 0.0)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    # A dictionary of one entry becomes one of ten: nothing else is kept of a pair.
    assert taken / (10 * MAX_SUBSCRIPTIONS) < 100


@pytest.mark.parametrize(
    ("happened", "cause"),
    [
        (Unsubscribe("r1", ("comm://a.ex/o1/changes",)), "unsubscribe"),
        (RuntimeGone("r1"), "session-over"),
        (AddressGone("comm://a.ex/o1"), "address-released"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_subscription_ends_by_what_ended_it(happened, cause):
    core = SubscriptionCore()
    core.feed(Subscribe("r1", ("comm://a.ex/o1/changes",)), 0.0)

    ((moved, _),) = effects(core, happened)

    assert (moved.key, moved.old, moved.cause) == ("comm://a.ex/o1/changes|r1", "active", cause)
