"""Children take the link of their object, wait when it is lost, and go on in order (P2P-30)."""

import pytest

from fsm.bus.sending_order import ChildPaths, Elsewhere
from specs.limits.protocol import STUB_QUEUE
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


def test_a_link_that_is_gone_is_waited_for_although_it_gave_nothing_back(paths):
    assert paths.find(said(1), 0.0, is_there=False) is Elsewhere.WAITS
    assert paths.find(said(2), 1.0, is_there=True) is Elsewhere.WAITS
    assert paths.lead(TO, NEXT) == [said(1), said(2)]


def test_too_many_do_not_wait(paths):
    paths.lead(OTHER, LINK)
    paths.lose_link(LINK, 0.0)
    turns = [(n, (TO, OTHER)[n % 2]) for n in range(STUB_QUEUE + 1)]
    kinds = [paths.find(said(*turn), 0.0, is_there=True) for turn in turns]
    assert kinds == [*[Elsewhere.WAITS] * STUB_QUEUE, Elsewhere.FULL]
    assert paths.lead(OTHER, Elsewhere.BY_NODE) == [said(*turn) for turn in turns[1::2]]
    assert paths.find(said(3), 0.0, is_there=True) is Elsewhere.WAITS
