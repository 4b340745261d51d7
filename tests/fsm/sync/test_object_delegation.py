"""Nobody writes with another: a hand-over in any weather (SYN-26, I-D1).

The real cores of both ends and of the node, and between them a network that loses, doubles
and delays at will. Each end may be killed; the node then lets go of what was its.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fsm.engine import Step
from fsm.machines.sync.delegation import OBJECT_DELEGATION, OBJECT_TAKE_OVER, State
from fsm.registry.addresses import AddressOffers, Move, Offer, Offers, Take, Withdraw
from fsm.sync import delegation as terms
from fsm.sync.delegation import DelegationCore, TakeOverCore
from specs.limits.sync import HAND_OVER_GRACE
from specs.reply_code import Code
from tests.support.chance import examples

O, H2, OLD, NEW = "comm://a.ex/o", "hyperty://a.ex/h2", "r/old", "r/new"  # noqa: E741
OK, NOBODY = 200, (Code.TIMEOUT, "")


class World:
    """Both ends, the node, and what is under way: (to, what, request)."""

    def __init__(self):
        self.owner = {O: OLD}
        self.offers = AddressOffers(self.owner.get)
        self.net = []
        self.number = 0
        self.requests = 0
        self.waits = {}
        self.old = None
        self.new = None
        self.dead = set()
        self.fed = {OLD: None, NEW: None}

    # --- the ends

    def begin(self):
        self.number += 1
        self.old = DelegationCore(O, H2, self.number)
        self.do_old(self.old.feed(terms.Begun()))

    def ask(self, by, to, what):
        """Send a request; an answer to an older one counts no more."""
        self.requests += 1
        self.waits[by] = self.requests
        self.net.append((to, what, self.requests, by))

    def do_old(self, effects):
        for effect in effects:
            match effect:
                case terms.OtherAsked():
                    self.ask(OLD, NEW, ("agree", self.number))
                case terms.AddressOffered():
                    self.ask(OLD, "node", Offer(O, OLD, NEW, self.number, H2))
                case terms.ObjectHanded():
                    self.ask(OLD, NEW, ("hand", self.number))
                case terms.AddressWithdrawn() | terms.OfferDropped():
                    self.ask(OLD, "node", Withdraw(O, OLD, self.number))
                case terms.Kept() | terms.GivenAway():
                    self.waits.pop(OLD, None)
                case Step() | terms.AddressClaimed():
                    pass

    def do_new(self, effects):
        for effect in effects:
            match effect:
                case terms.AddressTaken():
                    self.ask(NEW, "node", Take(O, NEW, self.new.number, H2))
                case terms.TookOver():
                    self.waits.pop(NEW, None)
                    self.net.append((OLD, ("answer", OK), self.handed, NEW))
                case terms.Dropped(code):
                    self.waits.pop(NEW, None)
                    self.net.append((OLD, ("answer", code), self.handed, NEW))

    def deliver(self, at):
        to, what, request, by = self.net.pop(at)
        self.arrive(to, what, request, by)

    def arrive(self, to, what, request, by):
        if to in self.dead:
            return
        match to, what:
            case _, ("answer", code):
                if self.waits.get(to) == request:
                    self.answered(to, code)
            case "node", _:
                self.net.append((by, ("answer", self.decide(what)), request, "node"))
            case _, ("agree", _):
                self.net.append((by, ("answer", OK), request, to))
            case _, ("hand", number):
                self.take(number, request)

    def decide(self, wanted):
        outcome = self.offers.feed(wanted)
        if isinstance(outcome, Move):
            self.owner[O] = outcome.new
            self.offers.moved(outcome)
            return OK
        return OK if outcome is None else outcome.code

    def take(self, number, request):
        if self.new is not None and not self.new.is_over:
            return
        if self.new is not None and self.new.may_write:
            return
        self.new, self.handed = TakeOverCore(O, H2, number), request
        self.do_new(self.new.feed(terms.Begun()))

    def answered(self, end, code):
        if end == OLD:
            self.do_old(self.old.feed(terms.Answered(code)))
        elif self.new is not None:
            self.do_new(self.new.feed(terms.Answered(code)))

    def silence(self, end):
        """What was asked last is answered by nobody in time."""
        if self.waits.get(end) is not None and end not in self.dead:
            self.answered(end, Code.TIMEOUT)

    def kill(self, end):
        self.dead.add(end)

    def release(self, end):
        """The node notes that the session of one that was killed is over."""
        self.offers.gone(end)
        if self.owner.get(O) == end:
            del self.owner[O]
            self.offers.released(O)

    # --- who writes

    def writers(self):
        old = OLD not in self.dead and (self.old is None or self.old.may_write)
        new = NEW not in self.dead and self.new is not None and self.new.may_write
        return [end for end, is_writer in ((OLD, old), (NEW, new)) if is_writer]

    def settle(self):
        """Let everything arrive that is under way, and be answered."""
        for _ in range(200):
            if self.net:
                self.deliver(0)
            elif OLD not in self.dead and self.old is not None and not self.old.is_over:
                self.silence(OLD)
            elif NEW not in self.dead and self.new is not None and not self.new.is_over:
                self.silence(NEW)
            else:
                return


class HandOver(RuleBasedStateMachine):
    """At most one writer in each state; one when all is quiet, if it lives."""

    def __init__(self):
        super().__init__()
        self.world = World()

    @precondition(lambda self: self.world.old is None or self.world.old.state is State.KEPT)
    @rule()
    def begin(self):
        if OLD not in self.world.dead and self.world.number < 3:
            self.world.begin()

    @precondition(lambda self: self.world.net)
    @rule(data=st.data())
    def deliver(self, data):
        self.world.deliver(data.draw(st.integers(0, len(self.world.net) - 1)))

    @precondition(lambda self: self.world.net)
    @rule(data=st.data())
    def lose(self, data):
        self.world.net.pop(data.draw(st.integers(0, len(self.world.net) - 1)))

    @precondition(lambda self: self.world.net)
    @rule(data=st.data())
    def double(self, data):
        one = data.draw(st.sampled_from(self.world.net))
        self.world.net.append(one)

    @rule(end=st.sampled_from([OLD, NEW]))
    def silence(self, end):
        self.world.silence(end)

    @precondition(lambda self: not self.world.dead)
    @rule(end=st.sampled_from([OLD, NEW]))
    def kill(self, end):
        self.world.kill(end)

    @precondition(lambda self: self.world.dead)
    @rule()
    def release(self):
        self.world.release(next(iter(self.world.dead)))

    @invariant()
    def at_most_one_writes(self):
        assert len(self.world.writers()) <= 1

    @invariant()
    def a_writing_end_owns_the_address(self):
        """So the node lets through what it publishes, and nobody else's."""
        for end in self.world.writers():
            assert self.world.owner.get(O) == end

    def teardown(self):
        world = self.world
        for end in tuple(world.dead):
            world.settle()
            world.release(end)
        world.settle()
        assert len(world.writers()) <= 1
        if not world.dead or world.owner.get(O) not in {None, *world.dead}:
            assert world.writers() == [world.owner[O]]


