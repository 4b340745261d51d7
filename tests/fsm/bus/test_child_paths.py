"""Children take the link of their object, wait when it is lost, and go on in order (P2P-30)."""

import math

import pytest

from fsm.bus import sending_order
from fsm.bus.sending_order import ChildPaths, Elsewhere
from specs.limits.sync import CHILD_WAIT
from specs.message import Message, MessageType

TO, OTHER = "comm://a.ex/1/children/resources", "comm://a.ex/2/children/resources"
LINK, NEXT = (
    "hyperty-runtime://a.ex/ra/p2phandler/1/conn/1",
    "hyperty-runtime://a.ex/ra/p2prequester/2",
)


def said(number, to=TO):
    return Message(number, MessageType.UPDATE, "hyperty://a.ex/h", to, {})


@pytest.fixture
def paths():
    paths = ChildPaths()
    assert paths.lead(TO, LINK) == []
    return paths


def test_children_go_by_the_node_unless_their_list_has_another_path(paths):
    assert paths.find(said(1, OTHER), 0.0, is_there=False) is Elsewhere.BY_NODE
    assert paths.find(said(1), 0.0, is_there=True) == LINK
    assert (paths.link_of(TO), paths.link_of(OTHER)) == (LINK, None)
    paths.lead(OTHER, Elsewhere.NOWHERE)
    assert paths.find(said(2, OTHER), 0.0, is_there=False) is Elsewhere.NOWHERE
    assert paths.link_of(OTHER) is None
    paths.lead(OTHER, Elsewhere.BY_NODE)
    assert paths.find(said(3, OTHER), 0.0, is_there=False) is Elsewhere.BY_NODE


@pytest.mark.parametrize("path", [NEXT, Elsewhere.BY_NODE])
@pytest.mark.parametrize("is_there", [False, True])
def test_what_is_written_after_a_loss_waits_for_the_next_path(path, is_there, paths):
    """Also while the link's stub is there still, and each once, however often it is sent."""
    paths.lose_link(LINK, 0.0)
    found = [paths.find(said(number), 1.0, is_there=is_there) for number in (1, 2, 1)]
    assert found == [Elsewhere.WAITS, Elsewhere.WAITS, Elsewhere.REPEATED]
    assert paths.waiting == 2
    assert paths.lead(TO, path) == [said(1), said(2)]
    assert (paths.waiting, paths.deadline()) == (0, math.inf)
    assert paths.find(said(3), 2.0, is_there=True) == path


def test_a_link_that_is_gone_is_waited_for_although_it_gave_nothing_back(paths):
    assert paths.find(said(1), 0.0, is_there=False) is Elsewhere.WAITS
    assert paths.find(said(2), 1.0, is_there=True) is Elsewhere.WAITS
    assert paths.lead(TO, NEXT) == [said(1), said(2)]


def test_nothing_waits_longer_than_a_path_takes(paths):
    paths.lose_link(LINK, 10.0)
    paths.find(said(1), 11.0, is_there=False)
    assert paths.deadline() == 10.0 + CHILD_WAIT
    assert paths.tick(9.0 + CHILD_WAIT) == []
    assert paths.tick(10.0 + CHILD_WAIT) == [said(1)]
    assert (paths.waiting, paths.deadline()) == (0, math.inf)
    assert paths.find(said(2), 30.0, is_there=True) == LINK


def test_the_loss_of_another_link_holds_nothing_up(paths):
    paths.lose_link(NEXT, 0.0)
    assert paths.find(said(1), 0.0, is_there=True) == LINK


def test_too_many_do_not_wait(paths, monkeypatch):
    monkeypatch.setattr(sending_order, "STUB_QUEUE", 2)
    paths.lead(OTHER, LINK)
    paths.lose_link(LINK, 0.0)
    kinds = [paths.find(said(n, to), 0.0, is_there=True) for n, to in enumerate((TO, OTHER, TO))]
    assert kinds == [Elsewhere.WAITS, Elsewhere.WAITS, Elsewhere.FULL]
    assert paths.lead(OTHER, Elsewhere.BY_NODE) == [said(1, OTHER)]
    assert paths.find(said(3), 0.0, is_there=True) is Elsewhere.WAITS
