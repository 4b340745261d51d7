"""By which way the changes of an object come: a link while one is live, else the node (P2P-30)."""

from fsm.sync.routes import Moving
from tests.fsm.sync.observers.lone_routes import lone_observer_route

HB, HC, L1, L2 = "hyperty://b.ex/b", "hyperty://b.ex/c", "link/1", "link/2"


def opened(link=None, barred=None, p2p=None):
    way = lone_observer_route()
    assert way.prefer(HB, p2p=p2p) == []
    assert way.opened(link, barred) == []
    return way


def test_a_link_by_which_one_is_refused_is_not_tried_again():
    way = opened()
    way.link_is(L1)
    assert way.moved(L1, Moving.REFUSED) == []
    assert way.link_is(L1) == []
    assert way.link_is(L2) == [L2]
    assert way.moved(L2, Moving.DONE) == []
    assert way.link_is(L1) == [L1]
    assert opened(None, barred=L1).link_is(L1) == []
