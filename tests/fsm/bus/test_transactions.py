"""Open requests and instances seen (MSG-04..07, I-T1..I-T8)."""

import math
import tracemalloc

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.bus.transactions import DeduplicationWindow, Steps, Terms, TransactionsCore, same_request
from fsm.engine import Step
from fsm.judge.trace_line import Verdict
from fsm.judge.verdict import judge
from fsm.table import UndeclaredTransitionError
from specs.limits.protocol import (
    DEDUP_ALL_BYTES,
    DEDUP_BYTES,
    DEDUP_SECONDS,
    DEDUP_WINDOW,
    REPLY_TIMEOUT,
)
from specs.message import MessageType
from specs.reply_code import DropReason
from tests.support.trace.traces import step, trace
from tests.support.wire.wire import A, B, C, answer, ask


def opened(*requests, now=0.0):
    core = TransactionsCore()
    for request in requests:
        core.open(request, f"waiter {request.id}", now)
    return core


def test_an_answer_finds_its_waiting_requester():
    core = opened(ask(1), ask(2))
    assert core.answered(answer(ask(2)), 1.0).transaction.waiter == "waiter 2"


def test_only_the_receiver_of_a_request_can_answer():
    core = opened(ask(1))
    forged = attrs.evolve(answer(ask(1)), from_=C)
    assert core.answered(forged, 1.0).drop is DropReason.UNMATCHED


def test_the_second_final_answer_is_unmatched():
    core = opened(ask(1))
    core.answered(answer(ask(1)), 1.0)
    assert core.answered(answer(ask(1)), 2.0).drop is DropReason.UNMATCHED


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


def test_one_silent_receiver_of_several_is_awaited_no_longer_than_another():
    core = asked_of_several()
    core.answered(of(B), 10.0)
    assert [ended.waiter for ended in core.overdue(REPLY_TIMEOUT)] == ["waiter"]
    assert core.answered(of(C), REPLY_TIMEOUT).drop is DropReason.LATE_RESPONSE


def test_a_router_that_names_no_receiver_answers_for_all_of_several():
    core = asked_of_several()
    assert core.answered(answer(ask(1), 404), 1.0).is_last


def test_a_single_receiver_may_name_any_source():
    core = opened(ask(1))
    assert core.answered(of(C), 1.0).is_last


def test_a_provisional_answer_prolongs_the_wait():
    core = opened(ask(1), ask(2))
    core.answered(answer(ask(1), 183), 10.0)
    assert [t.request.id for t in core.overdue(REPLY_TIMEOUT)] == [2]
    assert core.deadline() == 10.0 + REPLY_TIMEOUT


def test_a_provisional_answer_after_the_final_one_is_dropped():
    core = opened(ask(1))
    core.answered(answer(ask(1)), 1.0)
    assert core.answered(answer(ask(1), 183), 2.0).transaction is None


def test_an_overdue_request_is_reported_once_and_its_answer_is_late():
    core = opened(ask(1))
    assert core.overdue(REPLY_TIMEOUT - 0.01) == []
    assert [t.request for t in core.overdue(REPLY_TIMEOUT)] == [ask(1)]
    assert core.overdue(REPLY_TIMEOUT * 2) == []
    assert core.answered(answer(ask(1)), 16.0).drop is DropReason.LATE_RESPONSE


def test_a_repeated_request_has_no_late_answer():
    core = opened(ask(1))
    core.overdue(REPLY_TIMEOUT)
    core.open(ask(1), "again", REPLY_TIMEOUT)
    core.answered(answer(ask(1)), REPLY_TIMEOUT)
    assert core.answered(answer(ask(1)), REPLY_TIMEOUT).drop is DropReason.UNMATCHED


def test_of_what_ended_unanswered_the_oldest_is_forgotten():
    most = 4096
    core = opened(*map(ask, range(1, most + 2)))
    core.overdue(REPLY_TIMEOUT)
    drops = [core.answered(answer(ask(number)), 16.0).drop for number in (1, 2, most + 1)]
    late = DropReason.LATE_RESPONSE
    assert drops == [DropReason.UNMATCHED, late, late]


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


