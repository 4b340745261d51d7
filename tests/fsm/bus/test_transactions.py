"""Open requests and instances seen (MSG-04..07, I-T1..I-T8)."""

import attrs

from fsm.bus.transactions import DeduplicationWindow, Terms, TransactionsCore
from fsm.engine import Step
from specs.limits.protocol import DEDUP_SECONDS, DEDUP_WINDOW, REPLY_TIMEOUT
from specs.reply_code import DropReason
from tests.support.wire.wire import A, B, C, answer, ask


def opened(*requests, now=0.0):
    core = TransactionsCore()
    for request in requests:
        core.open(request, f"waiter {request.id}", now)
    return core


def of(source, code=200):
    """One of several answers to the first request."""
    reported = answer(ask(1), code)
    return attrs.evolve(reported, body={**reported.body, "source": source})


def asked_of_several():
    core = TransactionsCore()
    core.open(ask(1), "waiter", 0.0, Terms(frozenset({B, C})))
    return core


def test_the_last_of_several_that_are_asked_ends_the_wait():
    """C-81, I-T2: each answers for itself, once."""
    core = asked_of_several()
    first = core.answered(of(B), 1.0)
    assert (first.transaction.waiter, first.is_last) == ("waiter", False)
    for again in (B, A):
        assert core.answered(of(again), 2.0).drop is DropReason.UNMATCHED
    assert core.answered(of(C), 3.0).is_last
    assert len(core) == 0


def test_a_provisional_answer_prolongs_the_wait():
    core = opened(ask(1), ask(2))
    core.answered(answer(ask(1), 183), 10.0)
    assert [t.request.id for t in core.overdue(REPLY_TIMEOUT)] == [2]
    assert core.deadline() == 10.0 + REPLY_TIMEOUT


KEY = f"{A}|{B}|1"


def reported(old, cause, new, why=""):
    return Step("transaction", KEY, old, new, cause, why)


def test_the_window_is_bounded_in_length_and_time():
    window = DeduplicationWindow()
    for number in range(1, DEDUP_WINDOW + 2):
        window.is_new(ask(number), 0.0)
    assert window.is_new(ask(1), 1.0)
    assert window.is_new(ask(DEDUP_WINDOW), DEDUP_SECONDS + 1.0)


def test_a_repeated_request_waits_behind_later_receivers():
    """MSG-07, I-T6: nobody's 408 comes too late because another is asked again."""
    core = TransactionsCore()
    core.open(ask(1), None, 0.0, Terms(attempts=2))
    core.open(ask(2), None, 1.0)
    core.repeated(REPLY_TIMEOUT)
    assert core.deadline() == REPLY_TIMEOUT + 1
    assert [one.request.id for one in core.overdue(REPLY_TIMEOUT + 1)] == [2]
