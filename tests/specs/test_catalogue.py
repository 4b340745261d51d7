"""Which message is which: the catalogue against the golden scenarios, named by hand."""

from collections import Counter

import attrs
import pytest

from specs.dialects.normalise import normalise
from specs.errors import BadMessageError, SpecError
from specs.json_schema import BODIES
from specs.message import Message, MessageType
from specs.message_catalogue import FORMS, KINDS, Mark, match_form, message_kind
from specs.reply_code import Code
from specs.schema.field import wire_name
from tests.specs.golden_kinds import (
    IN_CATALOGUE,
    MALFORMED,
    ORACLE,
    ROWS,
    STEPS,
    class_of,
    named,
    place,
)
from tests.support.cases import for_each
from transports.bodies import read_body, write_body

UNKNOWN_KEYS = {("SC-40", 12): {"schema"}}
"""What an old peer says beside what a body has, and routers carry along."""


def test_each_message_of_the_scenarios_is_named_in_the_oracle():
    assert {place(step) for step in STEPS} == set(ORACLE)


def test_the_catalogue_has_all_messages_but_that_of_hand_over():
    assert set(ROWS) == {f"M-{number:02}" for number in range(1, 59) if number != 54}


@for_each(STEPS, named)
def test_a_golden_message_is_found_in_its_row_and_in_no_other(step):
    message = normalise(step["msg"])
    found = {kind.id for kind in KINDS if kind.fits(message)}
    known = ORACLE[place(step)]
    expected = set() if message.is_response or not known else {known}
    assert found == expected
    kind = message_kind(message)
    assert (kind.id if kind else None) == (min(expected) if expected else None)


@for_each(IN_CATALOGUE, named)
def test_a_golden_body_is_read_into_its_class_and_written_as_it_was(step):
    message = normalise(step["msg"])
    cls = class_of(step, message)
    if place(step) in MALFORMED:
        with pytest.raises(BadMessageError, match="number must be >= 1"):
            read_body(message, cls)
        return
    left_out = {"via"} | UNKNOWN_KEYS.get(place(step), set())
    known = {key: value for key, value in message.body.items() if key not in left_out}
    assert known.keys() <= {wire_name(field) for field in attrs.fields(cls)}
    assert write_body(read_body(message, cls)) == known


def test_the_scenarios_answer_to_what_is_malformed_is_the_one_of_the_class():
    asked, answer = (
        normalise(s["msg"]) for s in STEPS if place(s) in {("SC-09", 19), ("SC-09", 20)}
    )
    with pytest.raises(BadMessageError) as caught:
        read_body(asked, ROWS["M-18"].body)
    assert caught.value.code == answer.code == 400
    assert str(answer.body["description"]) in caught.value.reason


@for_each(IN_CATALOGUE, named)
def test_the_scenarios_mark_as_events_what_the_catalogue_has_no_answer_for(step):
    message = normalise(step["msg"])
    if not message.is_response:
        kind = ROWS[ORACLE[place(step)]]
        assert kind.is_event == step.get("event", False) == message.is_event


# --- the table --------------------------------------------------------------------------


def test_every_body_class_is_used_by_a_row_or_is_a_part_or_is_ours():
    """What no message of the catalogue carries is part of an object, or ours altogether."""
    used = {kind.body for kind in KINDS}
    for kind in KINDS:
        answers = kind.answers
        if answers is not None:
            used |= {answers.yes, answers.wait, answers.no, answers.late}
    names = {cls.__name__ for cls in set(BODIES) - used}
    assert names == {
        "AllocationRequest", "Allocated", "Candidate", "ChangeObject", "ConnectionData",
        "ConnectionDescription", "CutPath", "DataObject", "FoundRecord", "IceCandidate",
        "IceServer", "IceServers", "LinkRow", "NewObject", "AllowObserver", "ExpelObserver",
        "LinkSecurity", "ObserverExpelled", "ObserverList", "QualityRequest",
        "Record", "SessionChallenge", "SessionGranted", "SessionParams", "Snapshot",
        "StatementGiven", "TurnServer", "Wrapped",
        # POL-05 says which requests there are, not with which bodies.
        "AddPolicies", "PoliciesChanged", "PoliciesListed", "PoliciesShown", "PolicyBook",
        "PolicyChange", "PolicyCommand", "PolicyEntry", "ReadPolicies", "RemovePolicies",
        "ReplacePolicies",
    }  # fmt: skip


