"""Open requests and instances seen (MSG-04..07, I-T1..I-T8)."""

import math

import attrs
from hypothesis import given
from hypothesis import strategies as st

from fsm.cores.transactions import SeenWindow, TransactionsCore, same_request
from specs.limits import DEDUP_SECONDS, DEDUP_WINDOW, REPLY_TIMEOUT
from specs.message import MessageType
from specs.reply_code import DropReason
from tests.support.wire import A, C, answer, ask


def opened(*requests, now=0.0):
    core = TransactionsCore()
    for request in requests:
        core.open(request, f"waiter {request.id}", now)
    return core


def test_an_answer_finds_who_waits():
    core = opened(ask(1), ask(2))
    assert core.answered(answer(ask(2)), 1.0).transaction.waiter == "waiter 2"


def test_only_the_one_who_was_asked_can_answer():
    core = opened(ask(1))
    forged = attrs.evolve(answer(ask(1)), from_=C)
    assert core.answered(forged, 1.0).drop is DropReason.UNMATCHED


def test_the_second_final_answer_is_unmatched():
    core = opened(ask(1))
    core.answered(answer(ask(1)), 1.0)
    assert core.answered(answer(ask(1)), 2.0).drop is DropReason.UNMATCHED


def test_a_provisional_answer_prolongs_the_wait():
    core = opened(ask(1), ask(2))
    core.answered(answer(ask(1), 183), 10.0)
    assert [t.request.id for t in core.overdue(REPLY_TIMEOUT)] == [2]
    assert core.deadline() == 10.0 + REPLY_TIMEOUT


def test_a_provisional_answer_after_the_final_one_is_dropped():
    core = opened(ask(1))
    core.answered(answer(ask(1)), 1.0)
    assert core.answered(answer(ask(1), 183), 2.0).transaction is None


def test_what_is_overdue_is_told_once_and_its_answer_is_late():
    core = opened(ask(1))
    assert core.overdue(REPLY_TIMEOUT - 0.01) == []
    assert [t.request for t in core.overdue(REPLY_TIMEOUT)] == [ask(1)]
    assert core.overdue(REPLY_TIMEOUT * 2) == []
    assert core.answered(answer(ask(1)), 16.0).drop is DropReason.LATE_RESPONSE


def test_with_nothing_open_nothing_is_due():
    assert TransactionsCore().deadline() == math.inf


@given(st.lists(st.tuples(st.integers(1, 5), st.sampled_from([100, 183, 200, 404])), max_size=30))
def test_each_request_gets_at_most_one_final_answer(answers):
    core = opened(*map(ask, range(1, 6)))
    finals = [
        id_
        for id_, code in answers
        if core.answered(answer(ask(id_), code), 1.0).transaction is not None and code >= 200
    ]
    assert len(finals) == len(set(finals))
    assert len(core) == 5 - len(finals)


def test_a_message_is_new_once():
    window = SeenWindow()
    assert window.is_new(ask(1), 0.0)
    assert not window.is_new(ask(1), 1.0)


def test_a_provisional_and_the_final_answer_are_two():
    window = SeenWindow()
    assert window.is_new(answer(ask(1), 183), 0.0)
    assert window.is_new(answer(ask(1), 200), 0.0)


def test_two_receivers_make_two_messages():
    window = SeenWindow()
    assert window.is_new(ask(1), 0.0)
    assert window.is_new(ask(1, to=C), 0.0)


def test_the_window_is_bounded_in_length_and_time():
    window = SeenWindow()
    for number in range(1, DEDUP_WINDOW + 2):
        window.is_new(ask(number), 0.0)
    assert window.is_new(ask(1), 1.0)
    assert window.is_new(ask(DEDUP_WINDOW), DEDUP_SECONDS + 1.0)


def test_a_sender_that_fell_silent_is_forgotten():
    window = SeenWindow()
    window.is_new(ask(1), 0.0)
    window.is_new(ask(1, from_=C, to=A), DEDUP_SECONDS + 1.0)
    assert len(window._senders) == 1


def test_however_many_senders_there_are_memory_is_bounded():
    window = SeenWindow()
    for number in range(17_000):
        window.is_new(ask(1, from_=f"hyperty://a.ex/{number}"), 0.0)
    assert len(window._senders) == 16_384
    assert not window.is_new(ask(1, from_="hyperty://a.ex/16999"), 1.0)


def test_a_retry_may_differ_only_in_what_the_hops_wrote():
    assert same_request(ask(1, value=1), ask(1, value=1, via=["s"], auth=True))
    assert not same_request(ask(1, value=1), ask(1, value=2))
    assert not same_request(ask(1), attrs.evolve(ask(1), type=MessageType.READ))
