"""The way out: N3, C-01, C-05, C-09, C-37, C-42; and there and back."""

import pytest

from specs.dialects.dialect import UPSTREAM, Dialect, dialect_of, emit, meaning_of
from specs.message import Message, MessageType

HA = "hyperty://a.ex/ha"
R = "hyperty-runtime://a.ex/ra"
MN = "domain://msg-node.a.ex"
OLD = Dialect(
    string_ids=True,
    runtime_alias=True,
    upper_types=True,
    list_key="subscribe",
    text_key="desc",
    allocation="hyperty-address-allocation",
)


def test_the_allocation_address_a_peer_used_is_the_one_that_answers():
    answer = Message(7, MessageType.RESPONSE, f"{MN}/address-allocation", HA, {"code": 200})
    assert emit(answer, OLD)["from"] == f"{MN}/hyperty-address-allocation"
    other = Message(7, MessageType.READ, f"{R}/address-allocation", HA, {})
    assert emit(other, Dialect(allocation="x"))["from"] == f"{R}/address-allocation"


OBJECT = "comm://a.ex/o"


@pytest.mark.parametrize(
    ("message", "counted"),
    [
        (Message(7, MessageType.UPDATE, OBJECT, f"{OBJECT}/changes", {"version": 0}), 1),
        (Message(7, MessageType.RESPONSE, OBJECT, HA, {"value": {"version": 4}}), 5),
        (
            Message(
                7, MessageType.RESPONSE, f"{OBJECT}/subscription", HA, {"value": {"version": 0}}
            ),
            1,
        ),
        (Message(7, MessageType.RESPONSE, HA, R, {"value": {"version": 0}}), 0),
        (Message(7, MessageType.RESPONSE, f"{MN}/x", R, {"value": {"version": 0}}), 0),
        (Message(7, MessageType.UPDATE, HA, f"{OBJECT}/changes", {"version": 0}), 0),
        (Message(7, MessageType.UPDATE, OBJECT, f"{OBJECT}/changes", {"version": True}), True),
        (Message(7, MessageType.RESPONSE, OBJECT, HA, {"value": {"version": "0"}}), "0"),
    ],
)
def test_versions_of_objects_that_count_from_0_are_counted_from_1(message, counted):
    read = meaning_of(message, Dialect(is_upstream=True, from_zero=True))
    assert read.body.get("version", (read.body.get("value") or {"version": None})) in (
        counted, {"version": counted},
    )  # fmt: skip
    assert meaning_of(message, UPSTREAM) == message


def test_only_a_version_0_shows_that_versions_count_from_0():
    change = {"id": 1, "type": "update", "from": OBJECT, "to": f"{OBJECT}/changes"}
    assert dialect_of({**change, "body": {"version": 1}}, UPSTREAM) is UPSTREAM
    shown = dialect_of({**change, "body": {"version": 0}}, UPSTREAM)
    assert shown == Dialect(is_upstream=True, from_zero=True)
    assert dialect_of({**change, "body": {"version": 1}}, shown) == shown
