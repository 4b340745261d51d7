"""Policies of upstream's runtime are read as ours (POL-16, C-61)."""

from datetime import UTC, datetime

import pytest

from fsm.policy.attributes import Passing, Place, Request
from fsm.policy.model import Book
from fsm.policy.page import BadPolicyError
from fsm.policy.pdp import Pdp
from fsm.policy.reading import read_set
from specs.identity import SenderIdentity, VouchedBy
from specs.message import Message, MessageType

ME, MINE = "user://idp.ex/alice", "hyperty://a.ex/mine"
THEM, THEIRS = "user://mail.ex/bob", "hyperty://b.ex/theirs"
SUNDAY = datetime(2017, 1, 1, 8, 0, 30, tzinfo=UTC).timestamp()


class Here:
    def is_local(self, address):
        return address == MINE

    def hyperties(self, address):
        return frozenset({"Chat"} if address == MINE else ())


def document(*rules, **more):
    return {"key": "My day", "rules": [*rules], **more}


def rule(condition="", *, decision=False, **more):
    return {"target": "global", "condition": condition, "decision": decision, **more}


def result(read, user=THEM, from_=THEIRS, to=MINE, type_="create", **body):
    """The decision on a message of another user to a hyperty here."""
    sender = None if user is None else SenderIdentity("hyperty-runtime://b.ex/rb", user, VouchedBy.DOMAIN)  # fmt: skip # noqa: E501
    message = Message(1, MessageType(type_), from_, to, body)
    request = Request(message, None, None, SUNDAY, Place("a.ex"), sender=sender,
                      passing=Passing(is_outgoing=False, user=ME, here=Here()))  # fmt: skip
    return str(Pdp(Book(sets=(read_set(read, "x"),))).decide(request).result)


# fmt: off
HOLDS = [
    ("source equals bob@mail.ex", True),
    ("source equals *",           True),
    ("source in friends",         True),
    ("source in nobody",          False),
    (["not", "source in friends"], False),
    ("domain equals mail.ex",     True),
    ("domain equals ex",          False),
    ("date equals 01/01/2017",    True),
    ("date greaterThan 1/1/2017", False),
    ("date lessThan 2/1/2017",    True),
    ("date between 1/1/2017 3/1/2017", True),
    ("weekday equals sunday",     True),
    ("weekday equals 0",          True),
    ("weekday equals 1",          False),
    ("time equals 0800",          True),
    ("time equals 801",           False),
    ("time lessThan 900",         True),
    ("time greaterThan 0800",     False),
    ("time greaterThan 0759",     True),
    ("time between 0800 1000",    True),
    ("time between 0900 1000",    False),
    ("resourceType equals chat",  True),
    ("resourceType equals video", False),
    ("scheme equals hyperty",     True),
    ("subscription equals *",     False),
    ({"attribute": "source", "operator": "in", "params": ["x@y.z", "bob@mail.ex"]}, True),
    ({"attribute": "weekday", "operator": "equals", "params": 0}, True),
    (["and", "weekday equals 0", ["or", "time lessThan 0700", ["time lessThan 900"]]], True),
    (["and", "weekday equals 0", "time lessThan 0700"], False),
]
# fmt: on


@pytest.mark.parametrize(("condition", "holds"), HOLDS, ids=[str(one[0]) for one in HOLDS])
def test_a_condition_holds_as_upstream_describes_it(condition, holds):
    groups = {"friends": ["bob@mail.ex"], "nobody": []}
    read = document(rule(condition), groups=groups)
    found = result(read, value={"resources": ["chat"]})
    assert found == ("deny" if holds else "notApplicable")


@pytest.mark.parametrize("condition", ["source equals bob@mail.ex", "domain equals mail.ex"])
def test_a_sender_without_a_user_is_no_listed_one(condition):
    assert result(document(rule(condition)), user=None) == "notApplicable"
    assert result(document(rule(["not", condition])), user=None) == "deny"


def test_subscriptions_are_restricted_by_their_user():
    read = document(rule("subscription equals bob@mail.ex"))
    assert result(read, type_="subscribe") == "deny"
    assert result(read) == "notApplicable"


