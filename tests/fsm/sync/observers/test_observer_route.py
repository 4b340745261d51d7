"""By which way the changes of an object come: a link while one is live, else the node (P2P-30)."""

from hypothesis import given
from hypothesis import strategies as st

from fsm.sync.routes import Moving
from tests.support.lone_routes import lone_observer_route

HB, HC, L1, L2 = "hyperty://b.ex/b", "hyperty://b.ex/c", "link/1", "link/2"


def opened(link=None, barred=None, p2p=None):
    way = lone_observer_route()
    assert way.prefer(HB, p2p=p2p) == []
    assert way.opened(link, barred) == []
    return way


def test_nothing_moves_before_the_first_observer_is_in():
    way = lone_observer_route()
    way.prefer(HB, p2p=None)
    assert way.link_is(L1) == []
    assert way.opened(None) == []
    assert way.link_is(L1) == [L1]


def test_a_link_that_comes_to_be_live_is_taken():
    way = opened()
    assert way.link_is(L1) == [L1]
    assert way.used is None
    assert way.moved(L1, Moving.DONE) == []
    assert way.used == L1


def test_a_link_that_is_lost_is_left():
    way = opened(L1)
    assert way.link_is(None) == [None]
    assert way.moved(None, Moving.DONE) == []
    assert way.used is None


def test_a_link_lost_during_the_move_to_it_is_left_as_soon_as_the_move_has_ended():
    way = opened()
    way.link_is(L1)
    assert way.link_is(None) == []
    assert way.moved(L1, Moving.DONE) == [None]


def test_a_link_by_which_one_is_refused_is_not_tried_again():
    way = opened()
    way.link_is(L1)
    assert way.moved(L1, Moving.REFUSED) == []
    assert way.link_is(L1) == []
    assert way.link_is(L2) == [L2]
    assert way.moved(L2, Moving.DONE) == []
    assert way.link_is(L1) == [L1]
    assert opened(None, barred=L1).link_is(L1) == []


def test_where_the_reporters_end_may_go_by_the_link_it_is_asked_by_the_node_again():
    way = opened()
    way.link_is(L1)
    assert way.moved(L1, Moving.UNSURE) == [None]
    assert way.moved(None, Moving.DONE) == []


def test_an_observer_by_another_path_than_the_used_one_has_it_subscribed_again():
    way = opened(L1)
    assert way.asked(L1) == []
    assert way.asked(None) == [L1]


def test_an_observer_that_joins_during_a_move_has_the_new_path_subscribed_again():
    """I-D4: it asked by the node, where the path is about to be removed."""
    way = opened()
    way.link_is(L1)
    assert way.asked(None) == []
    assert way.moved(L1, Moving.DONE) == [L1]
    assert way.moved(L1, Moving.DONE) == []


def test_a_link_that_returns_during_the_move_to_it_is_subscribed_over_again():
    way = opened()
    way.link_is(L1)
    way.link_is(None)
    way.link_is(L1)
    assert way.moved(L1, Moving.DONE) == [L1]


def test_an_observer_that_wants_no_link_keeps_all_from_it_while_it_is_here():
    way = opened(L1)
    assert way.prefer(HC, p2p=False) == [None]
    assert way.moved(None, Moving.DONE) == []
    assert way.left(HC) == [L1]


def test_a_link_is_set_up_only_for_observers_that_want_one():
    assert opened(p2p=True).wants_link
    assert not opened(p2p=None).wants_link
    way = opened(p2p=True)
    way.prefer(HC, p2p=False)
    assert not way.wants_link


NEWS = st.lists(
    st.one_of(
        st.tuples(st.just("linked"), st.sampled_from([None, L1, L2])),
        st.tuples(st.just("prefer"), st.sampled_from([None, True, False])),
        st.tuples(st.just("left"), st.none()),
        st.tuples(st.just("joined"), st.booleans()),
        st.tuples(st.just("reached"), st.none()),
        st.tuples(st.just("moved"), st.sampled_from(list(Moving))),
    ),
    max_size=30,
)


class Observed:
    """A route, its messages, and the route of the reporter's end."""

    def __init__(self):
        self.way = opened()
        self.link = None
        self.reporters = None
        self.preferences = {HB: None}
        self.under_way = []
        self.is_reached = False

    def linked(self, link):
        self.link = link
        if self.reporters != link:
            self.reporters = None
        return self.way.link_is(link)

    def prefer(self, p2p):
        self.preferences[HC] = p2p
        return self.way.prefer(HC, p2p=p2p)

    def left(self, _):
        self.preferences.pop(HC, None)
        return self.way.left(HC)

    def joined(self, is_unheard):
        """Somebody asks by the way in use; by the node, if nothing is heard by a link."""
        used = self.way.used
        self.reporters = None if is_unheard or used != self.link else used
        return self.way.asked(self.reporters)

    def reached(self, _):
        """What a move asks has come to the reporter's end; nothing comes by a dead link."""
        if self.under_way and self.under_way[0] in {None, self.link}:
            self.reporters, self.is_reached = self.under_way[0], True
        return []

    def moved(self, how):
        if not self.under_way:
            return []
        if how is Moving.DONE and not self.is_reached:
            self.reached(None)
        move, is_reached = self.under_way.pop(), self.is_reached
        self.is_reached = False
        if move is None:
            self.reporters = None
            # A path at a node can always be had in the end.
            return self.way.moved(None, Moving.DONE)
        if is_reached is (how is Moving.DONE):
            return self.way.moved(move, how)
        return self.way.moved(move, Moving.UNSURE)


@given(NEWS)
def test_one_move_at_a_time_and_the_last_word_is_followed(news):
    """At rest it is the live link or the node, and no link that somebody minds (P2P-30).

    The reporter's end goes by the same: else nobody here hears anything (I-D4).
    """
    observed = Observed()
    for what, which in [*news, *[("moved", Moving.DONE)] * 6]:
        moves = getattr(observed, what)(which)
        assert len(moves) + len(observed.under_way) <= 1
        observed.under_way += moves
    assert observed.under_way == []
    assert observed.way.used in {None, observed.link}
    assert observed.way.used == observed.reporters
    assert observed.way.used is None or False not in observed.preferences.values()