KEY = f"{A}|{B}|1"


def reported(old, cause, new, why=""):
    return Step("transaction", KEY, old, new, cause, why)


def test_a_request_and_its_answers_are_a_history():
    core = TransactionsCore()

    assert core.open(ask(1), None, 0.0) == reported(None, "opened", "pending")
    trying, final = (core.answered(answer(ask(1), code), 1.0).step for code in (183, 200))
    assert trying == reported("pending", "provisional", "pending")
    assert final == reported("pending", "answered", "final")


def test_an_answer_of_the_router_itself_is_reported_with_its_reason():
    ended = opened(ask(1)).give_up(ask(1), "404 target not found")
    assert ended.step == reported("pending", "refused", "final", "404 target not found")


def test_silence_is_reported():
    (ended,) = opened(ask(1)).overdue(REPLY_TIMEOUT)
    assert ended.step == reported("pending", "silence", "timed-out")


def test_at_the_end_nothing_stays_open():
    core = opened(ask(1), ask(2))
    assert [one.step.new for one in core.give_up_all("the end")] == ["final", "final"]
    assert len(core) == 0


def test_an_open_request_cannot_be_opened_again():
    core = opened(ask(1))
    with pytest.raises(UndeclaredTransitionError) as caught:
        core.open(ask(1), "another waiter", 1.0)
    assert (caught.value.key, caught.value.state) == (KEY, "pending")
    assert core.find(ask(1)).waiter == "waiter 1"


def test_an_answer_that_is_dropped_moves_nothing():
    core = opened(ask(1))
    core.give_up(ask(1), "503 the stub is gone")
    assert core.answered(answer(ask(1)), 1.0).step is None


NUMBERS = st.integers(1, 3)
DEEDS = st.lists(
    st.one_of(
        st.tuples(st.just("open"), NUMBERS),
        st.tuples(st.just("answer"), NUMBERS, st.sampled_from([183, 200, 404])),
        st.tuples(st.just("give up"), NUMBERS),
        st.tuples(st.just("wait"), st.sampled_from([1.0, REPLY_TIMEOUT])),
    ),
    max_size=40,
)


def play(core, deeds):
    """Do it, then end; return the steps and all that is decided besides."""
    now, steps, decided = 0.0, [], []
    for deed, *what in deeds:
        match deed:
            case "open" if core.find(ask(*what)) is None:
                steps.append(core.open(ask(*what), None, now))
            case "answer":
                found = core.answered(answer(ask(what[0]), what[1]), now)
                steps.append(found.step)
                decided.append((found.transaction is not None, found.drop))
            case "give up":
                ended = core.give_up(ask(*what), "why")
                steps += [] if ended is None else [ended.step]
                decided.append(ended is not None)
            case "wait":
                now += what[0]
                over = core.overdue(now)
                steps += [one.step for one in over]
                decided.append([one.request for one in over])
    steps += [one.step for one in core.give_up_all("the end")]
    return steps, decided


@given(DEEDS)
def test_the_history_of_each_request_is_always_a_walk_of_its_table(deeds):
    steps, _ = play(TransactionsCore(), deeds)
    lines = [
        step(f"{one.old or '[*]'} {one.cause} {one.new}", one.key, one.machine)
        for one in steps
        if one is not None
    ]
    assert judge(trace(*lines)).verdict is Verdict.CONFORMANT


@given(DEEDS)
def test_unreported_the_same_is_decided(deeds):
    steps, decided = play(TransactionsCore(Steps.UNREPORTED), deeds)
    assert set(steps) <= {None}
    assert decided == play(TransactionsCore(), deeds)[1]


def test_a_message_is_new_once():
    window = DeduplicationWindow()
    assert window.is_new(ask(1), 0.0)
    assert not window.is_new(ask(1), 1.0)


def test_a_provisional_and_the_final_answer_are_two():
    window = DeduplicationWindow()
    assert window.is_new(answer(ask(1), 183), 0.0)
    assert window.is_new(answer(ask(1), 200), 0.0)


