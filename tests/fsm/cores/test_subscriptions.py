"""The subscription table against a model of it (I-M5..I-M7)."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fsm.cores.refused import Refused
from fsm.cores.subscriptions import (
    AddressGone,
    RuntimeGone,
    Subscribe,
    SubscriptionCore,
    Unsubscribe,
    entity_of,
)
from specs.limits import MAX_SUBSCRIPTIONS
from specs.trace import Op

RUNTIMES = st.sampled_from(["r1", "r2", "r3"])
ENTITIES = [f"comm://a.ex/o{n}" for n in range(3)]
PARTS = ["", "/changes", "/children/chat", "/children/chat/x"]
RESOURCES = st.sampled_from([one + part for one in ENTITIES for part in PARTS])
LISTS = st.lists(RESOURCES, max_size=4).map(tuple)


class SubscriptionTable(RuleBasedStateMachine):
    """A set of pairs."""

    def __init__(self):
        super().__init__()
        self.core = SubscriptionCore()
        self.pairs = set()

    def feed(self, happened, wanted):
        told = set(self.pairs)
        for row in self.core.feed(happened, 0.0):
            pair = (row.key, row.val)
            assert (pair in told) == (row.op is Op.DEL)
            told ^= {pair}
        assert told == wanted
        self.pairs = wanted

    @rule(runtime=RUNTIMES, resources=LISTS)
    def subscribe(self, runtime, resources):
        self.feed(Subscribe(runtime, resources), self.pairs | {(r, runtime) for r in resources})

    @rule(runtime=RUNTIMES, resources=LISTS)
    def unsubscribe(self, runtime, resources):
        self.feed(Unsubscribe(runtime, resources), self.pairs - {(r, runtime) for r in resources})

    @rule(runtime=RUNTIMES)
    def runtime_gone(self, runtime):
        self.feed(RuntimeGone(runtime), {(r, one) for r, one in self.pairs if one != runtime})

    @rule(address=RESOURCES)
    def address_gone(self, address):
        below = {p for p in self.pairs if p[0] == address or p[0].startswith(f"{address}/")}
        self.feed(AddressGone(address), self.pairs - below)

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
