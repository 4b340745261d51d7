"""Observers that ask again, and others for whom it is asked again (STB-09, SYN-16, I-D7)."""

import pytest

from actors.runtime.sync.messages import ObserveDone, RefusedAgain, Route
from specs.message import MessageType, refuse, reply_to
from tests.actors.runtime.sync.lone_observers import BOB, CAROL, URL, Lone


@pytest.mark.parametrize(("asks_again", "taken_back"), [(False, [BOB]), (True, [])])
async def test_a_late_timeout_takes_back_no_other_request(asks_again, taken_back):
    lone = Lone()
    first = await lone.wanted(1)
    if asks_again:
        await lone.wanted(2)
    await lone.observed.done(ObserveDone(first, URL, refuse(first, 408, "late"), Route()))
    assert lone.said_of(MessageType.UNSUBSCRIBE) == taken_back


async def observing(*observers):
    lone = Lone()
    for number, observer in enumerate(observers, 1):
        request = await lone.wanted(number, observer)
        way = Route(is_first=number == 1)
        await lone.observed.done(ObserveDone(request, URL, reply_to(request, 200, {}), way))
    lone.jobs.clear()
    lone.bus.said.clear()
    lone.observed.renew_paths("a.ex")
    return lone


async def test_an_observer_that_has_left_meanwhile_is_not_asked_again():
    lone = await observing(BOB, CAROL)

    def decide(message):
        if message.body.get("source") == BOB:
            del lone.observed._objects[URL].observers[CAROL]
        return 200

    lone.bus.decide = decide
    await lone.run()
    assert lone.said_of(MessageType.SUBSCRIBE) == [BOB]


async def test_an_observer_that_is_not_readmitted_is_notified_and_receives_nothing():
    lone = await observing(BOB, CAROL)
    lone.bus.decide = lambda message: 403 if message.body.get("source") == BOB else 200
    await lone.run()
    assert lone.news == [RefusedAgain(URL, BOB, 1)]
    await lone.observed.refused_again(lone.news[0])
    assert lone.observed.observers == {CAROL}
    assert ("unfollow", f"{URL}/changes", BOB) in lone.bus.done
    reported = [(m.type, m.to, m.body) for m in lone.bus.said if m.to == BOB]
    assert reported == [(MessageType.UNSUBSCRIBE, BOB, {"resource": URL})]


async def test_an_observer_that_left_during_the_path_set_up_is_not_asked_again():
    lone = Lone()
    request = await lone.wanted(1)

    def decide(message):
        if not lone.said_of(MessageType.SUBSCRIBE):
            lone.observed.paths.left(URL, BOB)
        return 200

    lone.bus.decide = decide
    await lone.run()
    assert lone.said_of(MessageType.SUBSCRIBE) == []
    (done,) = lone.news
    assert (done.request, done.answer.code) == (request, 410)
