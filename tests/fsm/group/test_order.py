"""A message of a sender that has moved is late once a later one was delivered."""

import pytest

from fsm.group.homes import Homes
from fsm.group.kinds import Holder, SessionRow
from fsm.group.moves import MovesCore, MovesPort
from fsm.group.row_form import write_row
from fsm.group.rows import RowsCore, RowsPort
from fsm.session.node_session_io import PeerForm
from specs.limits.group import GROUP_PAIRS
from specs.message import Message, MessageType
from tests.support.link_calls import RecordingPort

R = "hyperty-runtime://a.ex/ra"
HERE, THERE = Holder("a", 2), Holder("b", 1)


def row(holder, epoch):
    return SessionRow(R, holder, epoch, PeerForm.OWN, "s")


class Node:
    """A node of which the order of senders is one part."""

    def __init__(self):
        self.rows, self.moves = (
            RowsCore(RecordingPort(RowsPort)),
            MovesCore(RecordingPort(MovesPort)),
        )
        self.order = Homes(lambda _: True, {}, self.rows, self.moves)

    def seen(self, holder, epoch, revision):
        there = row(holder, epoch)
        self.rows.take_row(there.key, write_row(there), revision)

    def has(self, epoch, revision):
        """Have the session of the runtime."""
        before = None if epoch == 1 else row(THERE, epoch - 1)
        self.moves.keep(row(HERE, 0), before)
        self.seen(HERE, epoch, revision)


def said(to="hyperty://a.ex/b", by=f"{R}/h"):
    return Message(1, MessageType.UPDATE, by, to, {})


def test_an_older_home_is_late_for_the_same_pair_only():
    order = Node().order
    assert [order.is_late(R, said(), home) for home in (5, 5, 9, 5, 8, 9)] == [
        False, False, False, True, True, False,
    ]  # fmt: skip
    assert not order.is_late(R, said("hyperty://a.ex/c"), 5)
    assert not order.is_late(R, said(by=f"{R}/i"), 5)
    assert not order.is_late("hyperty-runtime://a.ex/rb", said(), 5)


def test_a_message_that_was_passed_on_is_late_after_a_later_one_of_the_same_home():
    order = Node().order

    def is_late(number, home=5, kind=MessageType.UPDATE, *, is_passed_on=True):
        message = Message(number, kind, f"{R}/h", "hyperty://a.ex/b", {"code": 200})
        return order.is_late(R, message, home, is_passed_on=is_passed_on)

    assert not is_late(3)
    assert not is_late(7, is_passed_on=False)
    assert is_late(4)
    assert not is_late(7)  # it is repeated
    assert not is_late(6, is_passed_on=False)  # its sender repeats it
    assert is_late(6)
    assert not is_late(2, kind=MessageType.RESPONSE)
    # Its runtime has started again, and counts from the begin.
    assert not is_late(1, home=6)
    assert not is_late(2, home=6)


def test_the_home_is_the_row_of_the_session():
    node = Node()
    node.has(1, 5)
    assert node.order.home_of(R) == 5
    node.seen(HERE, 1, 7)  # its holder has changed it
    assert node.order.home_of(R) == 7


def test_a_link_that_is_still_read_is_of_the_home_before():
    node = Node()
    node.has(1, 5)
    node.moves.fence()
    node.seen(THERE, 2, 9)
    assert 5 <= node.order.home_of(R) < 9


def test_a_session_without_a_row_is_never_late():
    order = Node().order
    for _ in range(2):
        assert order.home_of(R) == 0
        assert not order.is_late(R, said(), order.home_of(R))


def test_what_this_node_delivers_itself_is_in_the_order_too():
    node = Node()
    node.has(2, 9)
    assert not node.order.is_late(R, said(), node.order.home_of(R))
    assert node.order.is_late(R, said(), 5)


def test_a_link_that_is_still_read_is_late_once_the_new_node_has_sent():
    node = Node()
    node.has(2, 9)
    node.moves.fence()
    node.seen(THERE, 3, 12)
    assert not node.order.is_late(R, said(), 12)
    assert node.order.is_late(R, said(), node.order.home_of(R))


def test_the_pairs_are_bounded():
    order = Node().order
    order.is_late(R, said("hyperty://a.ex/first"), 9)
    for number in range(GROUP_PAIRS - 1):
        order.is_late(R, said(f"hyperty://a.ex/{number}"), 9)
    assert order.is_late(R, said("hyperty://a.ex/first"), 5)
    assert not order.is_late(R, said("hyperty://a.ex/more"), 9)
    assert not order.is_late(R, said("hyperty://a.ex/first"), 5)
    assert order.is_late(R, said("hyperty://a.ex/0"), 5) is False


@pytest.mark.parametrize("home", [1, 9])
def test_nothing_is_late_when_all_is_forgotten(home):
    order = Node().order
    order.is_late(R, said(), 10)
    order.forget_order()
    assert not order.is_late(R, said(), home)
