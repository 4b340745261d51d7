"""Order across a path switch (C-20, I-B7, I-R9)."""

import math

from hypothesis import given
from hypothesis import strategies as st

from fsm.cores.pair_path import PairPathCore
from specs.limits import SWITCH_TIMEOUT
from tests.support.wire import A, B, C, answer, ask

NODE, LINK = "node-stub", "p2p-stub"


def sent(forwards):
    return [(forward.message.id, forward.route) for forward in forwards]


def test_on_one_path_nothing_waits():
    core = PairPathCore()
    assert sent(core.send(ask(1), NODE, 0.0)) == [(1, NODE)]
    assert sent(core.send(ask(2), NODE, 0.0)) == [(2, NODE)]
    assert core.deadline() == math.inf


def test_the_new_path_waits_for_the_answers_of_the_old_one():
    core = PairPathCore()
    core.send(ask(1), NODE, 0.0)
    core.send(ask(2), NODE, 0.0)
    assert core.send(ask(3), LINK, 0.01) == []
    assert core.settled(A, B, 1, 0.02) == []
    assert sent(core.settled(A, B, 2, 0.03)) == [(3, LINK)]


def test_the_wait_is_bounded():
    core = PairPathCore()
    core.send(ask(1), NODE, 0.0)
    core.send(ask(2), LINK, 0.1)
    assert core.deadline() == SWITCH_TIMEOUT
    assert core.tick(SWITCH_TIMEOUT - 0.01) == []
    assert sent(core.tick(SWITCH_TIMEOUT)) == [(2, LINK)]
    assert core.held == 0


def test_what_comes_while_others_wait_waits_behind_them():
    core = PairPathCore()
    core.send(ask(1), NODE, 0.0)
    core.send(ask(2), LINK, 0.0)
    core.send(ask(3), LINK, 0.0)
    assert core.held == 2
    assert sent(core.settled(A, B, 1, 0.1)) == [(2, LINK), (3, LINK)]


def test_an_idle_pair_switches_at_once():
    core = PairPathCore()
    core.send(ask(1), NODE, 0.0)
    assert sent(core.send(ask(2), LINK, SWITCH_TIMEOUT + 0.1)) == [(2, LINK)]


def test_other_pairs_do_not_wait():
    core = PairPathCore()
    core.send(ask(1), NODE, 0.0)
    core.send(ask(2), LINK, 0.0)
    assert sent(core.send(ask(1, to=C), LINK, 0.0)) == [(1, LINK)]


def test_returned_messages_go_before_younger_ones():
    core = PairPathCore()
    lost = [ask(1), ask(2)]
    for message in lost:
        core.send(message, LINK, 0.0)
    core.returned(tuple(lost))
    assert core.send(ask(3), NODE, 0.1) == []
    assert sent(core.send(ask(1), NODE, 0.1)) == [(1, NODE)]
    assert sent(core.send(ask(2), NODE, 0.1)) == [(2, NODE), (3, NODE)]


def test_younger_ones_wait_for_returned_messages_without_end_until_these_are_settled():
    core = PairPathCore()
    core.send(ask(1), LINK, 0.0)
    core.returned((ask(1),))
    core.send(ask(2), NODE, 0.1)
    assert core.tick(100.0) == []
    assert sent(core.settled(A, B, 1, 100.0)) == [(2, NODE)]


def test_a_returned_answer_holds_nobody_up():
    core = PairPathCore()
    core.returned((answer(ask(1)),))
    assert sent(core.send(ask(2), NODE, 0.0)) == [(2, NODE)]


def test_pairs_that_fell_silent_are_forgotten():
    core = PairPathCore()
    for number in range(10):
        core.send(ask(1, to=f"{B}/{number}"), NODE, 0.0)
    core.send(ask(1, to=C), NODE, 10.0)
    assert len(core._paths) == 1


@given(st.lists(st.tuples(st.sampled_from([NODE, LINK]), st.floats(0, 0.2)), max_size=40))
def test_everything_goes_once_in_order_and_soon(sends):
    core, now, out = PairPathCore(), 0.0, []
    for number, (route, pause) in enumerate(sends, start=1):
        now += pause
        out += sent(core.tick(now)) + sent(core.send(ask(number), route, now))
    for _ in sends:
        now = now if core.deadline() == math.inf else max(now, core.deadline())
        out += sent(core.tick(now))
    assert [id_ for id_, _ in out] == list(range(1, len(sends) + 1))
    assert [route for _, route in out] == [route for route, _ in sends]
