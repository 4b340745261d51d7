"""Which steps must be seen in the order of the scenario, and which need not."""

import pytest

from tests.conformance.play.match.order import Match, Order, Precedence
from tests.support.trace.recorded import lines_of, scenario_of


def is_ordered(name, earlier, later):
    order = Order(scenario_of(lines_of(name)))
    return earlier in {number for number, _ in order.before(later)}


@pytest.mark.parametrize(
    ("name", "earlier", "later"),
    [
        pytest.param("SC-04", 11, 14, id="steps of one entity"),
        pytest.param("SC-16", 4, 47, id="changes of one row"),
        pytest.param("SC-31", 3, 6, id="from one sender to one receiver"),
        pytest.param("SC-02", 1, 3, id="a request and its answer"),
        pytest.param("SC-03", 2, 4, id="a provisional answer and the final one"),
        pytest.param("SC-13", 1, 3, id="a hop and the next"),
        pytest.param("SC-04", 14, 15, id="a step and the event that tells it"),
        pytest.param("SC-16", 45, 46, id="a step of a link and the event that tells it"),
        pytest.param("SC-01", 2, 3, id="a ruling and the next hop"),
        pytest.param("SC-39", 2, 3, id="a denial and the refusal"),
        pytest.param("SC-13", 2, 3, id="a route and the way by it"),
        pytest.param("SC-07", 11, 13, id="a fault and what is behind it"),
        pytest.param("SC-24", 4, 13, id="time and what is behind it"),
        pytest.param("SC-12", 1, 2, id="a message and the row it asks for"),
        pytest.param("SC-24", 5, 9, id="a step of a link and its row"),
    ],
)
def test_ordered_steps_must_come_in_order(name, earlier, later):
    assert is_ordered(name, earlier, later)


@pytest.mark.parametrize(
    ("name", "earlier", "later"),
    [
        pytest.param("SC-04", 4, 12, id="steps of two stubs"),
        pytest.param("SC-04", 8, 10, id="created and deployed, of one stub"),
        pytest.param("SC-31", 4, 5, id="copies for two receivers"),
        pytest.param("SC-16", 42, 43, id="changes of two objects"),
        pytest.param("SC-16", 45, 48, id="both ends of a link"),
        pytest.param("SC-25", 9, 10, id="an answer and another's request"),
    ],
)
def test_unordered_steps_may_come_in_any_order(name, earlier, later):
    assert not is_ordered(name, earlier, later)


def test_an_answer_reported_before_its_request_is_impossible():
    *given, ask, route, answer = [one for one in lines_of("SC-02") if "do" not in one]
    ask["n"], answer["n"] = 3, 1
    order = Order(scenario_of([*given, answer, route, ask]))
    assert order.conflict(3, Match(1, 1), {1: Match(5, 6)}) == 1


@pytest.mark.parametrize(
    ("how", "later", "holds"),
    [
        (Precedence.END_BEFORE_START, Match(5, 9), False),
        (Precedence.END_BEFORE_START, Match(6, 9), True),
        (Precedence.START_BEFORE_START, Match(3, 4), True),
        (Precedence.START_BEFORE_START, Match(2, 9), False),
        (Precedence.END_BEFORE_END, Match(1, 6), True),
        (Precedence.END_BEFORE_END, Match(1, 5), False),
        (Precedence.END_NOT_AFTER_END, Match(1, 5), True),
        (Precedence.END_NOT_AFTER_END, Match(1, 4), False),
    ],
)
def test_a_precedence_says_what_of_both_is_compared(how, later, holds):
    assert how.holds(Match(2, 5), later) is holds


def test_a_step_on_the_wrong_side_is_a_conflict_seen_from_both():
    order = Order(scenario_of(lines_of("SC-02")))
    assert order.conflict(3, Match(4, 4), {1: Match(5, 5)}) == 1
    assert order.conflict(1, Match(5, 5), {3: Match(4, 4)}) == 3
    assert order.conflict(3, Match(6, 6), {1: Match(5, 5)}) is None
