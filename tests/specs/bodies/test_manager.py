"""Requests for data objects: each meaning has a class of its own."""

import pytest

from specs.bodies import object as manager
from specs.message import Message, MessageType
from specs.message_catalogue import KINDS

R, H, H2 = "hyperty-runtime://a.ex/ra", "hyperty://a.ex/ha", "hyperty://b.ex/hb"
O, MANAGER = "comm://a.ex/o1", f"{R}/sm"  # noqa: E741 the protocol's name for an object


@pytest.mark.parametrize(
    ("type_", "body", "name"),
    [
        ("subscribe", {"resources": [O], "observer": H}, "Path"),
        ("unsubscribe", {"resources": [O]}, "Path"),
        ("unsubscribe", {"resources": [O], "observer": H}, "CutPath"),
    ],
)
def test_only_an_unsubscribe_that_names_an_observer_cuts_a_path(type_, body, name):
    message = Message(1, MessageType(type_), MANAGER, "domain://msg-node.a.ex/sm", body)
    assert manager.path_class(message).__name__ == name


def test_each_create_row_of_a_sync_manager_is_a_class_of_its_own():
    rows = {k.body for k in KINDS if k.to == "R/sm" and k.type is MessageType.CREATE}
    assert rows | {manager.AllowObserver} == set(manager.Create.__args__)
