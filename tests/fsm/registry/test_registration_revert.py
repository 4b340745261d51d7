"""A group of changes that could not be made durable leaves no trace in the registry (R13)."""

import attrs
import pytest

from fsm.registry.records import Create, Touch
from tests.support.lone_registry import LoneRegistry

URLS = [f"hyperty://a.ex/{n}" for n in range(3)]
USER = "user://idp.ex/bob"


def create(url, by="r1", **more):
    return Create(url, by, by, {"url": url, "runtime": by, "user": USER, **more})


CATALOGUE = "hyperty-catalogue://catalogue.a.ex/.well-known"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("p2pHandler", "r1/protostub/1"),
        ("p2pHandler", "r1/p2prequester/1"),
        ("p2pRequester", f"{CATALOGUE}/protocolstub/default"),
        ("p2pRequester", f"{CATALOGUE}/protostub/P2PHandler"),
        ("p2pRequester", f"{CATALOGUE}/hyperty/Chat"),
    ],
)
def test_a_record_cannot_name_a_stub_that_is_known_to_be_of_another_kind(name, value):
    """I-G6, ADR-07, CAT-10: neither when it is made nor later."""
    core = LoneRegistry()
    core.feed(create(URLS[0]), 0.0)
    (changed,) = core.feed(Touch(URLS[0], "r1", {name: value}), 0.0)
    made = create(URLS[1])
    made = attrs.evolve(made, value={**made.value, name: value})
    refused = core.feed(made, 0.0)[-1]
    for answer in (changed, refused):
        assert answer.code == 400
        assert value in answer.why
