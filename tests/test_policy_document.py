"""The page of policies says what holds, and its examples are policies."""

import re
import tomllib
from pathlib import Path

import pytest

from actors.policy.store import PolicyConfig
from fsm.policy.attributes import ATTRIBUTES, Place, Request
from fsm.policy.explain import TASKS, review
from fsm.policy.model import Book
from fsm.policy.operators import OPERATORS
from fsm.policy.pdp import Pdp
from fsm.policy.reading import POLICY_KEYS, RULE_KEYS, SET_KEYS, TASK_KEYS, read_set
from fsm.policy.terms import ALGORITHMS, EFFECTS, Operator
from specs.identity import Identity
from specs.limits import node as limits_node
from specs.limits import protocol as limits
from specs.message import Message, MessageType

PAGE = (Path(__file__).parents[1] / "docs" / "policies.md").read_text()
EXAMPLES = [tomllib.loads(text) for text in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)]
NODE = "domain://msg-node.a.ex"
ALICE = Identity(user="user://idp.ex/alice", issuer="https://idp.ex", until=1e12)


@pytest.mark.parametrize("row", ATTRIBUTES.values(), ids=lambda row: row.name)
def test_the_table_of_attributes_is_the_one_that_holds(row):
    missing = row.missing or "never"
    assert f"| `{row.name}` | {row.form.value} | {row.meaning} | {missing} |" in PAGE
    for word in row.words:
        assert f"`{word}`" in PAGE or row.name in {"actionType", "weekday"}


@pytest.mark.parametrize("form", OPERATORS, ids=lambda form: form.name)
def test_the_table_of_operators_is_the_one_that_holds(form):
    operators = ", ".join(f"`{one}`" for one in OPERATORS[form])
    assert f"| {form.value} | {operators} |" in PAGE


def test_every_word_of_the_language_is_explained():
    keys = {*SET_KEYS, *POLICY_KEYS, *RULE_KEYS, *TASK_KEYS} - {"name", "text"}
    words = {*keys, *EFFECTS, *ALGORITHMS, *Operator, *TASKS, "name", "text", "srcDomain"}
    assert {word for word in words if f"`{word}`" not in PAGE} == set()


def test_the_limits_are_those_that_hold():
    assert (limits_node.MAX_POLICY_BYTES, limits_node.MAX_POLICY_RULES) == (256 * 1024, 1000)
    assert (limits_node.MAX_POLICY_CONDITIONS, limits_node.MAX_POLICY_DEPTH) == (5000, 8)
    assert (limits.MAX_LIST, limits_node.MAX_POLICY_TEXT, limits_node.MAX_POLICY_SETS) == (
        256,
        2048,
        64,
    )
    assert limits_node.MAX_POLICY_COUNTERS == limits.MAX_JSON_KEYS == 256


@pytest.mark.parametrize("document", EXAMPLES, ids=lambda one: one["id"])
def test_an_example_is_a_policy_without_oddities(document):
    assert review(read_set(document, "docs/policies.md")) == []


# fmt: off
GUESTS = [
    ("execute", f"{NODE}/session",         {"method": "open"}, None,  "permit"),
    ("read",    "domain://registry.a.ex",  {},                 None,  "permit"),
    ("create",  "domain://registry.a.ex",  {},                 None,  "deny"),
    ("read",    "hyperty://a.ex/1",        {},                 None,  "deny"),
    ("create",  "domain://registry.a.ex",  {},                 ALICE, "notApplicable"),
]
# fmt: on


@pytest.mark.parametrize(("type_", "to", "body", "identity", "result"), GUESTS)
def test_the_first_example_does_what_the_page_says(type_, to, body, identity, result):
    pdp = Pdp(Book(sets=(read_set(EXAMPLES[0], ""),)))
    message = Message(1, MessageType(type_), "hyperty://a.ex/me", to, body)
    assert pdp.decide(Request(message, None, identity, 0.0, Place("a.ex"))).result == result


def test_the_defaults_are_those_of_the_page():
    config = PolicyConfig(files=())
    assert (str(config.combining), str(config.default)) == ("denyOverrides", "permit")
    assert "`denyOverrides` if it is not given" in PAGE
    assert "`permit` unless given" in PAGE
