"""The explorer counts right and finds what is wrong, by the shortest way, on a toy."""

import attrs
import pytest

from fsm.product.bounds import Bounds
from fsm.product.choice import Choice
from fsm.product.composition import Channel, End, Haste, Medium, Never, Patience, Variable
from fsm.product.explorer import Fault, explore
from fsm.product.rule import Rule, act, after, got, happens, in_time, move, send, wished
from fsm.product.steps import Kind
from fsm.table import Deadline, Transition
from specs.errors import SpecError
from tests.support.toy_product import ANSWERED, CALL, ROWS, RULES, TOO_LATE, Call, Pull, toy

WITHOUT_DEADLINE = attrs.evolve(
    CALL, deadlines=(Deadline(Call.ASKED, None, None, "it waits without end"),)
)


def words(finding):
    return [step.words for step in finding.run.steps]


# ---- counted by hand
#
# Without losses: nobody asked; asked, question there; asked, answer back; late, question
# there; late, answer back; done; late. Each of the seven is left by as many steps as it has
# messages and deadlines, which makes seven.


def test_every_state_and_step_of_the_toy_is_found():
    found = explore(toy())
    assert (found.states, found.transitions, found.depth, found.ends) == (7, 7, 4, 3)
    assert found.holds


def test_a_loss_adds_waiting_in_vain_and_its_end():
    """Two states more: asked and nothing under way, and late after that; five steps more."""
    found = explore(toy(losses=1))
    assert (found.states, found.transitions) == (9, 12)
    assert found.holds


def test_a_duplicate_is_the_same_message_once_more():
    """The question arrives twice, so two answers are under way; or one answer twice."""
    found = explore(toy(duplicates=1))
    assert found.holds
    assert found.states > 9


def test_a_step_waits_where_a_network_has_no_room():
    found = explore(toy(duplicates=1, bounds=Bounds(losses=0, duplicates=1, channel=1)))
    assert found.holds
    assert found.held_back > 0


def test_when_every_message_is_faster_than_every_timer_nobody_is_late():
    found = explore(toy(patience=Patience.AT_REST))
    assert (found.states, found.ends) == (4, 2)
    assert found.holds


def test_a_timer_of_no_table_waits_as_deadlines_do():
    timer = Rule(in_time("bored"), act({"mood": "fine"}, sets={"mood": "bored"}), "toy")
    moody = {"variables": (Variable("mood", ("fine", "bored")),), "rules": (*RULES, timer)}
    assert explore(toy(**moody)).states == 14
    # At rest: before the question, and after each end.
    assert explore(toy(**moody, patience=Patience.AT_REST)).states == 8


def test_what_is_told_within_a_process_may_be_faster_than_all_else():
    channels = (Channel("there", "a", "a", Medium.LOCAL), Channel("back", "a", "a", Medium.LOCAL))
    assert explore(toy(channels=channels)).states == 7
    assert explore(toy(channels=channels, haste=Haste.LOCAL_FIRST)).states == 4


# ---- what is wrong is found, by the shortest way


def test_without_its_deadline_a_lost_message_is_a_deadlock():
    found = explore(toy(WITHOUT_DEADLINE, losses=1))
    (finding,) = found.findings
    assert finding.fault is Fault.DEADLOCK
    assert words(finding) == [
        "wish: ask: asker [*] -> asked, sends ask",
        "ask is lost on there",
    ]
    assert finding.run.last["asker"] == "asked"
    assert not found.holds


def test_a_message_without_a_rule_is_an_unspecified_reception():
    rules = tuple(rule for rule in RULES if rule is not TOO_LATE)
    (finding,) = explore(toy(rules=rules)).findings
    assert (finding.fault, finding.subject) == (Fault.UNSPECIFIED, "no rule for reply")
    assert len(finding.run.steps) == 3
    assert finding.run.refused.what == "reply"
    assert finding.run.under_way == {"back": ("reply",)}


def test_a_trigger_without_a_row_is_an_unspecified_reception():
    table = attrs.evolve(CALL, rows=tuple(row for row in ROWS if row.trigger != Pull.ANSWER))
    (finding,) = explore(toy(table)).findings
    assert finding.fault is Fault.UNSPECIFIED
    assert finding.subject == "no row for 'answer' of asker in 'asked' at reply"
    assert len(finding.run.steps) == 2
    assert [(m.old, m.trigger, m.new) for m in finding.run.refused.moved] == [
        ("asked", "answer", "")
    ]


def test_a_deadline_without_a_rule_is_an_unspecified_reception():
    rules = tuple(rule for rule in RULES if rule.cause != after("asker", Pull.SILENCE))
    (finding,) = explore(toy(rules=rules)).findings
    assert (finding.fault, len(finding.run.steps)) == (Fault.UNSPECIFIED, 1)


