"""What names may stand for, which steps must be seen in order, and what contradicts a scenario."""

import attrs
import pytest

from specs.message import Message, MessageType
from specs.trace import Fact, Kind, Op
from tests.conformance.play.names import Names, holds, says_the_same
from tests.conformance.play.order import Order
from tests.conformance.play.route import Match, Observer
from tests.conformance.play.score import Score
from tests.support.trace.recorded import lines_of, record, scenario_of

HA, ACTUAL = "hyperty://a.ex/ha", "hyperty://a.ex/5f0c"
RA = "hyperty-runtime://a.ex/ra"

# ---- names


def test_a_name_stands_for_one_thing_and_one_thing_has_one_name():
    names = Names()
    assert names.unify(HA, ACTUAL)
    assert not names.unify(HA, "hyperty://a.ex/77")
    assert not names.unify("hyperty://a.ex/hb", ACTUAL)
    assert names.unify(HA, ACTUAL)


def test_addresses_below_a_renamed_address_are_renamed():
    names = Names()
    assert names.unify("comm://a.ex/o1/changes", "comm://a.ex/77/changes")
    assert names.unify(f"{RA}/protostub/2", f"{RA}/protostub/7")
    assert names.actual("comm://a.ex/o1/subscription") == "comm://a.ex/77/subscription"
    assert names.actual(f"{RA}/protostub/2/status") == f"{RA}/protostub/7/status"
    assert names.in_golden({"a": ["comm://a.ex/77/x", 1]}) == {"a": ["comm://a.ex/o1/x", 1]}


@pytest.mark.parametrize(
    ("golden", "actual"),
    [
        (HA, "hyperty://b.ex/ha"),
        (HA, "comm://a.ex/ha"),
        (HA, f"{ACTUAL}/more"),
        (RA, "hyperty-runtime://a.ex/rb"),
        (f"{RA}/registry", f"{RA}/sm"),
        ("domain://registry.a.ex", "domain://registry.b.ex"),
        (f"{RA}/protostub/1", f"{RA}/protostub/one"),
        ("comm://a.ex/o1/changes", "comm://a.ex/77/status"),
    ],
)
def test_given_values_keep_their_names(golden, actual):
    assert not Names().unify(golden, actual)


def test_ids_of_a_sender_are_renamed_and_grow_alike():
    names = Names()
    assert names.unify_id(HA, 2, 20)
    assert names.unify_id(HA, 5, 30)
    assert names.unify_id("hyperty://b.ex/hb", 1, 20)
    for golden, actual in ((2, 21), (3, 20), (3, 10), (3, 30), (6, 29)):
        assert not names.copy().unify_id(HA, golden, actual)
    assert names.copy().unify_id(HA, 3, 25)
    assert 3 not in names.numbers[HA]


CATALOGUE = "hyperty-catalogue://{}.ex/x/{}"
MESSAGE = {"id": 2, "type": "read", "from": HA, "to": RA}


