"""The way out: N3, C-01, C-05, C-09, C-37, C-42; and there and back."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.node.links.acceptor import Acceptor
from specs.dialects.dialect import (
    PLAIN,
    UPSTREAM,
    Dialect,
    dialect_of,
    emit,
    envelope_of,
    meaning_of,
)
from specs.dialects.normalise import normalise
from specs.errors import BadMessageError
from specs.limits.protocol import MAX_SPELLINGS
from specs.message import Message, MessageType
from tests.specs.dialects.wire_json import WIRE

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


def test_without_a_dialect_normal_form_goes_out_in_the_order_of_the_envelope():
    message = Message(7, MessageType.READ, HA, R, {"resource": "x"})
    assert list(emit(message)) == ["id", "type", "from", "to", "body"]
    assert emit(message)["body"] == {"resource": "x"}
    assert normalise(emit(message)) == message


def test_n3_text_ids_are_echoed():
    raw = {"id": "7", "type": "read", "from": HA, "to": HA, "body": {}}
    assert dialect_of(raw) == Dialect(string_ids=True)
    assert emit(normalise(raw), dialect_of(raw))["id"] == "7"


def test_n3_number_ids_stay_numbers():
    raw = {"id": 7, "type": "read", "from": HA, "to": HA, "body": {}}
    assert emit(normalise(raw), dialect_of(raw))["id"] == 7


def test_an_old_peer_reads_what_it_would_have_written():
    body = {"resources": [R], "source": R, "via": [R], "description": "x", "keep": R}
    message = Message(7, MessageType.SUBSCRIBE, R, f"{MN}/sm", body)
    old = "runtime://a.ex/ra"
    assert emit(message, OLD) == {
        "id": "7",
        "type": "SUBSCRIBE",
        "from": old,
        "to": f"{MN}/sm",
        "body": {"subscribe": [old], "source": old, "via": [old], "desc": "x", "keep": R},
    }
    assert normalise(emit(message, OLD)) == message


def test_resources_that_are_no_path_keep_their_name():
    message = Message(7, MessageType.RESPONSE, R, HA, {"code": 200, "resources": ["x"]})
    assert emit(message, OLD)["body"]["resources"] == ["x"]


def test_the_allocation_address_a_peer_used_is_the_one_that_answers():
    answer = Message(7, MessageType.RESPONSE, f"{MN}/address-allocation", HA, {"code": 200})
    assert emit(answer, OLD)["from"] == f"{MN}/hyperty-address-allocation"
    other = Message(7, MessageType.READ, f"{R}/address-allocation", HA, {})
    assert emit(other, Dialect(allocation="x"))["from"] == f"{R}/address-allocation"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ({"id": "1"}, Dialect(string_ids=True)),
        ({"type": "READ"}, Dialect(upper_types=True)),
        ({"from": "runtime://a.ex/ra"}, Dialect(runtime_alias=True)),
        (
            {"to": f"{MN}/object-address-allocation"},
            Dialect(allocation="object-address-allocation"),
        ),
        ({"type": "subscribe", "body": {"subscribe": [HA]}}, Dialect(list_key="subscribe")),
        ({"body": {"desc": "x"}}, Dialect(text_key="desc")),
        ({"type": 7, "from": None, "body": []}, PLAIN),
        ({"type": "subscribe", "body": {"resource": HA, "childrenResources": []}}, PLAIN),
    ],
)
def test_a_message_shows_the_dialect_of_its_sender(raw, shown):
    assert dialect_of(raw) == shown


def test_facts_that_a_message_does_not_show_stay_known():
    """A session learns: N3."""
    assert dialect_of({}, OLD) == OLD


def test_newer_evidence_wins():
    raw = {"id": 1, "type": "subscribe", "from": R, "to": f"{MN}/address-allocation"}
    body = {"resources": [R], "description": "x"}
    assert dialect_of({**raw, "body": body}, OLD) == PLAIN


OBJECT = "comm://a.ex/o"


@pytest.mark.parametrize("type_", ["subscribe", "unsubscribe"])
def test_n9_upstream_reads_the_observer_from_subscriber(type_):
    message = Message(7, MessageType(type_), f"{R}/sm", f"{OBJECT}/subscription", {"source": HA})
    assert emit(message, UPSTREAM)["body"] == {"source": HA, "subscriber": HA}
    assert normalise(emit(message, UPSTREAM)) == message
    elsewhere = attrs.evolve(message, to=f"{MN}/sm")
    assert emit(elsewhere, UPSTREAM)["body"] == {"source": HA}


def test_n11_upstream_knows_all_children_by_one_address():
    message = Message(7, MessageType.CREATE, HA, f"{OBJECT}/children", {})
    assert emit(message, UPSTREAM)["to"] == f"{OBJECT}/children/"
    assert emit(message, OLD)["to"] == f"{OBJECT}/children"
    assert normalise(emit(message, UPSTREAM)) == message


@pytest.mark.parametrize("shown", [f"{R}/registry/", "runtime://A.ex/ra/registry", f"{R}/registry"])
def test_n12_an_own_address_is_spelt_as_it_was_written_last(shown):
    known = dialect_of({"from": "runtime://a.ex/ra/registry/"}, UPSTREAM)
    dialect = dialect_of({"from": shown}, known)
    answer = Message(7, MessageType.RESPONSE, MN, f"{R}/registry", {"code": 200})
    assert emit(answer, dialect)["to"] == shown
    assert dialect_of({"from": shown}, dialect) is dialect


def test_no_more_than_so_many_spellings_are_remembered():
    dialect = UPSTREAM
    for number in range(2 * MAX_SPELLINGS):
        dialect = dialect_of({"from": f"{R}/{number}/"}, dialect)
    assert len(dialect.names) == MAX_SPELLINGS


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


class Learner(Acceptor):
    """Keeps what it learns, as the acceptors of upstream's forms do."""

    def read(self, frame):
        raise NotImplementedError

    def write(self, entries):
        raise NotImplementedError


@given(WIRE, st.lists(WIRE, min_size=1, max_size=4), st.lists(st.integers(0, 9), max_size=12))
def test_a_link_learns_the_same_whether_or_not_it_has_seen_the_like(first, others, order):
    """Most messages are only glanced at; what is learnt is as if each was read in full."""
    alike = [{**first, "body": one["body"]} for one in others if "body" in one]
    messages = [first, *alike, *others]
    learner, known = Learner(), UPSTREAM
    learner.dialect = UPSTREAM
    for place in order:
        raw = messages[place % len(messages)]
        learner.learn(raw)
        known = dialect_of(raw, known)
        assert (learner.dialect, learner.dialect.names) == (known, known.names)


@pytest.mark.parametrize(
    "body",
    [
        {"description": "x"}, {"desc": "x"}, {"Message": "x"}, {"via": "x"}, {"resources": []},
        {"subscribe": []}, {"unsubscribe": []}, {"resource": "x"}, {"childrenResources": []},
        {"version": 0}, {"value": {"version": 0}},
    ],
)  # fmt: skip
def test_a_message_whose_body_may_show_a_spelling_is_read_in_full(body):
    raw = {"id": 1, "type": "update", "from": HA, "to": R}
    assert envelope_of({**raw, "body": {"value": {"x": 1}}}) == ("update", HA, R, False)
    assert envelope_of({**raw, "body": body}) is None


@given(WIRE)
def test_there_and_back_changes_nothing(raw):
    try:
        message = normalise(raw)
    except BadMessageError:
        return
    assert normalise(emit(message, dialect_of(raw))) == message
    assert normalise(emit(message)) == message
    assert normalise(emit(message, OLD)) == message
