"""Facts: what is told about a step and a message, and what never is."""

from enum import StrEnum

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.kit.trace import NULL_TRACER, digest, message_fact, refused_fact, step_fact
from fsm.engine import Step
from fsm.table import UndeclaredTransitionError
from specs.message import Message, MessageType, reply_to, stamped
from specs.reply_code import Code, DropReason
from specs.trace import ABSENT, Fact, Kind, Op
from tests.support.trace.memory import MemoryTracer

READ = Message(
    7,
    MessageType.READ,
    "hyperty://a.example/1",
    "hyperty://b.example/2",
    {"value": "told to nobody", "auth": "T0KEN"},
)


class Trigger(StrEnum):
    OPENED = "opened"


def test_a_step_names_what_was_left_and_entered():
    fact = step_fact(Step("session", "key", "open", "closed", "close", "asked to"))

    assert (fact.k, fact.op, fact.machine, fact.key) == (Kind.STATE, Op.STEP, "session", "key")
    assert (fact.old, fact.new, fact.cause, fact.why) == ("open", "closed", "close", "asked to")


def test_the_first_step_leaves_nothing():
    assert step_fact(Step("session", "key", None, "open", "opened")).old == ABSENT


def test_a_refused_step_enters_nothing():
    fact = refused_fact(UndeclaredTransitionError("session", "key", None, Trigger.OPENED))

    assert (fact.op, fact.old, fact.new, fact.cause) == (Op.REFUSED, ABSENT, None, "opened")


def test_a_message_is_reported_without_body_and_token():
    fact = message_fact(Op.ADMIT, READ, by="stub", link="l1")

    reported = repr(attrs.asdict(fact))
    assert "told to nobody" not in reported
    assert "T0KEN" not in reported
    assert (fact.mid, fact.by, fact.link) == ("hyperty://a.example/1#7", "stub", "l1")
    assert (fact.code, fact.ref) == (None, None)


def test_an_answer_names_its_request_and_code():
    fact = message_fact(Op.CALLBACK, reply_to(READ, Code.OK))

    assert (fact.ref, fact.code) == ("hyperty://a.example/1#7", 200)


def test_a_drop_has_one_reason():
    assert message_fact(Op.DROP, READ, reason=DropReason.LOOP).reason == "loop"


def test_a_digest_is_the_same_at_every_hop():
    evolved = attrs.evolve(READ, body={"value": "told to nobody", "auth": "OTHER"})

    assert digest(stamped(READ, "stub")) == digest(READ) == digest(evolved)


@pytest.mark.parametrize(
    "other",
    [
        attrs.evolve(READ, body={"value": "changed"}),
        attrs.evolve(READ, to="hyperty://b.example/3"),
        attrs.evolve(READ, type=MessageType.EXECUTE),
    ],
    ids=["body", "to", "type"],
)
def test_a_digest_reports_messages_apart(other):
    assert digest(other) != digest(READ)


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text())))
def test_a_digest_does_not_depend_on_the_order_of_keys(body):
    turned = dict(reversed(body.items()))

    assert digest(attrs.evolve(READ, body=body)) == digest(attrs.evolve(READ, body=turned))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["value", "n", "token", "via"]), inner)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_a_digest_does_not_depend_on_what_is_left_out_or_how_a_number_is_written(value):
    def told(body):
        return digest(attrs.evolve(READ, body=body))

    said = told({"value": value})
    assert said == told({"value": value, "token": "T0KEN", "via": ["stub"]})
    assert said == told({"value": _in_browser(value)})
    assert said == told({"value": _in_browser(value), "via": ["stub"]})


def _in_browser(value):
    """The value without what never counts, its numbers as JavaScript has them."""
    match value:
        case dict():
            left = {key: value[key] for key in value if key not in {"token", "via"}}
            return {key: _in_browser(part) for key, part in left.items()}
        case list():
            return [_in_browser(part) for part in value]
        case float() if value.is_integer() and abs(value) < 2**53:
            return int(value)
        case int() if not isinstance(value, bool) and abs(value) >= 2**53:
            return float(value)
        case _:
            return value


def test_a_memory_tracer_keeps_facts_with_their_reporter():
    tracer = MemoryTracer()
    fact = Fact(k=Kind.END)
    tracer.record("bus", fact)

    assert tracer.records == [("bus", fact)]
    assert tracer.facts == [fact]


def test_the_null_tracer_wants_no_hops():
    NULL_TRACER.record("bus", Fact(k=Kind.END))
    assert not NULL_TRACER.hops