HandOver.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40)
TestHandOver = HandOver.TestCase


# --- by hand ------------------------------------------------------------------------------


def steps(effects):
    return [(one.cause, one.new) for one in effects if isinstance(one, Step)]


def fed(core, *inputs):
    taken = []
    for happened in (terms.Begun(), *inputs):
        taken += steps(core.feed(happened))
    return taken


def said(*codes):
    return [terms.Answered(int(code), "why") for code in codes]


GIVING = {
    "same runtime": [terms.Answered(200, is_here=True)],
    "refused": said(403),
    "no offer": said(200, 403),
    "given": said(200, 200, 200),
    "doubt, and it stays": said(200, 200, 408, 503, 200),
    "doubt, and it was taken": said(200, 200, 408, 410),
    "leaves": [*said(200, 200), terms.Left()],
    "forgotten, claimed": said(200, 200, 408, *[404] * (int(HAND_OVER_GRACE) + 1), 200),
    "forgotten, another's": said(200, 200, 408, *[404] * (int(HAND_OVER_GRACE) + 1), 403),
}
ENDS = ["given", "kept", "kept", "given", "kept", "given", "lost", "kept", "lost"]
TAKING = {
    "taken": said(408, 200),
    "dropped": said(503, 403),
    "leaves": [terms.Left()],
}