@pytest.mark.parametrize(
    ("golden", "seen", "is_held"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": {"b": []}}, {"a": {"b": [], "c": 1}}, True),
        ({"expires": 3600}, {"expires": 3600.0}, True),
        ({"s": CATALOGUE.format("a", "y")}, {"s": CATALOGUE.format("b", "y")}, True),
        ({"token": "t1"}, {"token": "5fa"}, True),
        ({"data": {"iceCandidates": []}}, {"data": {"iceCandidates": [{"kind": "tcp"}]}}, True),
        ({"attribute": "sdp", "value": [1]}, {"attribute": "sdp", "value": [2]}, True),
        ({"version": 3}, {"version": 9}, True),
        ({"message": MESSAGE}, {"message": {**MESSAGE, "id": 9, "from": ACTUAL}}, True),
        ({"a": 1}, {}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": None}, {"a": 0}, False),
        ({"a": [1]}, {"a": [1, 2]}, False),
        ({"a": "x"}, {"a": "y"}, False),
        ({"description": "why"}, {"description": "for another reason"}, False),
        ({"s": CATALOGUE.format("a", "y")}, {"s": CATALOGUE.format("a", "z")}, False),
        ({"attribute": "name", "value": [1]}, {"attribute": "name", "value": [2]}, False),
        ([{"token": "t1"}, {"token": "t1"}], [{"token": "a"}, {"token": "b"}], False),
        ([{"version": 3}, {"version": 4}], [{"version": 9}, {"version": 9}], False),
        ({"message": MESSAGE}, {"message": {**MESSAGE, "type": "create"}}, False),
    ],
)
def test_a_value_matches_if_the_expected_part_is_in_it(golden, seen, is_held):
    assert holds(golden, seen, Names()) is is_held


@pytest.mark.parametrize(
    ("seen", "is_same"), [("for another reason", True), ("", False), (None, False)]
)
def test_any_sentence_is_accepted_as_the_reason_of_a_message(seen, is_same):
    golden, other = (
        Message(1, MessageType.READ, HA, RA, {} if why is None else {"description": why})
        for why in ("why", seen)
    )
    assert says_the_same(golden, other, Names()) is is_same


# ---- order


@pytest.mark.parametrize(
    ("name", "earlier", "later", "is_ordered"),
    [
        pytest.param("SC-04", 11, 14, True, id="steps of one entity"),
        pytest.param("SC-16", 4, 47, True, id="changes of one row"),
        pytest.param("SC-31", 3, 6, True, id="from one sender to one receiver"),
        pytest.param("SC-02", 1, 3, True, id="a request and its answer"),
        pytest.param("SC-03", 2, 4, True, id="a provisional answer and the final one"),
        pytest.param("SC-13", 1, 3, True, id="a hop and the next"),
        pytest.param("SC-04", 14, 15, True, id="a step and the event that tells it"),
        pytest.param("SC-16", 45, 46, True, id="a step of a link and the event that tells it"),
        pytest.param("SC-01", 2, 3, True, id="a ruling and the next hop"),
        pytest.param("SC-39", 2, 3, True, id="a denial and the refusal"),
        pytest.param("SC-13", 2, 3, True, id="a route and the way by it"),
        pytest.param("SC-07", 11, 13, True, id="a fault and what is behind it"),
        pytest.param("SC-24", 4, 13, True, id="time and what is behind it"),
        pytest.param("SC-12", 1, 2, True, id="a message and the row it asks for"),
        pytest.param("SC-24", 5, 9, True, id="a step of a link and its row"),
        pytest.param("SC-04", 4, 12, False, id="steps of two stubs"),
        pytest.param("SC-04", 8, 10, False, id="created and deployed, of one stub"),
        pytest.param("SC-31", 4, 5, False, id="copies for two receivers"),
        pytest.param("SC-16", 42, 43, False, id="changes of two objects"),
        pytest.param("SC-16", 45, 48, False, id="both ends of a link"),
        pytest.param("SC-25", 9, 10, False, id="an answer and another's request"),
    ],
)
def test_steps_must_come_in_order_where_the_protocol_fixes_it(name, earlier, later, is_ordered):
    order = Order(scenario_of(lines_of(name)))
    assert (earlier in order.before(later)) is is_ordered


def test_an_answer_reported_before_its_request_is_impossible():
    *given, ask, route, answer = [one for one in lines_of("SC-02") if "do" not in one]
    ask["n"], answer["n"] = 3, 1
    order = Order(scenario_of([*given, answer, route, ask]))
    assert order.conflict(3, Match(1, 1), {1: Match(5, 6)}) == 1


def test_a_step_on_the_wrong_side_is_a_conflict_seen_from_both():
    order = Order(scenario_of(lines_of("SC-02")))
    assert order.conflict(3, Match(4, 4), {1: Match(5, 5)}) == 1
    assert order.conflict(1, Match(5, 5), {3: Match(4, 4)}) == 3
    assert order.conflict(3, Match(6, 6), {1: Match(5, 5)}) is None


# ---- contradictions


async def recorded(name):
    return await record(scenario_of(lines_of(name)))


async def judged(name, whole, *more):
    """What is said of a run in which something else was seen, too."""
    observer = Observer()
    for seen in whole.observer.items:
        observer.see(seen.who, seen.actor, seen.fact, seen.message)
    for who, actor, fact in more:
        observer.see(who, actor, fact)
    observer.start, observer.processes = whole.observer.start, whole.observer.processes
    return await attrs.evolve(whole, observer=observer).judge(scenario_of(lines_of(name)))


async def test_a_step_that_no_table_declares_may_not_be(autojump_clock):
    whole = await recorded("SC-07")
    row = Fact(k=Kind.TABLE, op=Op.ADD, table="stubs", key="c.ex", val="x")
    assert await judged("SC-07", whole, ("elsewhere", "registry", row)) is None
    refused = Fact(k=Kind.STATE, op=Op.REFUSED, machine="session", key="x", old="open", cause="y")
    difference = await judged("SC-07", whole, ("elsewhere", "bus", refused))
    assert "is not declared" in difference.seen[0]


async def test_a_step_of_an_entity_that_is_followed_must_be_reported(autojump_clock):
    lines = [line for line in lines_of("SC-04") if line.get("n") not in {11, 12}]
    difference = await (await recorded("SC-04")).judge(scenario_of(lines))
    assert (difference.number, difference.seen[0][-22:]) == (8, "created -> in-progress")


async def test_a_second_final_answer_may_not_be(autojump_clock):
    whole = await recorded("SC-02")
    items = [seen for seen in whole.observer.items if seen.fact.op is Op.DELIVER]
    answer = next(seen for seen in items if seen.fact.code == 404)
    again = attrs.evolve(answer.fact, code=200, mid="another")
    difference = await judged("SC-02", whole, (answer.who, answer.actor, again))
    assert (difference.number, "second final answer" in difference.seen[0]) == (3, True)


@pytest.mark.parametrize(
    ("reason", "seen"), [("overflow", ("it was dropped: overflow",)), ("duplicate", None)]
)
async def test_a_message_that_is_reported_may_not_be_dropped(reason, seen, autojump_clock):
    whole = await recorded("SC-02")
    ask = next(one for one in whole.observer.items if "nobody" in (one.fact.to or ""))
    drop = attrs.evolve(ask.fact, op=Op.DROP, reason=reason)
    difference = await judged("SC-02", whole, (ask.who, ask.actor, drop))
    assert (difference and difference.seen) == seen


async def test_a_receiver_that_is_not_named_gets_nothing(autojump_clock):
    lines = lines_of("SC-31")
    reported = [line | ({"deliver_to": ["HC"]} if line.get("n") == 4 else {}) for line in lines]
    difference = await (await recorded("SC-31")).judge(scenario_of(reported))
    assert (difference.number, difference.seen) == (4, ("it was delivered to hyperty://b.ex/hb",))


async def test_a_scenario_that_is_not_over_contradicts_nothing(autojump_clock):
    whole = await recorded("SC-02")
    score = Score(scenario_of(lines_of("SC-02")), whole.observer, whole.names.copy())
    assert score.contradiction() is None
