"""A message of a sender that has moved is late once a later one was delivered."""

from fsm.group.homes import Homes
from fsm.group.kinds import Holder, SessionRow
from fsm.group.moves import MovesCore, MovesPort
from fsm.group.row_form import write_row
from fsm.group.rows import RowsCore, RowsPort
from fsm.session.node_session_io import PeerForm
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


def test_a_session_without_a_row_is_never_late():
    order = Node().order
    for _ in range(2):
        assert order.home_of(R) == 0
        assert not order.is_late(R, said(), order.home_of(R))
