"""`python -m actors policy`, and a node that is given policies, as processes."""

import json

import orjson
import pytest

from actors.cli.group import ExitCode
from fsm.policy.schema import policy_schema
from tests.support.command import ROOT, typed
from tests.support.node.policing import one_policy, rule

HOURS = one_policy(
    rule("closed", 'effect = "deny"\nreason = "it is late"\ntarget.actionType.equals = "create"\n'
         'condition = { time = { not = { between = "08:00:00 18:00:00" } } }'),
    rule("staff", 'effect = "permit"\ncondition.srcRoles.contains = "staff"'),
)  # fmt: skip
ODD = one_policy(rule("all", 'effect = "permit"'), rule("never", 'effect = "deny"'))
MESSAGE = {
    "id": 1,
    "type": "create",
    "from": "hyperty://a.ex/1",
    "to": "hyperty://a.ex/2",
    "body": {},
}


NOWHERE = "ws://127.0.0.1:1/link"


def written(folder, text: str, name: str = "p.toml") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_a_good_file_is_good(tmp_path):
    ended = typed("policy", "check", written(tmp_path, HOURS))
    assert (ended.status, ended.err) == (ExitCode.OK, [])
    assert ended.out == [f"{tmp_path}/p.toml: set s, rules: 2, odd: 0"]


def test_a_useless_rule_is_reported_and_ends_with_1(tmp_path):
    file = written(tmp_path, ODD)
    ended = typed("policy", "check", file)
    assert ended.status == ExitCode.FAILED
    assert ended.out[1:] == ["  s/p/never never decides: all applies to all of it and prevails"]
    ended = typed("policy", "check", "--json", file)
    assert orjson.loads(ended.out[0]) == {
        "schema": "protofly.policy-check/1", "file": file, "id": "s", "rules": 2,
        "remarks": [{"path": "s/p/never",
                     "what": "never decides: all applies to all of it and prevails"}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "where", "advice"),
    [
        ('id = "x"\nrulez = 1', "p.toml", "known are"),
        (one_policy(rule("r", 'effect = "permitt"')), "policies[0].rules[0].effect", "permit"),
        (one_policy(rule("r", 'effect = "deny"\ntarget.srcDomian.equals = "x"')),
         "policies[0].rules[0].target", "write srcDomain"),
        (one_policy(rule("r", 'effect = "deny"\ntarget.srcIDP.matches = "x"')),
         "policies[0].rules[0].target.srcIDP", "known are equals"),
        ("id = ", "p.toml", "no TOML"),
    ],
)  # fmt: skip
def test_a_bad_file_is_reported_in_one_sentence_and_ends_with_3(text, where, advice, tmp_path):
    file = written(tmp_path, text)
    for command in (
        ("policy", "check"),
        ("node", "--domain", "a.ex", "--allow-legacy", "--policy"),
        ("runtime", "--domain", "a.ex", "--name", "ra", "--node", NOWHERE, "--policy"),
    ):
        ended = typed(*command, file)
        assert ended.status == ExitCode.CONFIGURATION
        (sentence,) = ended.err
        assert file in sentence
        assert where in sentence
        assert advice in sentence


def test_two_files_with_the_same_set_are_refused(tmp_path):
    files = written(tmp_path, HOURS, "a.toml"), written(tmp_path, HOURS, "b.toml")
    for command in (files, (str(tmp_path),)):
        ended = typed("policy", "check", *command)
        assert ended.status == ExitCode.CONFIGURATION
        assert "give it another" in ended.err[0]


def test_an_explanation_for_people_names_rule_cause_and_values(tmp_path):
    files = written(tmp_path, HOURS), written(tmp_path, json.dumps(MESSAGE), "m.json")
    ended = typed("policy", "explain", *files, "--at", "2026-11-21T20:00:00")
    assert ended.out[0] == "deny, because s/p/closed says deny: it is late"
    assert "      target: actionType equals 'create': true ('create')" in ended.out
    assert "        time between '08:00:00 18:00:00': false ('20:00:00')" in ended.out


@pytest.mark.parametrize(
    ("more", "decision"),
    [
        (("--direction", "in", "--hyperty", "chat"), "deny"),
        (("--direction", "in", "--hyperty", "chat", "--user", "user://idp.ex/a"), "permit"),
        (("--direction", "in", "--hyperty", "files"), "permit"),
        (("--direction", "out", "--own-user", "user://idp.ex/a"), "deny"),
        (("--direction", "out", "--own-user", "user://idp.ex/b"), "permit"),
    ],
)
def test_a_decision_of_a_runtime_is_explained(more, decision, tmp_path):
    """POL-17: by the direction, and by what only a runtime knows."""
    text = one_policy(
        rule("guest", 'effect = "deny"\ndirection = "in"\ntarget.hyperties.contains = "chat"\n'
             'condition.authenticated.equals = false'),
        rule("own", 'effect = "deny"\ndirection = "out"\n'
             'target.ownUser.equals = "user://idp.ex/a"'),
    )  # fmt: skip
    files = written(tmp_path, text), written(tmp_path, json.dumps(MESSAGE), "m.json")
    ended = typed("policy", "explain", *files, *more, "--json")
    assert orjson.loads(ended.out[0])["decision"] == decision


@pytest.mark.parametrize("text", ["{", "[]", '{"id": 0}', json.dumps({**MESSAGE, "to": "x"})])
def test_a_file_that_is_no_message_is_reported_in_one_sentence(text, tmp_path):
    files = written(tmp_path, HOURS), written(tmp_path, text, "m.json")
    ended = typed("policy", "explain", *files)
    assert ended.status == ExitCode.CONFIGURATION
    assert len(ended.err) == 1


@pytest.mark.parametrize(
    "more",
    [
        ("--role", "x"),
        ("--idp", "x"),
        ("--own",),
        ("--zone", "Mars"),
        ("--at", "noon"),
        ("--own-user", "user://idp.ex/a"),
        ("--hyperty", "chat"),
    ],
)
def test_options_that_make_no_sense_are_usage_errors(more, tmp_path):
    files = written(tmp_path, HOURS), written(tmp_path, json.dumps(MESSAGE), "m.json")
    assert (typed("policy", "explain", *files, *more)).status == ExitCode.USAGE


def test_the_schema_is_printed():
    ended = typed("policy", "schema")
    assert orjson.loads("\n".join(ended.out)) == policy_schema()


# ---- a node with policies, over a real socket


@pytest.mark.parametrize("file", sorted((ROOT / "examples" / "policies").glob("*.toml")))
def test_the_examples_are_good(file):
    assert (typed("policy", "check", str(file))).status == ExitCode.OK
