"""The invitations a sync manager has sent (SYN-04, SYN-05, M-33, M-34)."""

import math

import pytest

from fsm.engine import Step
from fsm.machines.sync.invitation import INVITATION
from fsm.sync.invitations import (
    AnswerRelayed,
    InvitationsCore,
    InviteAsked,
    InviteeAnswered,
    ObjectGone,
    SendInvitation,
    SilenceEnded,
)
from specs.limits.protocol import REPLY_TIMEOUT

URL, HB, HC = "comm://a.ex/o1", "hyperty://b.ex/hb", "hyperty://c.ex/hc"
WANTED = InviteAsked(URL, HB)


def answer(code, why=""):
    return InviteeAnswered(URL, HB, code, why)


HISTORIES = {
    "accepted after a while": (WANTED, answer(100), answer(183), answer(200)),
    "refused": (WANTED, answer(403)),
    "no way there": (WANTED, answer(503)),
    "no answer, says the bus": (WANTED, answer(408)),
    "the object goes": (WANTED, ObjectGone(URL)),
}


def reported(*history, now=0.0):
    core = InvitationsCore()
    return [effect for happened in history for effect in core.feed(happened, now)]


def moves(effects):
    return [(each.old, each.cause, each.new) for each in effects if isinstance(each, Step)]


def said(effects):
    return [effect for effect in effects if not isinstance(effect, Step)]


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
        SendInvitation(URL, HB),
        AnswerRelayed(URL, HB, 100),
        AnswerRelayed(URL, HB, 200, "gladly"),
    ]


def test_a_hyperty_with_an_open_invitation_is_not_invited_again():
    assert said(reported(WANTED, WANTED)) == [SendInvitation(URL, HB)]


def test_after_its_answer_it_may_be_asked_again():
    assert moves(reported(WANTED, answer(403), WANTED))[2] == (None, "send", "sent")


def test_an_unawaited_answer_changes_nothing():
    assert reported(answer(200)) == []
    assert moves(reported(WANTED, answer(408), answer(200)))[1:] == [
        ("sent", "silence", "timed-out")
    ]


def test_silence_ends_it_after_the_time_of_the_table_and_a_provisional_answer_begins_it_anew():
    core = InvitationsCore()
    assert core.deadline() == math.inf
    core.feed(WANTED, 0.0)
    core.feed(InviteAsked(URL, HC), 1.0)
    assert core.deadline() == REPLY_TIMEOUT
    core.feed(answer(100), 5.0)
    assert core.deadline() == REPLY_TIMEOUT + 1.0
    silent = core.feed(SilenceEnded(), REPLY_TIMEOUT + 1.0)
    assert said(silent) == [AnswerRelayed(URL, HC, 408, "no answer came")]
    assert core.deadline() == REPLY_TIMEOUT + 5.0


def test_all_silent_invited_hyperties_are_reported_at_once():
    core = InvitationsCore()
    for observer in (HB, HC):
        core.feed(InviteAsked(URL, observer), 0.0)
    silent = said(core.feed(SilenceEnded(), REPLY_TIMEOUT))
    assert [each.observer for each in silent] == [HB, HC]


def test_time_that_is_not_over_ends_nothing():
    assert said(reported(WANTED, SilenceEnded())) == [SendInvitation(URL, HB)]


def test_a_deleted_object_ends_its_own_invitations_only():
    effects = reported(WANTED, InviteAsked("comm://a.ex/o2", HB), ObjectGone(URL))
    assert said(effects)[2:] == [AnswerRelayed(URL, HB, 404, "the object is deleted")]
