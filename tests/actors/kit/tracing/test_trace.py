"""Facts: what is told about a step and a message, and what never is."""

import attrs
from hypothesis import given
from hypothesis import strategies as st

from actors.kit.trace import digest
from specs.message import Message, MessageType
from specs.trace import Fact, Kind
from tests.support.trace.memory import MemoryTracer

READ = Message(
    7,
    MessageType.READ,
    "hyperty://a.example/1",
    "hyperty://b.example/2",
    {"value": "told to nobody", "auth": "T0KEN"},
)


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text())))
def test_a_digest_does_not_depend_on_the_order_of_keys(body):
    turned = dict(reversed(body.items()))

    assert digest(attrs.evolve(READ, body=body)) == digest(attrs.evolve(READ, body=turned))


def test_a_memory_tracer_keeps_facts_with_their_reporter():
    tracer = MemoryTracer()
    fact = Fact(k=Kind.END)
    tracer.record("bus", fact)

    assert tracer.records == [("bus", fact)]
    assert tracer.facts == [fact]
