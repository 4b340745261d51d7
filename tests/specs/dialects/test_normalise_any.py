"""Whatever comes in: a message or the one declared error."""

from contextlib import suppress

from hypothesis import given

from specs.dialects.normalise import is_normal, normalise
from specs.errors import BadMessageError
from specs.message import Message
from tests.specs.dialects.wire_json import MANGLED, WIRE


@given(MANGLED)
def test_any_object_is_a_message_or_is_refused(mangled):
    with suppress(BadMessageError):
        assert isinstance(normalise(mangled), Message)


@given(WIRE)
def test_unknown_keys_survive_and_the_input_is_left_alone(wire):
    """MSG-09."""
    before = repr(wire)
    try:
        message = normalise(wire)
    except BadMessageError:
        return
    finally:
        assert repr(wire) == before
    unknown = {key: value for key, value in wire["body"].items() if key.startswith("x-")}
    assert unknown.items() <= message.body.items()


@given(WIRE)
def test_a_normal_message_is_not_changed(wire):
    if is_normal(wire):
        message = normalise(wire)
        assert message.body == wire["body"]
        assert (message.from_, message.to, message.id) == (wire["from"], wire["to"], wire["id"])
