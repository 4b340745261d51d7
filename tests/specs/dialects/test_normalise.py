"""The one way in, whole messages and single fields: N1..N7, N12..N14, N16, MSG-18."""

import pytest

from specs.dialects.normalise import normalise
from tests.specs.dialects.raw_messages import HB, MN, O, body_of, raw, refused


@pytest.mark.parametrize("written", ["", "publish", "re-open", None, 1, ["read"], "read "])
def test_n1_other_types_are_refused(written):
    """MSG-02: an unknown verb is 400."""
    refused(type=written)


def test_n14_the_block_to_free():
    to = f"{MN}/address-allocation"
    assert body_of("delete", to, {"value": {"allocationKey": "k"}}) == {"resource": "k"}
    kept = {"value": {"allocationKey": "k", "x": 1}, "resource": "k"}
    assert body_of("delete", to, kept) == {"resource": "k", "value": {"x": 1}}
    assert body_of("delete", to, {"resource": "k"}) == {"resource": "k"}
    refused(type="delete", to=to, body={"resource": "a", "value": {"allocationKey": "b"}})


def test_a_forwarded_message_comes_into_normal_form_too():
    """M-39, MSG-16."""
    inner = {"id": "2", "type": "SUBSCRIBE", "from": "hyperty://B.ex/hb", "to": f"{O}/"}
    message = normalise(raw(type="forward", body={"message": inner, "x": 1}))
    assert message.body == {"message": {"id": 2, "type": "subscribe", "from": HB, "to": O}, "x": 1}
