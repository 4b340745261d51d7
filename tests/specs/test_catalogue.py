"""Which message is which: the catalogue against the golden scenarios, named by hand."""

from collections import Counter

import pytest

from specs.errors import SpecError
from specs.json_schema import BODIES
from specs.message_catalogue import FORMS, KINDS, Mark, match_form
from tests.specs.golden_kinds import (
    ORACLE,
    ROWS,
    STEPS,
    place,
)


def test_each_message_of_the_scenarios_is_named_in_the_oracle():
    assert {place(step) for step in STEPS} == set(ORACLE)


def test_the_catalogue_has_all_messages_but_that_of_hand_over():
    assert set(ROWS) == {f"M-{number:02}" for number in range(1, 59) if number != 54}


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

MN, DR, O = "domain://msg-node.a.ex", "domain://registry.a.ex", "comm://a.ex/o1"  # noqa: E741


# --- forms and marks --------------------------------------------------------------------


def test_forms_and_marks_that_are_none_are_mistakes_of_the_table():
    assert all(match_form(form, "x") is None for form in FORMS)
    with pytest.raises(SpecError, match="no known form"):
        match_form("Z/sm", O)
    with pytest.raises(SpecError, match="is no mark"):
        Mark.read("?")