def test_what_must_never_be_is_found_where_it_is_first():
    never = Never("an answer comes to nobody", ({"asker": "late", "back": "not empty"},), "toy")
    (finding,) = explore(toy(never=(never,))).findings
    assert (finding.fault, finding.subject) == (Fault.UNSAFE, never.name)
    assert (len(finding.run.steps), finding.times) == (3, 1)


def test_to_rest_where_all_may_end_but_not_so_is_a_bad_end():
    ends = (End("answered", ({"asker": "[*]|done"},)),)
    (finding,) = explore(toy(ends=ends)).findings
    assert (finding.fault, len(finding.run.steps)) == (Fault.BAD_END, 4)


def test_asking_for_ever_is_a_livelock():
    again = Transition(Call.ASKED, Pull.SILENCE, Call.ASKED, "toy")
    table = attrs.evolve(CALL, rows=(*ROWS[:2], again))
    insists = act({"there": "empty"}, move("asker", Pull.SILENCE), send("there", "ask"))
    deaf = Rule(got("there", "ask"), act({}), "toy")
    rules = (RULES[0], deaf, Rule(after("asker", Pull.SILENCE), insists, "toy"))
    (finding,) = explore(toy(table, rules=rules)).findings
    assert (finding.fault, len(finding.run.steps), finding.times) == (Fault.LIVELOCK, 1, 2)


def test_what_only_a_wish_could_end_is_a_deadlock():
    """The surroundings need not want anything."""
    rescue = Rule(wished("ask"), act({"asker": "asked"}, move("asker", Pull.ANSWER)), "toy")
    found = explore(toy(WITHOUT_DEADLINE, losses=1, rules=(*RULES, rescue)))
    assert [finding.fault for finding in found.findings] == [Fault.DEADLOCK]


def test_an_entity_begins_again_only_where_its_story_may_end():
    twice = attrs.evolve(RULES[0], act=attrs.evolve(RULES[0].act, when={}))
    wishes = (attrs.evolve(toy().wishes[0], budget=2),)
    (finding, *_) = explore(toy(rules=(twice, *RULES[1:]), wishes=wishes)).findings
    assert finding.fault is Fault.UNSPECIFIED
    assert finding.run.refused.kind is Kind.WISH


def test_an_exploration_that_is_cut_short_holds_nothing():
    found = explore(toy(), max_states=6)
    assert (found.states, found.is_complete, found.findings) == (6, False, ())
    assert not found.holds
    assert explore(toy(), max_states=7).holds


# ---- what contradicts itself is refused


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (Rule(got("nowhere", "ask"), act({}), "toy"), "no channel is named 'nowhere'"),
        (Rule(got("there", "asks"), act({}), "toy"), "no message is named 'asks'"),
        (Rule(wished("tea"), act({}), "toy"), "no wish is named 'tea'"),
        (Rule(happens("x"), act({"asker": "askd"}), "toy"), "'asker' is never 'askd'"),
        (Rule(happens("x"), act({"taster": "asked"}), "toy"), "nothing is named 'taster'"),
        (Rule(happens("x"), act({}, move("taster", "ask")), "toy"), "no part is named 'taster'"),
        (Rule(happens("x"), act({}, move("asker", "aks")), "toy"), "'asker' has no 'aks'"),
        (Rule(after("asker", Pull.SILENCE), act({}), "toy"), "does not move it so"),
        (
            Rule(happens("x"), act({}, *(send("there", "ask") for _ in range(4))), "toy"),
            "4 messages have no room in 'there'",
        ),
    ],
)
def test_a_rule_about_what_is_not_there_is_refused(rule, said):
    with pytest.raises(SpecError, match=said):
        explore(toy(rules=(*RULES, rule)))


@pytest.mark.parametrize("bounds", [{"losses": -1}, {"duplicates": -1}, {"channel": 0}])
def test_bounds_that_allow_nothing_are_refused(bounds):
    with pytest.raises(SpecError, match="use"):
        Bounds(**bounds)


def test_two_things_of_one_name_are_refused():
    with pytest.raises(SpecError, match="two things are named 'asker'"):
        explore(toy(variables=(Variable("asker", ("x",)),)))


# ---- rules are found as if each were asked


@pytest.mark.parametrize("state", [(a, b) for a in range(3) for b in range(3)])
def test_the_tree_says_the_same_as_asking_every_rule(state):
    rules = [(0, ((0, 0b011),)), (1, ((0, 0b100), (1, 0b001))), (2, ()), (3, ((1, ~0b010),))]
    asked = [n for n, tests in rules if all(bits >> state[at] & 1 for at, bits in tests)]
    assert list(Choice(rules).holding(state)) == asked


_ = ANSWERED