@pytest.mark.parametrize(
    ("way", "state"),
    list(zip(GIVING, ENDS, strict=True)),
)
def test_a_hand_over_ends_as_the_node_says(way, state):
    core = DelegationCore(O, H2, 1)
    fed(core, *GIVING[way])
    assert (core.is_over, core.state) == (True, state)
    assert core.may_write is (state == "kept")


def test_the_histories_take_every_row_of_both_tables():
    given = {step for way in GIVING.values() for step in fed(DelegationCore(O, H2, 1), *way)}
    taken = {step for way in TAKING.values() for step in fed(TakeOverCore(O, H2, 1), *way)}
    assert given == {(row.trigger, row.target) for row in OBJECT_DELEGATION.rows}
    assert taken == {(row.trigger, row.target) for row in OBJECT_TAKE_OVER.rows}


def test_an_offer_that_is_over_is_never_open_again():
    """What comes late, or twice, changes nothing."""
    owner = {O: OLD}
    offers = AddressOffers(owner.get)
    offer, take = Offer(O, OLD, NEW, 1, H2), Take(O, NEW, 1, H2)
    assert offers.feed(Withdraw(O, OLD, 1)) is None
    assert offers.feed(offer).code == 409
    assert offers.feed(take).code == 403
    assert offers.feed(Offer(O, OLD, NEW, 2, H2)) is None
    assert offers.feed(Take(O, NEW, 2, "hyperty://a.ex/thief")).code == 403
    assert offers.feed(Take(O, "r/other", 2, H2)).code == 403
    assert isinstance(offers.feed(Take(O, NEW, 2, H2)), Move)
    offers.moved(Move(O, OLD, NEW, 2))
    owner[O] = NEW
    assert offers.feed(Take(O, NEW, 2, H2)) is None
    assert offers.feed(Withdraw(O, OLD, 2)).code == 410
    assert offers.is_moved(O)
    offers.released(O)
    assert len(offers) == 0


def test_silence_does_not_permit_writing():
    """The other has taken it, and the old end does not know: it must not write on."""
    world = World()
    world.begin()
    while world.new is None or not world.new.may_write:
        world.deliver(0)
    world.net.clear()
    world.silence(OLD)
    assert world.old.state is State.DOUBTFUL
    assert world.writers() == [NEW]
    world.settle()
    assert world.old.state is State.GIVEN


def test_another_node_decides_as_the_one_that_was_told():
    """What was taken back is over there, too, and an offer that it does not know may come."""
    owner, here = {O: OLD}, {OLD}
    first, second = AddressOffers(owner.get), AddressOffers(owner.get, lambda one: one in here)
    assert second.feed(Take(O, NEW, 1, H2)).code == 503
    assert first.feed(Offer(O, OLD, NEW, 1, H2)) is None
    second.mirror(O, first.of(O))
    assert second.feed(Take(O, NEW, 1, H2)) == Move(O, OLD, NEW, 1)
    assert second.feed(Withdraw(O, OLD, 1)) is None
    first.mirror(O, second.of(O))
    for offers in (first, second):
        assert offers.feed(Take(O, NEW, 1, H2)).code == 403
        assert offers.feed(Offer(O, OLD, NEW, 1, H2)).code == 409
    here.clear()
    assert second.feed(Take(O, NEW, 2, H2)).code == 403
    first.moved(Move(O, OLD, NEW, 2), ("hyperty://a.ex/o",))
    second.mirror(O, first.of(O))
    assert second.is_moved(O)
    assert second.of(O) == Offers(None, 2, OLD, ("hyperty://a.ex/o",))
