"""Requests given to somebody who may go before they are answered (MN-20, R11)."""

import attrs
import pytest

from fsm.bus.transactions import OutstandingCore
from specs.limits.protocol import REPLY_TIMEOUT, SANDBOX_OUTSTANDING
from specs.message import Message, MessageType, reply_to

ASKER, ASKED = "hyperty://a.ex/x", "hyperty://b.ex/y"


def request(number, from_=ASKER):
    return Message(number, MessageType.CREATE, from_, ASKED, {})


@pytest.fixture
def core():
    return OutstandingCore()


def test_the_final_answer_is_known_once(core):
    core.ask(request(1), 0.0)
    answer = reply_to(request(1), 200)
    assert core.asked(answer) == request(1)
    assert core.asked(answer) is None
    assert core.unanswered() == []


def test_bodies_are_not_kept_but_of_what_subscribes(core):
    large = attrs.evolve(request(1), body={"value": "x" * 60_000})
    path = attrs.evolve(large, id=2, type=MessageType.SUBSCRIBE)
    core.ask(large, 0.0)
    core.ask(path, 0.0)
    assert core.unanswered() == [request(1), path]


def test_a_provisional_answer_is_known_and_ends_nothing(core):
    core.ask(request(1), 0.0)
    provisional = reply_to(request(1), 183)
    assert [core.asked(provisional), core.asked(provisional)] == [request(1), request(1)]
    assert core.unanswered() == [request(1)]


def test_a_message_of_another_type_is_no_answer_even_with_the_id_of_a_request(core):
    core.ask(request(1), 0.0)
    turned = attrs.evolve(request(1), from_=ASKED, to=ASKER)
    assert core.asked(turned) is None
    assert core.knows(request(1))


def test_requests_of_two_with_one_number_are_two(core):
    other = request(1, "hyperty://a.ex/z")
    core.ask(request(1), 0.0)
    assert not core.knows(other)
    core.ask(other, 0.0)
    assert core.asked(reply_to(other, 200)) == other
    assert core.unanswered() == [request(1)]


def test_requests_that_were_answered_by_another_route_are_forgotten(core):
    core.ask(request(1), 0.0)
    core.forget(request(1))
    core.forget(request(1))
    assert not core.knows(request(1))
    assert core.asked(reply_to(request(1), 200)) is None


def test_all_that_is_not_answered_is_taken_out_once(core):
    for number in (1, 2, 3):
        core.ask(request(number), 0.0)
    core.asked(reply_to(request(2), 200))
    assert core.unanswered() == [request(1), request(3)]
    assert core.unanswered() == []


@pytest.mark.parametrize(("later", "left"), [(-0.1, [1, 2]), (0.0, [2])])
def test_an_abandoned_request_is_forgotten(core, later, left):
    core.ask(request(1), 0.0)
    core.ask(request(2), REPLY_TIMEOUT + later)
    assert core.unanswered() == [request(number) for number in left]


def test_of_too_many_the_oldest_is_forgotten(core):
    for number in range(1, SANDBOX_OUTSTANDING + 2):
        core.ask(request(number), 0.0)
    left = core.unanswered()
    assert (len(left), left[0], left[-1]) == (
        SANDBOX_OUTSTANDING, request(2), request(SANDBOX_OUTSTANDING + 1),
    )  # fmt: skip
