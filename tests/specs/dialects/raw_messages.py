"""Raw messages that are good but for what a test changes, and their refusal."""

import pytest

from specs.dialects.normalise import normalise
from specs.errors import BadMessageError

HA, HB = "hyperty://a.ex/ha", "hyperty://b.ex/hb"
R = "hyperty-runtime://a.ex/ra"
MN = "domain://msg-node.a.ex"
O = "comm://a.ex/o1"  # noqa: E741 the protocol's name for an object


def raw(**changes):
    return {"id": 7, "type": "execute", "from": HA, "to": HB, "body": {}, **changes}


def body_of(type_, to, body):
    return normalise(raw(type=type_, to=to, body=body)).body


def refused(**changes):
    with pytest.raises(BadMessageError) as caught:
        normalise(raw(**changes))
    assert str(caught.value)
    return caught.value
