"""Subscriptions and data objects on the way in: N8..N11."""

import pytest

from specs.dialects.normalise import normalise
from tests.specs.dialects.raw_messages import HA, HB, MN, O, R, body_of, raw, refused


@pytest.mark.parametrize("key", ["resources", "subscribe", "unsubscribe", "resource"])
@pytest.mark.parametrize("to", [f"{MN}/sm", f"{R}/p2phandler/1", f"{R}/registry"])
@pytest.mark.parametrize("type_", ["subscribe", "unsubscribe"])
def test_n8_path_messages_list_resources(type_, to, key):
    assert body_of(type_, to, {key: [HA]}) == {"resources": [HA]}
    assert body_of(type_, to, {key: HA}) == {"resources": [HA]}


def test_n8_two_lists_may_agree_and_must_not_differ():
    assert body_of("subscribe", f"{MN}/sm", {"resources": [O], "subscribe": O}) == {
        "resources": [O]
    }
    refused(type="subscribe", to=f"{MN}/sm", body={"resources": [O], "subscribe": [HA]})


@pytest.mark.parametrize("to", [f"{R}/sm", f"{O}/subscription", HB])
def test_n8_other_subscribes_keep_their_resource(to):
    """M-36, M-42, M-45 are no path messages."""
    assert body_of("subscribe", to, {"resource": O}) == {"resource": O}


@pytest.mark.parametrize("listed", [[["x"]], [None], 7, {}, [7]])
def test_n8_a_list_holds_addresses(listed):
    refused(type="subscribe", to=f"{MN}/sm", body={"resources": listed})


def test_n9_the_subscriber_is_the_source():
    assert body_of("execute", HB, {"subscriber": HA}) == {"source": HA}
    refused(body={"subscriber": HA, "source": HB})


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


def test_n10_only_at_a_node():
    body = {"source": HA, "childrenResources": ["resources"]}
    assert body_of("subscribe", f"{O}/subscription", body) == body


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


@pytest.mark.parametrize(
    "written", [f"{O}/resources/child", f"{O}/resources", f"{O}/children/resources"]
)
def test_n11_children_that_the_schema_names(written):
    assert normalise(raw(type="create", to=written)).to == f"{O}/children/resources"
    body = body_of("subscribe", f"{MN}/sm", {"resources": [written]})
    assert body == {"resources": [f"{O}/children/resources"]}


@pytest.mark.parametrize(
    "written",
    [f"{O}/votes", f"{O}/votes/child", "comm://a.ex/resources", "ctxt://a.ex/o1/resources", HA],
)
def test_n11_everything_else_stays(written):
    assert normalise(raw(type="create", to=written)).to == written
