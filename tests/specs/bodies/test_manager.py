"""Requests for data objects: each meaning has a class of its own."""

import pytest

from specs.bodies import object as manager
from specs.dialects.normalise import normalise
from specs.json_schema import BODIES
from specs.message import Message, MessageType
from specs.message_catalogue import KINDS, message_kind
from tests.specs.golden_kinds import IN_CATALOGUE, named

R, H, H2 = "hyperty-runtime://a.ex/ra", "hyperty://a.ex/ha", "hyperty://b.ex/hb"
O, MANAGER = "comm://a.ex/o1", f"{R}/sm"  # noqa: E741 the protocol's name for an object
CLASSES = {
    MessageType.CREATE: manager.create_class,
    MessageType.SUBSCRIBE: manager.subscribe_class,
    MessageType.UNSUBSCRIBE: manager.unsubscribe_class,
}
TO_MANAGER = [
    step
    for step in IN_CATALOGUE
    if step["msg"]["to"].endswith("/sm")
    and step["msg"]["to"].startswith("hyperty-runtime:")
    and step["msg"]["type"] in CLASSES
]


@pytest.mark.parametrize("step", TO_MANAGER, ids=named)
def test_the_class_of_a_golden_request_is_that_of_its_row(step):
    message = normalise(step["msg"])
    assert CLASSES[message.type](message) is message_kind(message).body


@pytest.mark.parametrize(
    ("type_", "from_", "body", "name"),
    [
        ("create", H, {"value": {}, "schema": "s", "resume": True}, "CreateObject"),
        ("create", H, {}, "CreateObject"),
        ("create", H, {"resume": True}, "Resume"),
        ("create", H, {"resume": True, "resource": None}, "Resume"),
        ("create", H, {"resume": True, "resource": O}, "CreateObject"),
        ("create", H, {"resource": O, "authorise": [H2]}, "InviteObservers"),
        ("create", H, {"resource": O, "observer": H2}, "AllowObserver"),
        ("create", H, {"resource": O, "delegate": H2}, "CreateObject"),
        ("subscribe", H, {"resource": O}, "Observe"),
        ("subscribe", H, {"resume": True}, "Resume"),
        ("subscribe", f"{O}/subscription", {"resource": O}, "ObjectBack"),
        ("subscribe", f"{O}2/subscription", {"resource": O}, "Observe"),
        ("unsubscribe", H, {"resource": O}, "ObjectName"),
        ("unsubscribe", H, {"resource": O, "observer": None}, "ExpelObserver"),
        ("unsubscribe", f"{O}/subscription", {"resource": O, "observer": H}, "ObserverExpelled"),
    ],
)
def test_keys_and_sender_say_what_a_sync_manager_is_asked(type_, from_, body, name):
    message = Message(1, MessageType(type_), from_, MANAGER, body)
    found = CLASSES[message.type](message)
    assert found.__name__ == name
    assert found in BODIES


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
