"""What a trace tells of bodies: what the framework says, and no secret, no person, no hyperty."""

import json

import pytest

from actors.kit.trace import REDACTED, redacted_body
from specs.message import Message, MessageType

R = "hyperty-runtime://a.ex/ra"
H, H2 = "hyperty://a.ex/ha", "hyperty://a.ex/hb"
DR, MN = "domain://registry.a.ex", "domain://msg-node.a.ex"


def body_of(kind, from_, to, body):
    return redacted_body(Message(1, kind, from_, to, body))


@pytest.mark.parametrize(
    "resource", ["/hyperty/user/user://gmail.com/ann", "user://gmail.com/ann", "/hyperty/guid/1"]
)
def test_the_user_of_a_search_is_not_recorded(resource):
    reported = body_of(MessageType.READ, H, DR, {"resource": resource})

    assert json.loads(reported) == {"resource": REDACTED}


def test_internal_messages_are_recorded_without_bodies():
    assert body_of(MessageType.CREATE, f"{R}/registry", DR, {"number": 2**70}) is None