# fmt: off
TARGETS = [
    ({"target": "global"},                                 True),
    ({"target": "Chat"},                                   True),
    ({"target": "Other"},                                  False),
    ({"target": ME},                                       True),
    ({"target": THEM},                                     True),
    ({"target": "user://idp.ex/carol"},                    False),
    ({"scope": "user", "target": "bob@mail.ex"},           True),
    ({"scope": "hyperty", "target": "Chat"},               True),
    ({"scope": "global", "target": "whatever"},            True),
]
# fmt: on


@pytest.mark.parametrize(("target", "fits"), TARGETS, ids=[str(one[0]) for one in TARGETS])
def test_a_rule_is_about_all_or_a_hyperty_or_a_user(target, fits):
    assert result(document(rule(**target))) == ("deny" if fits else "notApplicable")


def test_messages_between_parts_of_runtimes_and_nodes_are_not_judged():
    parts = {"from_": "domain://registry.a.ex", "to": "hyperty-runtime://a.ex/ra/sm"}
    assert result(document(rule()), **parts) == "notApplicable"


# fmt: off
ALGORITHMS = [
    ({},                                          "deny"),
    ({"combining-algorithm": "deny-overrides"},   "deny"),
    ({"combining-algorithm": "allow-overrides"},  "permit"),
    ({"combiningAlgorithm": "blockOverrides"},    "deny"),
    ({"combiningAlgorithm": "firstApplicable"},   "permit"),
]
# fmt: on


@pytest.mark.parametrize(("more", "found"), ALGORITHMS, ids=[str(one[0]) for one in ALGORITHMS])
def test_rules_are_combined_by_any_spelling_of_the_algorithm(more, found):
    rules = rule(priority=2), {"target": "global", "authorise": True, "priority": 1}
    assert result(document(*rules, **more)) == found


def test_an_action_goes_along_with_either_decision():
    one = read_set(document(rule(), actions=["count seen", {"method": "log", "params": ["x"]}]), "")
    duties = one.policies[0].scope.duties
    tasks = [[(task.do, task.name, task.text) for task in some] for some in duties.values()]
    assert tasks == [[("count", "seen", ""), ("log", "", "x")]] * 2


def test_the_set_is_shown_as_its_author_wrote_it():
    written = document(rule("time lessThan 900"))
    one = read_set(written, "mine.json")
    assert (one.id, one.document, one.source) == ("My-day", written, "mine.json")


# fmt: off
BAD = [
    (document(rule(decision="yes")),               "rules[0].decision", "true"),
    (document(rule("colour equals red")),          "rules[0].condition", "no attribute"),
    (document(rule("source likes bob")),           "rules[0].condition", "operation"),
    (document(rule("source in family")),           "rules[0].condition", "no group"),
    (document(rule("time equals 2500")),           "rules[0].condition", "no time"),
    (document(rule("date equals tomorrow")),       "rules[0].condition", "no date"),
    (document(rule("source equals")),              "rules[0].condition", "parameter"),
    (document(rule(["xor", "time equals 1", "time equals 2"])), "rules[0].condition", '"and"'),
    (document(rule("subscription equals preauthorised")), "rules[0].condition", "allowed"),
    (document(rule(scope="planet")),               "rules[0].scope", "one of"),
    (document(rule(), actions=["launch"]),         "actions[0]", "no action"),
    (document(rule(), rulez=[]),                   "", "no key here"),
    (document(rule(), combiningAlgorithm="dice"),  "combiningAlgorithm", "one of"),
    ({"key": "!", "rules": []},                    "key", "letters"),
]
# fmt: on


@pytest.mark.parametrize(("written", "path", "why"), BAD, ids=[one[2] for one in BAD])
def test_what_cannot_be_translated_is_refused_with_its_place(written, path, why):
    with pytest.raises(BadPolicyError) as caught:
        read_set(written, "mine.json")
    assert caught.value.path == path
    assert why in caught.value.reason


def test_deep_nesting_is_refused():
    condition = "time lessThan 900"
    for _ in range(5000):
        condition = ["not", condition]
    with pytest.raises(BadPolicyError, match="too deep"):
        read_set(document(rule(condition)), "")
