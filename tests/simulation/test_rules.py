"""For each rule: a history that keeps it, and one that breaks it and nothing else."""

import attrs
import pytest

from tests.simulation.judgement.history import (
    Answered,
    Asked,
    Changed,
    Created,
    Died,
    Executed,
    Heard,
    Held,
    History,
    Left,
    Observing,
    Overheard,
    Probed,
    Removed,
)
from tests.simulation.judgement.rules import RULES, Breach, breaches

A, B, OBJECT = "r0.1", "hyperty://d0.ex/b", "comm://d0.ex/o"
CHILDREN = f'{{"{B}#1": "7", "{B}#3": "9/10"}}'

WHOLE = (
    Asked(1.0, 1, A, B),
    Asked(1.0, 2, A, B),
    Executed(1.1, 1, B),
    Executed(1.1, 2, B),
    Answered(1.2, 2, 200, 2),
    Answered(1.3, 1, 200, 1),
    Observing(2.0, A, OBJECT, 1),
    Changed(2.1, OBJECT, 2),
    Heard(2.2, A, OBJECT, 2, "n"),
    Heard(2.3, A, OBJECT, 4, "n"),
    Left(2.4, A, OBJECT),
    Observing(2.5, A, OBJECT, 2),
    Heard(2.6, A, OBJECT, 2, "n"),
    Heard(2.6, A, OBJECT, 2, "m"),
    Asked(3.0, 3, A, B),
    Died(3.5, A),
    Asked(4.0, 4, "r0.2", B),
    Answered(5.0, 4, 503, None),
    Executed(5.5, 4, B),
    Asked(6.0, 5, "r1.1", B),
    Executed(6.1, 5, B),
    Answered(6.2, 5, 200, 5),
    Probed(6.2, "r1.1", "r0.2", 200),
    Created(7.0, "r1.1", OBJECT, f"{B}#1"),
    Created(7.1, "r1.1", OBJECT, f"{B}#2"),
    Removed(7.2, "r1.1", OBJECT, f"{B}#2"),
    Held(9.0, "r0.2", OBJECT, 4, '{"n": 1}', is_reporter=True, children=CHILDREN),
    Held(9.0, "r1.1", OBJECT, 4, '{"n": 1}', children=CHILDREN),
)


def without(*places):
    return [one for place, one in enumerate(WHOLE) if place not in places]


def with_(place, *more):
    return [*WHOLE[:place], *more, *WHOLE[place:]]


BROKEN = {
    "acknowledged": without(2),
    "once": with_(4, Executed(1.15, 2, B)),
    "addressee": with_(
        4, Asked(1.05, 9, A, "hyperty://d0.ex/c"), Executed(1.1, 9, B), Answered(1.1, 9, 408, None)
    ),
    "order": [*WHOLE[:2], WHOLE[3], WHOLE[2], *WHOLE[4:]],
    "answered": without(17),
    "after_leaving": with_(11, Overheard(2.45, A, OBJECT, 5)),
    "versions": with_(10, Heard(2.35, A, OBJECT, 4, "n")),
    "agreed": [*WHOLE[:-1], Held(9.0, "r1.1", OBJECT, 4, '{"n": 2}', children=CHILDREN)],
    "children": with_(24, Created(7.3, "r1.1", OBJECT, f"{B}#4")),
    "converged": [*WHOLE, Probed(6.3, "r0.2", "r1.1", 503)],
}


def history_of(remarks, left_over=()):
    return History(list(remarks), list(left_over))


def test_a_history_may_keep_every_rule():
    assert breaches(history_of(WHOLE)) == ()


def test_an_empty_history_keeps_every_rule():
    assert breaches(History()) == ()


@pytest.mark.parametrize("rule", BROKEN)
def test_each_rule_is_broken_by_a_history_that_breaks_no_other(rule):
    found = breaches(history_of(BROKEN[rule]))

    assert {breach.rule for breach in found} == {rule}


def test_remaining_links_are_reported():
    (breach,) = breaches(history_of(WHOLE, ["a link r0 > n0"]))

    assert (breach.rule, breach.what) == ("clean", "a link r0 > n0 is left")


def test_nodes_that_differ_from_their_engine_are_reported():
    history = history_of(WHOLE)
    history.different.append("n0a is no member")

    assert breaches(history) == (Breach("shared", "n0a is no member"),)


def test_every_rule_has_such_a_history():
    assert {*BROKEN, "clean", "shared"} == set(RULES)


@pytest.mark.parametrize(
    "copy",
    [
        Held(9.0, "r1.1", OBJECT, 3, '{"n": 1}'),
        Held(9.0, "r1.1", "comm://d0.ex/gone", 4, '{"n": 1}'),
        Held(9.0, "r1.1", OBJECT, 4, '{"n": 1}', children=f'{{"{B}#1": "7"}}'),
    ],
    ids=["an older one", "of nothing", "without a child"],
)
def test_a_copy_that_is_not_what_its_reporter_has_is_reported(copy):
    assert {one.rule for one in breaches(history_of([*WHOLE[:-1], copy]))} == {"agreed"}


def test_a_child_that_is_there_twice_is_reported():
    twice = CHILDREN.replace("9/10", "7/10")
    held = [attrs.evolve(one, children=twice) if isinstance(one, Held) else one for one in WHOLE]
    assert {one.rule for one in breaches(history_of(held))} == {"children"}


def test_versions_do_not_go_back_by_any_path():
    back = [Heard(0.0, A, OBJECT, 3, "n"), Heard(0.1, A, OBJECT, 2, "m")]

    assert [breach.rule for breach in breaches(history_of(back))] == ["versions"]


def test_an_answer_that_comes_too_late_is_none():
    late = [Asked(0.0, 1, A, B), Answered(16.5, 1, 408, None)]

    assert [breach.rule for breach in breaches(history_of(late))] == ["answered"]


def test_an_answer_to_another_request_is_no_answer():
    mixed = [Asked(0.0, 1, A, B), Executed(0.1, 1, B), Answered(0.2, 1, 200, 7)]

    assert [breach.rule for breach in breaches(history_of(mixed))] == ["addressee"]
