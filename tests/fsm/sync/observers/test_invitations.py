"""The invitations a sync manager has sent (SYN-04, SYN-05, M-33, M-34)."""

import math

import pytest

from fsm.engine import Step
from fsm.machines.sync.invitation import INVITATION
from fsm.sync.invitations import InvitationsCore
from specs.limits.protocol import REPLY_TIMEOUT

URL, HB, HC = "comm://a.ex/o1", "hyperty://b.ex/hb", "hyperty://c.ex/hc"
WANTED = ("invite", URL, HB)
GONE = ("withdraw", URL)


def answer(code, why=""):
    return ("take_answer", URL, HB, code, why)


class Port:
    """Notes what the invitations ask of their host."""

    def __init__(self):
        self.done = []

    def step(self, step):
        self.done.append(step)

    def send_invitation(self, url, observer):
        self.done.append(("send", url, observer))

    def relay(self, url, observer, code, why):
        self.done.append(("relay", url, observer, code, why))


def told(core, port, name, *arguments, now=0.0):
    port.done = done = []
    time = () if name == "withdraw" else (now,)
    getattr(core, name)(*arguments, *time)
    return done


HISTORIES = {
    "accepted after a while": (WANTED, answer(100), answer(183), answer(200)),
    "refused": (WANTED, answer(403)),
    "no way there": (WANTED, answer(503)),
    "no answer, says the bus": (WANTED, answer(408)),
    "the object goes": (WANTED, GONE),
}


def reported(*history):
    port = Port()
    core = InvitationsCore(port)
    return [one for what in history for one in told(core, port, *what)]


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
        ("send", URL, HB),
        ("relay", URL, HB, 100, ""),
        ("relay", URL, HB, 200, "gladly"),
    ]


def test_a_hyperty_with_an_open_invitation_is_not_invited_again():
    assert said(reported(WANTED, WANTED)) == [("send", URL, HB)]


def test_after_its_answer_it_may_be_asked_again():
    assert moves(reported(WANTED, answer(403), WANTED))[2] == (None, "send", "sent")


def test_an_unawaited_answer_changes_nothing():
    assert reported(answer(200)) == []
    assert moves(reported(WANTED, answer(408), answer(200)))[1:] == [
        ("sent", "silence", "timed-out")
    ]


def test_silence_ends_it_after_the_time_of_the_table_and_a_provisional_answer_begins_it_anew():
    port = Port()
    core = InvitationsCore(port)
    assert core.deadline() == math.inf
    core.invite(URL, HB, 0.0)
    core.invite(URL, HC, 1.0)
    assert core.deadline() == REPLY_TIMEOUT
    core.take_answer(URL, HB, 100, "", 5.0)
    assert core.deadline() == REPLY_TIMEOUT + 1.0
    silent = told(core, port, "time_over", now=REPLY_TIMEOUT + 1.0)
    assert said(silent) == [("relay", URL, HC, 408, "no answer came")]
    assert core.deadline() == REPLY_TIMEOUT + 5.0


def test_all_silent_invited_hyperties_are_reported_at_once():
    port = Port()
    core = InvitationsCore(port)
    for observer in (HB, HC):
        core.invite(URL, observer, 0.0)
    silent = said(told(core, port, "time_over", now=REPLY_TIMEOUT))
    assert [observer for _, _, observer, *_ in silent] == [HB, HC]


def test_time_that_is_not_over_ends_nothing():
    assert said(reported(WANTED, ("time_over",))) == [("send", URL, HB)]


def test_a_deleted_object_ends_its_own_invitations_only():
    effects = reported(WANTED, ("invite", "comm://a.ex/o2", HB), GONE)
    assert said(effects)[2:] == [("relay", URL, HB, 404, "the object is deleted")]
