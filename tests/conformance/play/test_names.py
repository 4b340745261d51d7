"""What names of a scenario may stand for."""

import pytest

from tests.conformance.play.match.names import Content, Names

HA, ACTUAL = "hyperty://a.ex/ha", "hyperty://a.ex/5f0c"
RA = "hyperty-runtime://a.ex/ra"


def test_a_name_stands_for_one_thing_and_one_thing_has_one_name():
    names = Names()
    assert names.unify(HA, ACTUAL)
    assert not names.unify(HA, "hyperty://a.ex/77")
    assert not names.unify("hyperty://a.ex/hb", ACTUAL)
    assert names.unify(HA, ACTUAL)


def test_addresses_below_a_renamed_address_are_renamed():
    names = Names()
    assert names.unify("comm://a.ex/o1/changes", "comm://a.ex/77/changes")
    assert names.actual("comm://a.ex/o1/subscription") == "comm://a.ex/77/subscription"
    assert names.golden("comm://a.ex/77") == "comm://a.ex/o1"
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


def test_the_number_of_a_stub_is_the_runtime_s_own():
    names = Names()
    assert names.unify(f"{RA}/protostub/2", f"{RA}/protostub/7")
    assert names.actual(f"{RA}/protostub/2/status") == f"{RA}/protostub/7/status"


def test_ids_of_a_sender_are_renamed_and_grow_alike():
    names = Names()
    assert names.unify_id(HA, 2, 20)
    assert names.unify_id(HA, 5, 30)
    assert names.unify_id("hyperty://b.ex/hb", 1, 20)
    for golden, actual in ((2, 21), (3, 20), (3, 10), (3, 30), (6, 29)):
        assert not names.copy().unify_id(HA, golden, actual)
    assert names.copy().unify_id(HA, 3, 25)


def test_an_attempt_leaves_nothing_until_it_is_taken():
    names = Names()
    trial = names.copy()
    assert trial.unify(HA, ACTUAL)
    assert names.actual(HA) == HA
    names.take(trial)
    assert names.actual(HA) == ACTUAL


@pytest.mark.parametrize(
    ("golden", "seen"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": {"b": []}}, {"a": {"b": [], "c": 1}}),
        ({"expires": 3600}, {"expires": 3600.0}),
        ({"schema": "hyperty-catalogue://a.ex/x/y"}, {"schema": "hyperty-catalogue://b.ex/x/y"}),
        ({"token": "t1"}, {"token": "5fa"}),
        ({"data": {"iceCandidates": []}}, {"data": {"iceCandidates": [{"kind": "tcp"}]}}),
        (
            {"attribute": "iceCandidates", "value": [1]},
            {"attribute": "iceCandidates", "value": [2]},
        ),
        ({"version": 3}, {"version": 9}),
        (
            {"message": {"id": 2, "type": "read", "from": HA, "to": RA}},
            {"message": {"id": 9, "type": "read", "from": ACTUAL, "to": RA}},
        ),
    ],
)
def test_a_recorded_value_matches_an_expected_part_of_it(golden, seen):
    assert Content(Names()).holds(golden, seen)


@pytest.mark.parametrize(
    ("golden", "seen"),
    [
        ({"a": 1}, {}),
        ({"a": 1}, {"a": True}),
        ({"a": None}, {"a": 0}),
        ({"a": [1]}, {"a": [1, 2]}),
        ({"a": "x"}, {"a": "y"}),
        ({"description": "why"}, {"description": "for another reason"}),
        ({"schema": "hyperty-catalogue://a.ex/x/y"}, {"schema": "hyperty-catalogue://a.ex/x/z"}),
        ({"attribute": "name", "value": [1]}, {"attribute": "name", "value": [2]}),
        ([{"token": "t1"}, {"token": "t1"}], [{"token": "a"}, {"token": "b"}]),
        ([{"version": 3}, {"version": 4}], [{"version": 9}, {"version": 9}]),
        (
            {"message": {"id": 2, "type": "read", "from": HA, "to": RA}},
            {"message": {"id": 9, "type": "create", "from": ACTUAL, "to": RA}},
        ),
    ],
)
def test_a_different_value_does_not_match(golden, seen):
    assert not Content(Names()).holds(golden, seen)


def test_any_sentence_is_accepted_as_the_reason_of_a_message():
    """Only at the top of its body: what hyperties describe is theirs."""
    content = Content(Names())
    assert content.body_holds({"description": "why"}, {"description": "for another reason"})
    assert not content.body_holds({"description": "why"}, {"description": ""})
    assert not content.body_holds({"description": "why"}, {})
    inner = [{"value": {"description": text}} for text in ("why", "for another reason")]
    assert not content.body_holds(*inner)
