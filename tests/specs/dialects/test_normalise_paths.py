"""Subscriptions and data objects on the way in: N8..N11."""

import pytest

from tests.specs.dialects.raw_messages import HA, HB, MN, O, R, body_of, refused


@pytest.mark.parametrize("to", [f"{R}/sm", f"{O}/subscription", HB])
def test_n8_other_subscribes_keep_their_resource(to):
    """M-36, M-42, M-45 are no path messages."""
    assert body_of("subscribe", to, {"resource": O}) == {"resource": O}


@pytest.mark.parametrize("source", [None, 7, [HA], "nonsense"])
def test_n9_a_source_is_one_address(source):
    refused(body={"source": source})


@pytest.mark.parametrize("type_", ["subscribe", "unsubscribe"])
def test_n10_the_seed_form_lists_changes_and_children(type_):
    """MN-17."""
    body = {"resource": O, "childrenResources": ["resources", "votes"]}
    assert body_of(type_, f"{MN}/sm", body) == {
        "resources": [f"{O}/changes", f"{O}/children/resources", f"{O}/children/votes"]
    }


@pytest.mark.parametrize(
    "body",
    [
        {"childrenResources": ["resources"]},
        {"resource": O, "childrenResources": "resources"},
        {"resource": O, "childrenResources": [7]},
        {"resource": O, "childrenResources": [f"{O}/children/resources"]},
        {"resource": O, "childrenResources": ["a b"]},
        {"resource": [O], "childrenResources": []},
        {"resource": f"{O}/changes", "childrenResources": ["resources"]},
        {"resource": O, "childrenResources": ["resources"], "resources": [O]},
        {"resource": O, "childrenResources": ["x"] * 300},
    ],
)
def test_n10_an_unclear_path_is_refused(body):
    refused(type="subscribe", to=f"{MN}/sm", body=body)
