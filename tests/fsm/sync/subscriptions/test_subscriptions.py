"""The subscription table against a model of it, and each pair's story by its table (I-M5..I-M7)."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fsm.engine import Step
from fsm.judge.trace_line import Verdict
from fsm.judge.verdict import judge
from fsm.sync.subscriptions import entity_of
from specs.trace import Op
from tests.fsm.traces import step, trace
from tests.support.chance import examples
from tests.support.lone_paths import lone_paths, told

RUNTIMES = st.sampled_from(["r1", "r2", "r3"])
ENTITIES = [f"comm://a.ex/o{n}" for n in range(3)]
PARTS = ["", "/changes", "/child", "/children/chat", "/children/chat/x"]
RESOURCES = st.sampled_from([one + part for one in ENTITIES for part in PARTS])
LISTS = st.lists(RESOURCES, max_size=4).map(tuple)
OBSERVERS = st.sampled_from(["h1", "h2", "h3"])

NAME = "node_subscription"
FREE = None
"""What the model writes for a path that needs no consent; else who is consented to."""


class SubscriptionTable(RuleBasedStateMachine):
    """A dictionary of pairs: whom the owner consented to; the empty set holds the path."""

    def __init__(self):
        super().__init__()
        self.core = lone_paths()
        self.pairs = {}
        self.steps = []

    def feed(self, happened, wanted, cause=None):
        rows = set(self.pairs)
        for reported in told(self.core, *happened):
            if isinstance(reported, Step):
                assert cause in {None, reported.cause}
                line = f"{reported.old or '[*]'} {reported.cause} {reported.new}"
                self.steps.append(step(line, reported.key, NAME))
            else:
                assert ((reported.key, reported.val) in rows) == (reported.op is Op.DEL)
                rows ^= {(reported.key, reported.val)}
        assert rows == set(wanted)
        self.pairs = wanted

    def paths(self, entity, runtime):
        return [one for one in self.pairs if one[1] == runtime and entity_of(one[0]) == entity]

    def ending(self, happened, gone, cause):
        self.feed(happened, {one: who for one, who in self.pairs.items() if not gone(one)}, cause)

    @rule(runtime=RUNTIMES, resources=LISTS)
    def subscribe(self, runtime, resources):
        wanted = {(r, runtime): FREE for r in resources} | self.pairs
        self.feed(("subscribe", runtime, resources), wanted, "subscribe")

    @rule(runtime=RUNTIMES, resources=LISTS)
    def subscribe_asking(self, runtime, resources):
        wanted = dict(self.pairs)
        for resource in resources:
            beside = [self.pairs[one] for one in self.paths(entity_of(resource), runtime)]
            known = next(filter(None, beside), frozenset())
            wanted.setdefault((resource, runtime), known)
        self.feed(("subscribe", runtime, resources, frozenset(resources)), wanted)

    @rule(entity=st.sampled_from(ENTITIES), runtime=RUNTIMES, observer=OBSERVERS)
    def consented(self, entity, runtime, observer):
        wanted = dict(self.pairs)
        for one in self.paths(entity, runtime):
            if wanted[one] is not FREE:
                wanted[one] |= {observer}
        self.feed(("consent", entity, runtime, observer), wanted, "consent")

    @rule(entity=st.sampled_from(ENTITIES), runtime=RUNTIMES, observer=OBSERVERS)
    def withdrawn(self, entity, runtime, observer):
        wanted = dict(self.pairs)
        for one in self.paths(entity, runtime):
            if wanted[one] is not FREE:
                wanted[one] -= {observer}
        self.feed(("withdraw", entity, runtime, observer), wanted, "withdraw")

    @rule(entity=st.sampled_from(ENTITIES), runtime=RUNTIMES, observer=OBSERVERS)
    def declined(self, entity, runtime, observer):
        wanted = dict(self.pairs)
        for one in self.paths(entity, runtime):
            if wanted[one] is not FREE:
                wanted[one] -= {observer}
            if wanted[one] == frozenset():
                del wanted[one]
        self.feed(("decline", entity, runtime, observer), wanted)

    @rule(entity=st.sampled_from(ENTITIES))
    def opened(self, entity):
        wanted = {
            one: FREE if entity_of(one[0]) == entity and who == frozenset() else who
            for one, who in self.pairs.items()
        }
        self.feed(("open", entity), wanted, "consent")

    @rule(runtime=RUNTIMES, resources=LISTS)
    def unsubscribe(self, runtime, resources):
        gone = {(r, runtime) for r in resources}
        self.ending(("unsubscribe", runtime, resources), gone.__contains__, "unsubscribe")

    @rule(runtime=RUNTIMES)
    def runtime_gone(self, runtime):
        self.ending(("remove_runtime", runtime), lambda one: one[1] == runtime, "session-over")

    @rule(address=RESOURCES)
    def address_gone(self, address):
        def below(one):
            return one[0] == address or one[0].startswith(f"{address}/")

        self.ending(("remove_address", address), below, "address-released")

    def teardown(self):
        for runtime in ("r1", "r2", "r3"):
            self.runtime_gone(runtime)
        assert judge(trace(*self.steps)).verdict is Verdict.CONFORMANT
        tables = [value for value in vars(self.core).values() if isinstance(value, dict)]
        assert tables == [{}] * len(tables)

    @invariant()
    def the_tables_are_equal(self):
        assert len(self.core) == len(self.pairs)
        for (resource, runtime), who in self.pairs.items():
            is_held = who == frozenset()
            assert (runtime in self.core.subscribers(resource)) != is_held
            assert (runtime in self.core.held(resource)) == is_held
            assert resource in self.core.resources_of(runtime)
            if who is not FREE:
                assert self.core.observes(runtime, entity_of(resource))


TestSubscriptionTable = SubscriptionTable.TestCase
TestSubscriptionTable.settings = settings(max_examples=examples(60), stateful_step_count=50)


def test_a_path_goes_with_the_last_lease_of_its_runtime():
    """SYN-20: a path whose observers are gone without a word is not kept for them."""
    core, changes = lone_paths(), "comm://a.ex/o1/changes"
    told(core, "subscribe", "r1", (changes,), frozenset({changes}))
    for observer in ("h1", "h2"):
        told(core, "consent", "comm://a.ex/o1", "r1", observer)
    moves = []
    for observer in ("h1", "h2"):
        effects = told(core, "lapse", "comm://a.ex/o1", "r1", observer)
        moves.append([(one.old, one.cause, one.new) for one in effects if isinstance(one, Step)])
    assert moves[0] == []
    assert moves[1][-1] == ("held", "expire", "removed")
