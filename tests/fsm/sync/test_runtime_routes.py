"""Each runtime that observes an object is notified by exactly one route (I-D12, P2P-30)."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.lone_routes import LoneReportRoutes

RB, RC, L1, L2 = "r://b", "r://c", "link/1", "link/2"


def test_an_observer_that_asked_by_a_link_is_notified_by_it_once_it_observes():
    ways = LoneReportRoutes()
    ways.ask(RB, L1)
    assert ways.direct == frozenset()
    assert ways.counts(RB) == [("add_link", L1)]
    assert ways.direct == {RB}
    assert ways.counts(RB) == []


def test_an_observer_that_asked_by_the_node_is_no_longer_notified_by_the_link():
    ways = reported_by(L1)
    ways.ask(RB, None)
    assert ways.counts(RB) == [("remove_link", L1)]
    assert not ways.is_used


def test_another_link_takes_the_place_of_the_first():
    ways = reported_by(L1)
    ways.ask(RB, L2)
    assert ways.counts(RB) == [("remove_link", L1), ("add_link", L2)]


def test_a_lost_link_is_used_no_longer_although_no_observer_asks():
    ways = reported_by(L1)
    assert ways.link_is(RC, None) == []
    assert ways.link_is(RB, L1) == []
    assert ways.link_is(RB, None) == [("remove_link", L1)]
    assert ways.counts(RB) == []
    assert ways.asked == {}


def test_a_request_by_a_lost_link_does_not_count_later():
    ways = LoneReportRoutes()
    ways.ask(RB, L1)
    ways.link_is(RB, None)
    assert ways.counts(RB) == []


def test_a_runtime_without_observers_hears_nothing_by_its_link():
    """I-D7."""
    ways = reported_by(L1)
    assert ways.left((), (RB,)) == [("remove_link", L1)]
    assert set(ways.asked) == {RB}
    assert ways.left((), ()) == []
    assert not ways.is_used


def test_an_object_that_is_gone_leaves_nothing():
    ways = reported_by(L1)
    assert ways.forget() == [("remove_link", L1)]
    assert (ways.asked, ways.is_used) == ({}, False)


def test_links_reach_all_while_no_other_runtime_observes_by_the_node():
    """P2P-30: then the node need not hear of children; the own runtime counts for nobody."""
    ways = LoneReportRoutes("r://a")
    assert ways.reach(("r://a",)) == []
    ways.ask(RB, L1)
    ways.counts(RB)
    assert ways.reach((RB, "r://a")) == [("set_reached", True)]
    assert ways.reach((RB,)) == []
    assert ways.reach((RB, RC)) == [("set_reached", False)]
    assert ways.reach((RB,)) == [("set_reached", True)]
    assert ways.link_is(RB, None) == [("remove_link", L1), ("set_reached", False)]
    assert not ways.is_used


def test_links_reach_nobody_when_an_object_is_gone():
    ways = reported_by(L1)
    ways.reach((RB,))
    assert ways.forget() == [("remove_link", L1), ("set_reached", False)]
    assert not ways.is_used


DOINGS = st.lists(
    st.tuples(
        st.sampled_from(["asked", "linked", "left"]),
        st.sampled_from([RB, RC]),
        st.sampled_from([None, L1, L2]),
    ),
    max_size=30,
)


class Reports:
    """What the ways lead to, beside what they should."""

    def __init__(self):
        self.ways = LoneReportRoutes()
        self.rows = set()
        self.wanted = {}

    def asked(self, runtime, link):
        self.ways.ask(runtime, link)
        self.wanted[runtime] = link
        return self.ways.counts(runtime)

    def linked(self, runtime, link):
        if self.wanted.get(runtime) != link and runtime in self.wanted:
            self.wanted[runtime] = None
        return self.ways.link_is(runtime, link)

    def left(self, runtime, _):
        self.wanted.pop(runtime, None)
        return self.ways.left(tuple(self.wanted))

    def perform(self, effect):
        match effect:
            case ("add_link", link):
                assert link not in self.rows
                self.rows.add(link)
            case ("remove_link", link):
                self.rows.remove(link)


@given(DOINGS)
def test_rows_and_routes_always_agree(doings):
    """The links that have a row are those of the runtimes that are notified directly."""
    reported = Reports()
    for what, runtime, link in doings:
        one = None if link is None else f"{runtime}/{link}"
        for effect in getattr(reported, what)(runtime, one):
            reported.perform(effect)
        direct = {runtime: link for runtime, link in reported.wanted.items() if link is not None}
        assert reported.ways.direct == set(direct)
        assert reported.rows == set(direct.values())


def reported_by(link):
    ways = LoneReportRoutes()
    ways.ask(RB, link)
    ways.counts(RB)
    return ways
