"""The allocation table against a model of it (I-A1..I-A7)."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fsm.cores.allocation import AllocationCore
from fsm.cores.allocation_terms import (
    Allocate,
    Bind,
    Claim,
    Free,
    FreeBlock,
    Release,
)
from fsm.cores.refused import Refused
from fsm.engine import Step
from specs.limits import MAX_ADDRESSES

OWNERS = st.sampled_from(["r1", "r2", "r3"])
KEYS = st.sampled_from([None, "k1", "k2"])
NAMES = st.integers(0, 30).map(lambda n: f"hyperty://a.ex/{n}")
FOREIGN = st.integers(0, 5).map(lambda n: f"hyperty://b.ex/{n}")


def refusals(effects):
    return [one.code for one in effects if isinstance(one, Refused)]


class AllocationTable(RuleBasedStateMachine):
    """Owners and tombstones, kept the simplest way."""

    def __init__(self):
        super().__init__()
        self.core = AllocationCore()
        self.owner = {}
        self.key = {}
        self.gone = set()
        self.steps = {}

    def feed(self, happened):
        effects = self.core.feed(happened, 0.0)
        for step in effects:
            if isinstance(step, Step):
                self.steps.setdefault(step.key, []).append(step.new)
        return effects

    def free(self, addresses):
        for one in addresses:
            del self.owner[one]
            self.key.pop(one, None)
            if "a.ex" in one:
                self.gone.add(one)

    @rule(owner=OWNERS, names=st.sets(NAMES, min_size=1, max_size=4), key=KEYS)
    def allocate(self, owner, names, key):
        addresses = tuple(sorted(names))
        refused = refusals(self.feed(Allocate(owner, addresses, key)))
        assert bool(refused) == bool(names & (self.gone | self.owner.keys()))
        if not refused:
            self.owner.update(dict.fromkeys(addresses, owner))
            self.key.update(dict.fromkeys(addresses, key))

    @rule(owner=OWNERS, name=NAMES)
    def claim(self, owner, name):
        refused = refusals(self.feed(Claim(owner, (name,))))
        assert bool(refused) == (self.owner.get(name, owner) != owner or name in self.gone)
        if not refused:
            self.owner[name] = owner

    @rule(owner=OWNERS, name=FOREIGN)
    def bind(self, owner, name):
        refused = refusals(self.feed(Bind(owner, name)))
        assert bool(refused) == (self.owner.get(name, owner) != owner)
        if not refused:
            self.owner[name] = owner

    @rule(owner=OWNERS, names=st.sets(NAMES | FOREIGN, max_size=4))
    def free_list(self, owner, names):
        refused = refusals(self.feed(Free(owner, tuple(names))))
        assert bool(refused) == any(self.owner.get(one, owner) != owner for one in names)
        if not refused:
            self.free([one for one in names if one in self.owner])

    @rule(owner=OWNERS, key=st.sampled_from(["k1", "k2"]))
    def free_block(self, owner, key):
        assert not refusals(self.feed(FreeBlock(owner, key)))
        mine = [one for one, held in self.owner.items() if held == owner]
        self.free([one for one in mine if self.key.get(one) == key])

    @rule(owner=OWNERS)
    def release(self, owner):
        self.feed(Release(owner, "session over"))
        self.free([one for one, held in list(self.owner.items()) if held == owner])

    @invariant()
    def the_tables_are_equal(self):
        assert len(self.core) == len(self.owner)
        for one, owner in self.owner.items():
            assert self.core.owner_of(one) == owner
            assert self.core.owner_of(f"{one}/part/of/it") == owner
        for one in self.gone:
            assert self.core.is_tombstone(one)
            assert self.core.owner_of(one) is None

    @invariant()
    def nothing_is_allocated_twice(self):
        assert all(
            told in (["allocated"], ["allocated", "released"]) for told in self.steps.values()
        )


TestAllocationTable = AllocationTable.TestCase


@pytest.mark.parametrize("text", ["", "/", "//", "nonsense", "a/b/c", "hyperty://", "://"])
def test_what_is_no_address_has_no_owner(text):
    assert AllocationCore().owner_of(text) is None


def test_a_session_holds_no_more_than_its_share():
    core = AllocationCore()
    names = tuple(f"hyperty://a.ex/{n}" for n in range(MAX_ADDRESSES))
    assert not refusals(core.feed(Allocate("r1", names), 0.0))

    assert refusals(core.feed(Allocate("r1", ("hyperty://a.ex/more",)), 0.0)) == [413]
    assert refusals(core.feed(Bind("r1", "hyperty://b.ex/more"), 0.0)) == [413]
    assert refusals(core.feed(Claim("r1", ("hyperty://a.ex/more",)), 0.0)) == [413]
    assert not refusals(core.feed(Allocate("r2", ("hyperty://a.ex/more",)), 0.0))
