"""Observers that ask again, and others for whom it is asked again (STB-09, SYN-16, I-D7)."""

import pytest

from specs.limits.protocol import RECONNECT_TRIES
from specs.message import MessageType, refuse, reply_to
from tests.actors.runtime.sync.lone_observers import BOB, CAROL, URL, Lone


@pytest.mark.parametrize(("asks_again", "taken_back"), [(False, [BOB]), (True, [])])
async def test_a_late_timeout_takes_back_no_other_request(asks_again, taken_back):
    lone = Lone()
    first = lone.wanted(1)
    if asks_again:
        lone.wanted(2)
    lone.observed.objects[URL].answer(first, refuse(first, 408, "late"))
    assert lone.said_of(MessageType.UNSUBSCRIBE) == taken_back
    assert lone.observed.observers == ({BOB} if asks_again else set())


def observing(*observers):
    lone = Lone()
    for number, observer in enumerate(observers, 1):
        request = lone.wanted(number, observer)
        answer = reply_to(request, 200, {})
        lone.observed.objects[URL].answer(request, answer, is_first=number == 1)
    lone.jobs.clear()
    lone.bus.said.clear()
    lone.observed.renew_paths("a.ex")
    return lone


async def test_without_a_path_the_owner_is_asked_at_last_and_the_path_later(autojump_clock, caplog):
    """I-D4: what outlasts all tries at once is found all the same."""
    lone = observing(BOB)
    node = "domain://msg-node.a.ex/sm"
    codes = iter([503] * RECONNECT_TRIES)
    lone.bus.decide = lambda message: next(codes, 200) if message.to == node else 200
    await lone.run()
    asked = [f"{URL}/subscription", BOB]
    assert [m.to for m in lone.bus.said] == [*RECONNECT_TRIES * [node], *asked, node, *asked]
    assert [record.getMessage() for record in caplog.records] == [
        f"no path for an observed object url={URL}"
    ]


async def test_an_observer_that_is_not_readmitted_is_notified_and_receives_nothing():
    lone = observing(BOB, CAROL)
    lone.bus.decide = lambda message: 403 if message.body.get("source") == BOB else 200
    await lone.run()
    assert lone.observed.observers == {CAROL}
    assert ("unfollow", f"{URL}/changes", BOB) in lone.bus.done
    reported = [(m.type, m.to, m.body) for m in lone.bus.said if m.to == BOB]
    assert reported == [(MessageType.UNSUBSCRIBE, BOB, {"resource": URL})]
