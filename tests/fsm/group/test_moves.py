"""A session moves from node to node, and one node has it."""

import pytest

from fsm.group.kinds import Holder, SessionRow, session_key
from fsm.group.moves import GiveUp, MovesCore, MovesPort
from fsm.session.node_session_io import PeerForm
from tests.support.link_calls import Calls, Told

R = "hyperty-runtime://a.ex/ra"
K = session_key(R)
HERE, BEFORE, THERE = Holder("a", 2), Holder("a", 1), Holder("b", 1)
asks = Calls(MovesPort)


def row(holder=HERE, epoch=0, stub="s"):
    return SessionRow(R, holder, epoch, PeerForm.OWN, stub)


@pytest.fixture
def core():
    return Told(MovesPort, MovesCore)


@pytest.fixture
def having(core):
    """A node that has taken up a session of another one."""
    core.keep(row(), row(THERE, 4))
    return core


def test_the_first_holder_of_a_session_has_epoch_one(core):
    assert core.keep(row(), None) == row(epoch=1)


@pytest.mark.parametrize("holder", [THERE, BEFORE])
def test_each_process_that_takes_it_up_raises_the_epoch(core, holder):
    assert core.keep(row(), row(holder, 4)) == row(epoch=5)


def test_a_change_by_its_holder_does_not(having):
    assert having.keep(row(stub="t"), row(epoch=5)) == row(epoch=5, stub="t")
    assert having.own[R].stub == "t"


def test_an_epoch_is_never_lowered(having):
    assert having.keep(row(), row(THERE, 2)).epoch == 6


@pytest.mark.parametrize("epoch", [4, 5, 6])
def test_a_row_of_another_node_ends_the_copy(having, epoch):
    gone = asks.give_up(GiveUp(R, THERE, "node b has the session"))

    assert having.take_row(row(THERE, epoch), HERE) == [gone]
    assert having.own == {}
    assert having.take_row(row(THERE, epoch), HERE) == []


def test_without_a_row_there_is_no_session(having):
    gone = asks.give_up(GiveUp(R, None, "its row was removed"))

    assert having.take_removal(R) == [gone]
    assert having.take_removal(R) == []


def test_a_row_in_its_name_without_a_session_is_removed(core):
    assert core.take_row(row(epoch=3), HERE) == [asks.put_row(K, None)]


def test_a_row_of_its_earlier_process_is_no_row_in_its_name(core):
    assert core.take_row(row(BEFORE, 3), HERE) == []
    # Nor of a process that has the session: it has to take it up.
    core.keep(row(), None)
    (gone,) = core.take_row(row(BEFORE, 3), HERE)
    assert gone.session.to == BEFORE


def test_an_older_decision_that_was_made_late_is_written_over(having):
    having.keep(row(stub="t"), row(epoch=5))

    written = asks.put_row(K, row(epoch=5, stub="t"))
    assert having.take_row(row(epoch=5), HERE) == [written]
    assert having.take_row(row(epoch=5, stub="t"), HERE) == []


def test_a_session_that_ends_here_takes_its_row_along(having):
    assert having.end(R)
    assert not having.end(R)


def test_a_fenced_node_gives_up_all_and_removes_nothing(having):
    assert having.fence() == []
    assert having.own == {}
