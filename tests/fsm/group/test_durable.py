"""Durable messages: none that was kept is lost, none is handled twice, pairs keep their order."""

import math

import attrs
import pytest

from fsm.group.durable import AcceptCore, DeliverCore, Kept, LogPort, Offered
from specs.limits.group import (
    DURABLE_FETCHES,
    DURABLE_WAITING,
    DURABLE_WAITING_BYTES,
    DURABLE_WINDOW,
)
from specs.message import Message, MessageType
from tests.support.link_calls import Calls, Told, is_asked

R = "hyperty-runtime://a.ex/r"
A, B, C = (f"hyperty://a.ex/{name}" for name in "abc")
MINE = "key"

tell, asks = Calls(DeliverCore), Calls(LogPort)


def deliverer():
    return Told(LogPort, DeliverCore)


def message(number, from_=A, to=C):
    return Message(number, MessageType.CREATE, from_, to, {"value": number, "durable": True})


def kept(position, whose=MINE, from_=A, to=C):
    return Kept(position, message(position, from_, to), whose)


def answer(asked, code=200):
    return Message(asked.id, MessageType.RESPONSE, asked.to, asked.from_, {"code": code})


def attached(core, *entries, now=0.0):
    """Attach a runtime whose log has some entries; return what is to be done next."""
    (fetch,) = core.tell(tell.attach(R, MINE), now)
    assert (fetch.runtime, fetch.after, fetch.most) == (R, 0, DURABLE_WINDOW)
    return core.tell(tell.take_entries(R, fetch.number, entries), now)


# ---- the end of the sender


def offered(number, size=10, from_=A):
    return Offered(message(number, from_), "by", R, b"x" * size)


@pytest.mark.parametrize(("size", "most"), [(1, DURABLE_WAITING), (DURABLE_WAITING_BYTES // 4, 4)])
def test_what_waits_is_bounded(size, most):
    """And one user has half of it."""
    core = AcceptCore("a.ex")
    mine = [core.offer(offered(number, size)) for number in range(most // 2 + 1)]
    assert not any(mine[:-1])
    assert mine[-1].code == 503
    assert mine[-1].why.startswith("a user has at most ")
    others = [core.offer(offered(number, size, B)) for number in range(most // 2)]
    assert not any(others)
    assert core.offer(offered(0, size, C)).why.startswith("the node has room for ")
    core.begin_batch()
    assert core.offer(offered(0, size)) is None


# ---- the end of the receiver


def test_what_has_ended_is_trimmed_when_the_link_goes():
    core = deliverer()
    one, two = kept(1), kept(2, from_=B)
    attached(core, one, two)
    core.tell(tell.take_answer(R, answer(one.message)), 0)
    core.tell(tell.take_answer(R, answer(two.message)), 0)
    core.tell(tell.take_trim(R, 1, is_done=False), 0)
    assert core.tell(tell.detach(R), 0) == [asks.trim(R, 2)]
    assert core.tell(tell.detach(R), 0) == []
    assert core.deadline() == math.inf


def test_the_log_of_a_runtime_of_another_owner_is_given_up():
    core = deliverer()
    theirs, mine = kept(1, "another"), kept(3)
    effects = attached(core, theirs, Kept(2, None), mine)
    assert [one.message for one in effects if is_asked(one, "give_up")] == [theirs.message, None]
    assert effects[-1] == asks.deliver(R, 3, mine.message)
    assert core.tell(tell.take_answer(R, answer(mine.message)), 0) == [asks.trim(R, 3)]


def test_a_message_that_is_a_day_old_is_given_up_when_it_is_read_and_when_it_waits():
    """OBS-06."""
    core, old = deliverer(), attrs.evolve(kept(1), until=5.0)
    young = attrs.evolve(kept(2), until=30.0)
    gave_up, deliver = attached(core, old, young, now=5.0)
    assert (gave_up.message, deliver) == (old.message, asks.deliver(R, 2, young.message))
    assert "24 hours" in gave_up.why
    assert core.tell(tell.take_answer(R, answer(young.message, 404)), 29.5) == []
    again, trim = core.tell(tell.tick(), 30.5)
    assert (again.message, again.why, trim) == (young.message, gave_up.why, asks.trim(R, 2))


def test_few_logs_are_read_at_a_time_and_all_have_their_turn():
    core = deliverer()
    names = [f"{R}{number}" for number in range(3 * DURABLE_FETCHES)]
    due = [effect for one in names for effect in core.tell(tell.attach(one, MINE), 0)]
    assert len(due) == DURABLE_FETCHES
    assert core.deadline() == math.inf
    read = []
    while due:
        fetch = due.pop()
        read.append(fetch.runtime)
        due += core.tell(tell.take_entries(fetch.runtime, fetch.number, ()), 0)
        assert len(due) <= DURABLE_FETCHES
    assert sorted(read) == sorted(names)


def test_an_engine_that_can_be_asked_again_is_asked_again():
    core = deliverer()
    one = kept(1)
    attached(core, one)
    core.tell(tell.take_answer(R, answer(one.message)), 0)
    trim, fetch = core.tell(tell.begin(), 0)
    assert trim == asks.trim(R, 1)
    assert fetch.after == 1
