"""A session moves from node to node, and one node has it."""

import pytest

from fsm.group.kinds import Holder, OwnerRow, SessionRow, session_key
from fsm.group.moves import GiveUp, MovesCore
from fsm.group.rows import Applied, Change, Lost, Remove, Withdrawn
from fsm.session.node_session_io import PeerForm

R = "hyperty-runtime://a.ex/ra"
K = session_key(R)
HERE, BEFORE, THERE = Holder("a", 2), Holder("a", 1), Holder("b", 1)


def row(holder=HERE, epoch=0, stub="s"):
    return SessionRow(R, holder, epoch, PeerForm.OWN, stub)


def having(epoch_before=4):
    """A node that has taken up a session of another one."""
    core = MovesCore()
    core.keep(row(), row(THERE, epoch_before))
    return core


def test_the_first_holder_of_a_session_has_epoch_one():
    assert MovesCore().keep(row(), None, 7) == Change(row(epoch=1), 7)


@pytest.mark.parametrize("holder", [THERE, BEFORE])
def test_each_process_that_takes_it_up_raises_the_epoch(holder):
    assert MovesCore().keep(row(), row(holder, 4)) == Change(row(epoch=5))


def test_a_change_by_its_holder_does_not():
    core = having()
    assert core.keep(row(stub="t"), row(epoch=5)).row == row(epoch=5, stub="t")
    assert core.own[R].stub == "t"


def test_an_epoch_is_never_lowered():
    assert having(4).keep(row(), row(THERE, 2)).row.epoch == 6


NEWS = {
    "news": lambda there: Applied(there, 9),
    "a conflict": lambda there: Lost(K, (1,), row(epoch=5), there),
    "a removal that is lost": lambda there: Lost(K, (), None, there),
}


@pytest.mark.parametrize("news", NEWS.values(), ids=NEWS)
@pytest.mark.parametrize("epoch", [4, 5, 6])
def test_a_row_of_another_node_ends_the_copy(news, epoch):
    core = having()

    (effect,) = core.feed(news(row(THERE, epoch)), HERE)
    assert effect == GiveUp(R, THERE, "node b has the session")
    assert core.own == {}
    assert core.feed(news(row(THERE, epoch)), HERE) == []


@pytest.mark.parametrize("news", [Withdrawn(row(), 9), Lost(K, (1,), row(), None)])
def test_without_a_row_there_is_no_session(news):
    core = having()

    assert core.feed(news, HERE) == [GiveUp(R, None, "its row was removed")]
    assert core.feed(news, HERE) == []


def test_a_row_in_its_name_without_a_session_is_removed():
    assert MovesCore().feed(Applied(row(epoch=3), 9), HERE) == [Remove(K)]
    assert MovesCore().feed(Lost(K, (), None, row(epoch=3)), HERE) == [Remove(K)]


def test_a_row_of_its_earlier_process_is_no_row_in_its_name():
    core = MovesCore()
    assert core.feed(Applied(row(BEFORE, 3), 9), HERE) == []
    # Nor of a process that has the session: it has to take it up.
    assert having().feed(Applied(row(BEFORE, 3), 9), HERE)[0].to == BEFORE


def test_an_older_decision_that_was_made_late_is_written_over():
    core = having()
    core.keep(row(stub="t"), row(epoch=5))

    late = Lost(K, (), row(epoch=5, stub="t"), row(epoch=5))
    assert core.feed(late, HERE) == [Change(row(epoch=5, stub="t"))]
    assert core.feed(Applied(row(epoch=5, stub="t"), 9), HERE) == []


def test_a_session_that_ends_here_takes_its_row_along():
    core = having()
    assert core.end(R) == [Remove(K)]
    assert core.end(R) == []


def test_a_fenced_node_gives_up_all_and_removes_nothing():
    core = having()
    assert core.fenced() == [GiveUp(R, None, "the node has lost its lease")]
    assert core.fenced() == []


def test_rows_of_other_kinds_are_no_matter_of_it():
    core = having()
    owner = OwnerRow("hyperty://a.ex/h", R)
    for news in (Applied(owner, 9), Withdrawn(owner, 9), Lost(owner.key, (), owner, None)):
        assert core.feed(news, HERE) == []
