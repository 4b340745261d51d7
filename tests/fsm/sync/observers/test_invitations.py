"""The invitations that a reported object has sent (SYN-04, SYN-05, M-33, M-34)."""

import math

import pytest

from fsm.effects import Refused
from fsm.engine import Step
from fsm.machines.sync.invitation import INVITATION
from specs.bodies.object import DataObject
from specs.limits.protocol import REPLY_TIMEOUT
from specs.reply_code import Code
from tests.support import lone_report
from tests.support.lone_report import told

HA, HB, HC = "hyperty://a.ex/ha", "hyperty://b.ex/hb", "hyperty://c.ex/hc"
RA, URL = "hyperty-runtime://a.ex/ra", "comm://a.ex/o1"
WANTED = ("invite", HB)
GONE = ("delete", HA)


def reporter():
    return lone_report.lone_report(DataObject(HA, RA, {}, URL))


def answer(code, why=""):
    return ("take_answer", HB, code, why)


HISTORIES = {
    "accepted after a while": (WANTED, answer(100), answer(183), answer(200)),
    "refused": (WANTED, answer(403)),
    "no way there": (WANTED, answer(503)),
    "no answer, says the bus": (WANTED, answer(408)),
    "the object goes": (WANTED, GONE),
}


def reported(*history):
    return told(reporter(), *history)


def moves(effects):
    return [(each.old, each.cause, each.new) for each in effects if isinstance(each, Step)]


def said(effects):
    """Return the calls about invitations."""
    return [each for each in lone_report.said(effects) if each[0] in {"invite", "relay"}]


def test_the_histories_of_an_invitation_take_every_row_of_its_table_and_no_other():
    taken = {move for history in HISTORIES.values() for move in moves(reported(*history))}
    assert taken == {(row.source, row.trigger, row.target) for row in INVITATION.rows}


@pytest.mark.parametrize(
    ("history", "end"),
    [
        ("accepted after a while", "accepted"),
        ("refused", "refused"),
        ("no way there", "refused"),
        ("no answer, says the bus", "timed-out"),
        ("the object goes", "refused"),
    ],
)
def test_each_history_of_an_invitation_ends_as_page_03_says(history, end):
    *_, (_, _, last) = moves(reported(*HISTORIES[history]))
    assert last == end
    assert last in INVITATION.may_end


def test_every_answer_is_relayed_in_order_with_its_author():
    """SC-29."""
    effects = reported(WANTED, answer(100), answer(200, "gladly"))
    assert said(effects) == [
        ("invite", HB),
        ("relay", HB, 100, ""),
        ("relay", HB, 200, "gladly"),
    ]


def test_a_hyperty_with_an_open_invitation_is_not_invited_again_and_both_requests_are_answered():
    core = reporter()
    assert said(told(core, WANTED, WANTED)) == [("invite", HB)]
    core.do(*answer(200))
    _, requests, *_ = core.port.done[-1]
    assert len(requests) == 2


def test_an_invited_observer_needs_no_decision():
    core = reporter()
    told(core, WANTED)
    granted = lone_report.kinds(told(core, ("subscribe", HB, f"{RA}/sm")))
    assert (granted, core.may_read(HB)) == (["grant"], True)


def test_nobody_but_the_reporter_invites_and_nobody_to_what_is_deleted():
    core = reporter()
    strange = lone_report.invitation(HB)
    assert core.core.invite(strange, HC, 0.0) == Refused(Code.FORBIDDEN, "only the reporter may")
    told(core, GONE)
    (refused,) = told(core, WANTED)
    assert (refused.code, core.deadline()) == (Code.NOT_FOUND, math.inf)


def test_after_its_answer_it_may_be_asked_again():
    assert moves(reported(WANTED, answer(403), WANTED))[2] == (None, "send", "sent")


def test_an_unawaited_answer_changes_nothing():
    assert reported(answer(200)) == []
    assert moves(reported(WANTED, answer(408), answer(200)))[1:] == [
        ("sent", "silence", "timed-out")
    ]


def test_silence_ends_it_after_the_time_of_the_table_and_a_provisional_answer_begins_it_anew():
    core = reporter()
    assert core.deadline() == math.inf
    told(core, WANTED, ("wait", 1.0), ("invite", HC))
    assert core.deadline() == REPLY_TIMEOUT
    told(core, ("wait", 4.0), answer(100))
    assert core.deadline() == REPLY_TIMEOUT + 1.0
    silent = told(core, ("wait", REPLY_TIMEOUT - 4.0))
    assert said(silent) == [("relay", HC, 408, "no answer came")]
    assert core.deadline() == REPLY_TIMEOUT + 5.0


def test_all_silent_invited_hyperties_are_reported_at_once():
    core = reporter()
    told(core, WANTED, ("invite", HC))
    silent = said(told(core, ("wait", REPLY_TIMEOUT)))
    assert [observer for _, observer, *_ in silent] == [HB, HC]


def test_time_that_is_not_over_ends_nothing():
    assert said(reported(WANTED, ("time_over",))) == [("invite", HB)]


def test_a_deleted_object_ends_its_invitations_and_answers_the_requests():
    effects = reported(WANTED, ("invite", HC), GONE)
    assert said(effects)[2:] == [
        ("relay", HB, 404, "the object is deleted"),
        ("relay", HC, 404, "the object is deleted"),
    ]


def test_a_runtime_that_stops_ends_invitations_without_an_answer():
    effects = reported(WANTED, ("end_all",))
    assert (moves(effects)[-1], said(effects)) == (
        ("sent", "object-deleted", "refused"),
        [("invite", HB)],
    )
