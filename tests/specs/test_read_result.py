"""What a registry answers to a read: N15, C-54."""

import pytest

from specs.errors import BadMessageError
from specs.message import Message, MessageType
from specs.read_result import normalise_read

HB = "hyperty://b.ex/hb"
RECORD = {"url": HB, "status": "live"}
OTHER = {"url": "hyperty://b.ex/hc", "status": "live"}


def read(value, *, resource=HB, code=200, criteria=None):
    body = {"resource": resource} | ({"criteria": criteria} if criteria else {})
    asked = Message(7, MessageType.READ, "hyperty://a.ex/ha", "domain://registry.b.ex", body)
    answer = Message(7, MessageType.RESPONSE, asked.to, asked.from_, {"code": code, "value": value})
    return normalise_read(asked, answer).body["value"]


@pytest.mark.parametrize("value", [RECORD, [RECORD], {HB: RECORD}, {"runtime://b.ex/x": RECORD}])
def test_a_read_by_address_gives_the_record(value):
    assert read(value) == RECORD


@pytest.mark.parametrize("value", [[RECORD, OTHER], [], {HB: RECORD, OTHER["url"]: OTHER}])
def test_a_read_by_address_gives_one_record(value):
    with pytest.raises(BadMessageError, match="one address"):
        read(value)


@pytest.mark.parametrize("resource", ["/hyperty/user/user://idp.ex/bob", "user-guid://b.ex/g1"])
@pytest.mark.parametrize("value", [RECORD, [RECORD], {HB: RECORD}])
def test_a_search_gives_a_list(resource, value):
    assert read(value, resource=resource) == [RECORD]


def test_a_read_with_criteria_is_a_search():
    assert read({HB: RECORD}, criteria={"resources": ["chat"]}) == [RECORD]


def test_a_search_gives_a_list_within_the_limit():
    with pytest.raises(BadMessageError):
        read([RECORD] * 257, resource="/hyperty/user/x")


def test_other_answers_stay():
    """SC-40 step 4: a 408 lists what is disconnected."""
    assert read([RECORD], code=408) == [RECORD]
    assert read(None, code=404) is None
    assert read("a.jwt", resource="user://idp.ex/bob") == ["a.jwt"]
    assert read({"a": 1, "b": 2}) == {"a": 1, "b": 2}
