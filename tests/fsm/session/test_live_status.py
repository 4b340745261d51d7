"""Which runtimes others take to be live (REG-12)."""

import pytest

from fsm.session.node_session import LiveStatuses
from specs.message import Message, MessageType

R, OTHER = "hyperty-runtime://a.ex/ra", "hyperty-runtime://a.ex/rb"


def said(value, from_=R, to=f"{R}/status", type_=MessageType.UPDATE):
    return Message(1, type_, from_, to, {"value": value})


def test_a_live_runtime_is_lost_once():
    statuses = LiveStatuses()
    statuses.take_status(said("live"), R)
    assert [statuses.lose_runtime(R), statuses.lose_runtime(R), len(statuses)] == [True, False, 0]


@pytest.mark.parametrize(
    "message",
    [
        said("disconnected"),
        said("live", to=f"{R}/registry"),
        said("live", type_=MessageType.CREATE),
        said("live", from_=f"{R}/ua"),
    ],
)
def test_only_the_last_word_of_a_runtime_about_itself_counts(message):
    statuses = LiveStatuses()
    if message.body["value"] == "disconnected":
        statuses.take_status(said("live"), R)
    statuses.take_status(message, R)
    assert not statuses.lose_runtime(R)


def test_nobody_speaks_for_another():
    statuses = LiveStatuses()
    statuses.take_status(said("live"), OTHER)
    assert not statuses.lose_runtime(R)
    assert not statuses.lose_runtime(OTHER)
