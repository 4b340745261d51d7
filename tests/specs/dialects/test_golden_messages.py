"""Every message of the golden scenarios is in normal form, SC-40 after ingress."""

import json
from pathlib import Path

from specs.dialects.normalise import normalise
from specs.message import Message
from tests.conformance.play.script import expanded
from tests.support.cases import for_each

FIXTURE = Path(__file__).parents[2] / "fixtures" / "golden-steps.jsonl"
STEPS = [json.loads(line) for line in FIXTURE.read_text().splitlines()]


def of_kind(kind):
    return [step for step in STEPS if step["k"] == kind]


def named(step):
    return f"{step['sc']}-{step['n']}"


@for_each(of_kind("msg"), named)
def test_golden_messages_are_in_normal_form(step):
    """I-T10."""
    golden = expanded(step["msg"])
    message = normalise(golden)
    assert isinstance(message, Message)
    assert message.body == golden.get("body", {})
    assert (message.from_, message.to, message.id) == (golden["from"], golden["to"], golden["id"])


@for_each(of_kind("ingest"), named)
def test_golden_ingress(step):
    """SC-40 step 11."""
    assert normalise(expanded(step["raw"])) == normalise(expanded(step["norm"]))
    assert normalise(step["raw"]).body == step["norm"]["body"]


def test_all_34_scenarios_are_there():
    assert len({step["sc"] for step in STEPS}) == 34