EVENTS = {6, 7, 9, 13, 30, 40, 49, 50, 53}
"""The rows that page 04 marks as events."""


def test_the_events_are_those_of_the_page():
    assert {kind.id for kind in KINDS if kind.is_event} == {f"M-{n:02}" for n in EVENTS}


def test_only_messages_of_several_forms_have_several_rows():
    several = {name for name, rows in Counter(kind.id for kind in KINDS).items() if rows > 1}
    twice = {12, 17, 25, 36, 38, 41, 49, 50, 52, 58}
    assert several == {f"M-{number}" for number in twice}


# --- rows no scenario has, by hand ------------------------------------------------------

R, R2 = "hyperty-runtime://a.ex/ra", "hyperty-runtime://b.ex/rb"
PH, PQ, H, H2 = f"{R}/p2phandler/1", f"{R}/p2prequester/1", "hyperty://a.ex/ha", "hyperty://b.ex/h"
MN, DR, O = "domain://msg-node.a.ex", "domain://registry.a.ex", "comm://a.ex/o1"  # noqa: E741
QOS, GR, GUID = "domain://qos.a.ex", "global://registry", "user-guid://g1"
RECORD = {"url": H, "runtime": R}


@pytest.mark.parametrize(
    ("name", "type_", "from_", "to", "body"),
    [
        ("M-02", "unsubscribe", f"{R}/ua", f"{MN}/sm", {"resources": [PH]}),
        ("M-04", "unsubscribe", f"{R}/registry", f"{MN}/sm", {"resources": [PQ]}),
        (
            "M-09",
            "update",
            f"{R2}/registry",
            f"{R2}/registry/changes",
            {"value": [H], "attributeType": "array", "operation": "add"},
        ),
        (
            "M-10",
            "unsubscribe",
            f"{R}/registry",
            f"{R2}/registry",
            {"resources": [f"{R2}/registry/changes"]},
        ),
        ("M-12", "execute", f"{R}/registry", PQ, {"method": "disconnect", "params": [R2]}),
        (
            "M-14",
            "execute",
            f"{R}/protostub/1",
            f"{MN}/session",
            {"method": "open", "params": {"runtimeURL": R}},
        ),
        ("M-16", "execute", f"{R}/protostub/1", f"{MN}/session", {"method": "close"}),
        ("M-17", "execute", f"{R}/protostub/1", f"{MN}/session", {"method": "ping"}),
        ("M-17", "execute", f"{R}/ua", f"{MN}/session", {"method": "release"}),
        ("M-25", "read", f"{R}/registry", DR, {"resource": H, "attribute": "status"}),
        ("M-27", "read", H, DR, {"resource": GUID}),
        ("M-28", "read", H, DR, {"resource": "/hyperty/idp-identifier/bob@idp.ex"}),
        ("M-31", "read", H, f"{R}/discovery", {"resource": "/hyperty/user/user://idp.ex/bob"}),
        (
            "M-36",
            "update",
            f"{R}/sm",
            H,
            {"resource": O, "value": {"url": O, "version": 3, "data": {}}},
        ),
        ("M-41", "read", H, O, {"attribute": "t.0"}),
        ("M-45", "unsubscribe", H, H2, {"resource": O}),
        ("M-46", "delete", H, f"{R}/sm", {"resource": O, "attribute": "t.0"}),
        (
            "M-50",
            "delete",
            H,
            f"{O}/children/resources",
            {"resource": f"{H}#1", "attribute": "t", "version": 3},
        ),
        (
            "M-49",
            "update",
            O,
            f"{O}/children/resources",
            {"resource": f"{H}#1", "value": "v", "version": 3},
        ),
        ("M-50", "delete", O, f"{O}/children/resources", {"resource": f"{H}#1", "version": 3}),
        ("M-51", "create", H, f"{R}/sm", {"resume": True}),
        ("M-52", "subscribe", H, f"{R}/sm", {"resume": True}),
        ("M-52", "subscribe", f"{O}/subscription", f"{R}/sm", {"resource": O}),
        (
            "M-53",
            "update",
            O,
            f"{O}/observers",
            {"value": [H2], "attributeType": "array", "operation": "remove"},
        ),
        (
            "M-57",
            "create",
            f"{R}/graph-connector",
            GR,
            {"resource": "user-guid://g1", "value": "j"},
        ),
        ("M-58", "read", H, QOS, {}),
        ("M-58", "read", H, QOS, {"resource": "c1"}),
        ("M-58", "delete", H, QOS, {"resource": "c1"}),
    ],
)
def test_messages_outside_the_scenarios_are_found_and_read(name, type_, from_, to, body):
    message = Message(1, MessageType(type_), from_, to, body)
    (kind,) = [kind for kind in KINDS if kind.fits(message)]
    assert kind.id == name
    assert write_body(read_body(message, kind.body)).keys() >= body.keys()


