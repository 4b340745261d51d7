"""Messages about children, as the reporter's end and the copies read them (I-D10, M-48..M-50)."""

import pytest

from actors.runtime.sync.children import read_op
from fsm.sync.children import ChildOp
from specs.child import misnamed
from specs.errors import BadMessageError
from specs.message import Message, MessageType
from specs.message import MessageType as Act

HB, HC = "hyperty://b.ex/hb", "hyperty://c.ex/hc"
TO = "comm://a.ex/o/children/resources"

FORGED = [
    (MessageType.UPDATE, {"resource": f"{HB}#1", "value": 1}),
    (MessageType.DELETE, {"resource": f"{HB}#1"}),
    (MessageType.CREATE, {"resource": f"{HB}#1", "value": 1}),
    (MessageType.CREATE, {"value": 1}),
    (MessageType.CREATE, {"resource": [f"{HC}#1"], "value": 1}),
    (MessageType.CREATE, {"resource": f"{HC}x#1", "value": 1}),
    (MessageType.READ, {"resource": f"{HC}#1"}),
    (MessageType.SUBSCRIBE, {}),
]


@pytest.mark.parametrize(("type_", "body"), FORGED)
def test_a_message_that_names_the_child_of_another_has_no_effect(type_, body):
    """I-D10: forged children."""
    message = Message(1, type_, HC, TO, body)
    with pytest.raises(BadMessageError):
        read_op(message)
    assert misnamed(message) is not None


def test_a_message_says_what_is_done_and_its_id_when():
    message = Message(9, MessageType.UPDATE, HB, TO, {"resource": f"{HB}#4", "value": 1})
    assert read_op(message) == ChildOp(Act.UPDATE, f"{HB}#4", HB, 4, 9, 1)
    assert misnamed(message) is None


def test_only_its_creator_deletes_an_attribute_of_a_child():
    """I-D10."""
    body = {"resource": f"{HB}#1", "attribute": "a", "version": 5}
    assert read_op(Message(9, MessageType.DELETE, HB, TO, body)) == ChildOp(
        Act.UPDATE, f"{HB}#1", HB, 1, 9, removes="a", base=5
    )
    with pytest.raises(BadMessageError, match="only its creator"):
        read_op(Message(9, MessageType.DELETE, HC, TO, body))