def test_the_answers_of_two_that_share_an_address_are_two():
    """C-81."""
    window = DeduplicationWindow()
    assert [window.is_new(of(source), 0.0) for source in (B, C, B)] == [True, True, False]


def test_two_receivers_make_two_messages():
    window = DeduplicationWindow()
    assert window.is_new(ask(1), 0.0)
    assert window.is_new(ask(1, to=C), 0.0)


def test_the_window_is_bounded_in_length_and_time():
    window = DeduplicationWindow()
    for number in range(1, DEDUP_WINDOW + 2):
        window.is_new(ask(number), 0.0)
    assert window.is_new(ask(1), 1.0)
    assert window.is_new(ask(DEDUP_WINDOW), DEDUP_SECONDS + 1.0)


def test_a_sender_that_fell_silent_is_forgotten():
    window = DeduplicationWindow()
    window.is_new(ask(1), 0.0)
    window.is_new(ask(1, from_=C, to=A), DEDUP_SECONDS + 1.0)
    assert len(window._senders) == 1


def test_however_many_senders_there_are_memory_is_bounded():
    window = DeduplicationWindow()
    for number in range(17_000):
        window.is_new(ask(1, from_=f"hyperty://a.ex/{number}"), 0.0)
    assert len(window._senders) == 16_384
    assert not window.is_new(ask(1, from_="hyperty://a.ex/16999"), 1.0)


@pytest.mark.parametrize(
    ("senders", "each", "most"), [(1, 1000, DEDUP_BYTES), (600, 20, DEDUP_ALL_BYTES)]
)
def test_long_texts_are_remembered_in_bounded_memory(senders, each, most):
    """Of one sender, and of all; the last instance is known."""
    tail, window = "x" * 2000, DeduplicationWindow()

    def instance(sender, number):
        asked = ask(1, from_=A + tail, to=f"{C}/{sender}{tail}")
        reported = answer(asked)
        return attrs.evolve(reported, body={**reported.body, "source": f"{number}{tail * 8}"})

    tracemalloc.start()
    for sender in range(senders):
        for number in range(each):
            window.is_new(instance(sender, number), 0.0)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 2 * most
    assert not window.is_new(instance(senders - 1, each - 1), 1.0)


def test_a_retry_may_differ_only_in_what_the_hops_wrote():
    assert same_request(ask(1, value=1), ask(1, value=1, via=["s"], auth=True))
    assert not same_request(ask(1, value=1), ask(1, value=2))
    assert not same_request(ask(1), attrs.evolve(ask(1), type=MessageType.READ))


def test_a_request_is_repeated_so_often_and_then_over():
    """MSG-07: three attempts, each with a time of its own, and one 408 after the last."""
    core = TransactionsCore()
    core.open(ask(1), "waiter", 0.0, Terms(attempts=3))
    for attempt in (1, 2):
        now = attempt * REPLY_TIMEOUT
        assert core.deadline() == now
        assert [one.request for one in core.repeated(now)] == [ask(1)]
        assert core.overdue(now) == []
    last = 3 * REPLY_TIMEOUT
    assert core.repeated(last) == []
    assert [one.request for one in core.overdue(last)] == [ask(1)]


def test_an_answer_ends_the_repeating():
    """MSG-07."""
    core = TransactionsCore()
    core.open(ask(1), "waiter", 0.0, Terms(attempts=3))
    core.repeated(REPLY_TIMEOUT)
    assert core.answered(answer(ask(1)), REPLY_TIMEOUT + 1).is_last
    assert core.deadline() == math.inf


def test_a_repeated_request_waits_behind_later_receivers():
    """MSG-07, I-T6: nobody's 408 comes too late because another is asked again."""
    core = TransactionsCore()
    core.open(ask(1), None, 0.0, Terms(attempts=2))
    core.open(ask(2), None, 1.0)
    core.repeated(REPLY_TIMEOUT)
    assert core.deadline() == REPLY_TIMEOUT + 1
    assert [one.request.id for one in core.overdue(REPLY_TIMEOUT + 1)] == [2]