def test_every_row_is_tried_by_a_scenario_or_by_hand():
    by_hand = test_messages_outside_the_scenarios_are_found_and_read.pytestmark[0].args[1]
    assert {row[0] for row in by_hand} | set(ORACLE.values()) == {*ROWS, ""}


@pytest.mark.parametrize(
    ("type_", "from_", "to", "body"),
    [
        ("create", H, H2, {"value": 1}),
        ("read", H, H2, {"resource": H2}),
        ("execute", H, H2, {"method": "connect"}),
        ("unsubscribe", H, H2, {"resource": H2}),
        ("update", PQ, f"{PH}/status", {"value": "live", "resource": R2}),
        ("update", O, "comm://a.ex/o2/changes", {"version": 1}),
        ("update", O, f"{O}/changes", {}),
        ("subscribe", f"{R}/registry", f"{MN}/sm", {"resources": [H]}),
        ("create", H, f"{R}/sm", {"resource": O, "delegate": H2}),
        ("read", H, DR, {"resource": H}),
    ],
)
def test_free_and_almost_matching_messages_are_in_no_row(type_, from_, to, body):
    assert message_kind(Message(1, MessageType(type_), from_, to, body)) is None


@pytest.mark.parametrize(
    ("code", "cls"),
    [
        (100, "Provisional"),
        (200, "RecordFound"),
        (404, "Refusal"),
        (408, "RecordsAway"),
        (500, "Refusal"),
    ],
)
def test_an_answer_is_read_by_its_code(code, cls):
    assert ROWS["M-25"].answers.body(code).__name__ == cls


# --- forms and marks --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "fits", "fits_not"),
    [
        ("R", R, f"{R}/registry"),
        ("R2/registry", f"{R}/registry", f"{R}/registry/changes"),
        ("PQ", PQ, PH),
        ("PC", f"{PH}/conn/1", PH),
        ("PX/status", f"{PH}/conn/1/status", f"{R}/protostub/1/status"),
        ("S", f"{R}/protostub/1", f"{R}/sm"),
        ("H2", H, O),
        ("H", PH, f"{R}/sm"),
        ("O", O, H),
        ("O", "connection://a.ex/c1", "user://a.ex/c1"),
        ("O/children/<n>", f"{O}/children/chat", f"{O}/children"),
        ("MN/sm", f"{MN}/sm", f"{DR}/sm"),
        ("x", GR, "nothing"),
        ("IDM", "domain-idp://a.ex", "domain-x://a.ex"),
        ("URL", H, "user://a.ex/bob"),
        ("USER", "/hyperty/user/u", "/hyperty/guid/u"),
    ],
)
def test_forms_fit_what_they_name(form, fits, fits_not):
    assert match_form(form, fits) is not None
    assert match_form(form, fits_not) is None


def test_a_form_gives_back_what_its_first_part_stands_for():
    assert match_form("O/changes", f"{O}/changes") == O


def test_forms_and_marks_that_are_none_are_mistakes_of_the_table():
    assert all(match_form(form, "x") is None for form in FORMS)
    with pytest.raises(SpecError, match="no known form"):
        match_form("Z/sm", O)
    with pytest.raises(SpecError, match="is no mark"):
        Mark.read("?")


def test_codes_in_use_are_reported_by_the_answer_of_a_row():
    yes = {row.answers.body(Code.ACCEPTED) for row in KINDS if row.answers}
    assert all("code" in attrs.fields_dict(cls) for cls in yes)
