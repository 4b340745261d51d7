"""A lost link that is negotiated anew: each end alone (P2P-16, t8 of page 03)."""

import pytest

from fsm.engine import Step
from fsm.machines.p2p_connection import State
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.link_end import (
    LinkTerms,
    Loss,
    Opening,
    Role,
    beginning,
    is_plea,
    negotiation_of,
    plea,
)
from specs.bodies.object import Candidate, ConnectionData
from specs.limits.protocol import IN_PLACE_TRIES, P2P_TIMEOUT, RECONNECT_TRIES, SESSION_IDLE
from specs.reply_code import Code
from tests.support.link_calls import asks, is_asked, tell, told_end
from tests.support.p2p_objects import believed

RA, RB = "hyperty-runtime://a.ex/ra", "hyperty-runtime://b.ex/rb"
PQ, PH, PC = f"{RA}/p2prequester/1", f"{RB}/p2phandler/1", f"{RB}/p2phandler/1/conn/1"
C1, C2 = "connection://a.ex/c1", "connection://b.ex/c2"
POLICY = DialPolicy(("tcp",))
OLD, NEW = Candidate("tcp", "11.0.0.1:1", "01"), Candidate("tcp", "11.0.0.1:2", "02")
DIALLED, ACCEPTED = Opening.DIALLED, Opening.ACCEPTED
LOST = tell.link_lost("L1", Loss.BROKEN)
RENEW = [asks.renew(2, "negotiation-2"), asks.listen()]
LATER = 50.0


def of_requester(status, *candidates):
    return believed(ConnectionData(PQ, status, None, candidates))


def of_handler(status, *candidates):
    return believed(ConnectionData(PH, status, None, candidates))


def fed(core, *inputs, now=0.0):
    effects = [core.tell(happened, now) for happened in inputs][-1]
    return [each for each in effects if not is_of_dialling(each)]


def is_of_dialling(effect):
    is_step = isinstance(effect, Step) and effect.machine == "link_dialling"
    return is_step or is_asked(effect, "pin")


def announced(effects):
    return [effect.state for effect in effects if is_asked(effect, "announce")]


def live_requester():
    core = told_end(LinkTerms(RA, RB, PQ, PH), Role.REQUESTER, POLICY)
    fed(core, tell.start(), tell.object_created(), tell.peer_invited(C2, PH))
    fed(core, of_handler("", OLD), tell.link_opened("L1", DIALLED))
    assert core.state is State.LIVE
    return core


def live_handler():
    core = told_end(LinkTerms(RB, RA, PC, PQ), Role.HANDLER, POLICY, C1)
    fed(core, tell.start(), tell.row_reported(has_own_request=False), of_requester("", OLD))
    fed(core, tell.object_created(), tell.link_opened("L1", ACCEPTED))
    assert core.state is State.LIVE
    return core


def lost_handler():
    core = live_handler()
    fed(core, LOST)
    return core


def fruitless(core):
    """Every order of the registry that is carried out by what is known comes to nothing."""
    for attempt in range(2, IN_PLACE_TRIES + 2):
        fed(core, tell.connect(), tell.dial_failed(attempt))
    assert core.state is State.DISCONNECTED


def renewing_requester():
    core = live_requester()
    fed(core, LOST)
    fruitless(core)
    fed(core, tell.connect(), now=LATER)
    assert core.state is State.IN_PROGRESS
    return core


def renewing_handler():
    core = lost_handler()
    fed(core, of_requester("negotiation-2"), now=LATER)
    assert core.state is State.IN_PROGRESS
    return core


RENEWING = pytest.mark.parametrize("make", [renewing_requester, renewing_handler])

# ---- when it begins


def test_a_requester_offers_anew_when_what_is_known_was_tried_in_vain():
    core = live_requester()
    fed(core, LOST)
    fruitless(core)
    answer, step, *rest = fed(core, tell.connect(), now=LATER)
    assert answer == asks.answer_command(Code.ACCEPTED, "reconnecting")
    assert (step.old, step.cause, step.new) == ("disconnected", "renegotiated", "in-progress")
    assert rest == [asks.announce(State.IN_PROGRESS, "a new offer is needed"), *RENEW]


def test_the_registry_tries_often_enough_that_it_comes_to_a_new_offer():
    assert IN_PLACE_TRIES < RECONNECT_TRIES


def test_a_dial_that_takes_for_ever_does_not_put_the_new_offer_off():
    core = live_requester()
    fed(core, LOST, *[tell.connect()] * IN_PLACE_TRIES)
    assert fed(core, tell.connect())[-2:] == RENEW
    assert fed(core, of_handler("negotiation-2", NEW)) == [asks.dial(NEW, 3)]


def test_a_link_that_came_back_has_all_its_attempts_again():
    core = live_requester()
    fed(core, LOST)
    fruitless(core)
    fed(core, tell.link_opened("L2", ACCEPTED), tell.link_lost("L2", Loss.BROKEN))
    assert asks.renew(2, "negotiation-2") not in fed(core, tell.connect())
    assert core.state is State.DISCONNECTED


def test_a_link_by_a_new_offer_has_all_its_attempts_again():
    core = renewing_requester()
    fed(core, tell.link_opened("L2", ACCEPTED, 2), tell.link_lost("L2", Loss.BROKEN))
    fed(core, *[tell.connect()] * IN_PLACE_TRIES)
    assert core.state is State.DISCONNECTED
    assert asks.renew(3, "negotiation-3") in fed(core, tell.connect())


def test_an_order_to_connect_changes_nothing_while_a_new_offer_is_out():
    core = renewing_requester()
    assert fed(core, tell.connect()) == [asks.answer_command(Code.ACCEPTED, "reconnecting")]


def test_a_handler_answers_a_new_offer_anew():
    effects = fed(lost_handler(), of_requester("negotiation-2"), now=LATER)
    assert announced(effects) == [State.IN_PROGRESS]
    assert effects[-2:] == RENEW


def test_a_handler_that_believes_in_its_link_leaves_it_first():
    """What is on it undelivered is handed back before anything else is done."""
    effects = fed(live_handler(), of_requester("negotiation-2"), now=LATER)
    assert announced(effects) == [State.DISCONNECTED, State.IN_PROGRESS]
    assert effects.index(asks.release_link("L1")) < effects.index(RENEW[0])
    assert effects[-2:] == RENEW


def test_a_handler_that_is_still_setting_up_takes_the_new_offer_without_more_time():
    core = told_end(LinkTerms(RB, RA, PC, PQ), Role.HANDLER, POLICY, C1)
    fed(core, tell.start(), tell.row_reported(has_own_request=False), of_requester("", OLD))
    fed(core, tell.object_created())
    assert fed(core, of_requester("negotiation-2", NEW), now=5.0) == RENEW
    assert core.deadline() == P2P_TIMEOUT


def test_an_offer_that_is_void_before_it_was_answered_is_refused():
    """No requester does that: it had a link before, and so an answer."""
    core = told_end(LinkTerms(RB, RA, PC, PQ), Role.HANDLER, POLICY, C1)
    fed(core, tell.start(), tell.row_reported(has_own_request=False))
    fed(core, of_requester("negotiation-2"))
    assert core.state is State.FAILED


def test_the_same_new_offer_is_answered_once():
    core = renewing_handler()
    assert fed(core, of_requester("negotiation-2", NEW)) == []


# ---- what is void then


@RENEWING
def test_a_new_negotiation_has_the_time_of_a_set_up(make):
    assert make().deadline() == LATER + P2P_TIMEOUT


@RENEWING
def test_a_negotiation_fails_when_its_time_is_over(make):
    core = make()
    fed(core, tell.time_over(), now=LATER + P2P_TIMEOUT)
    assert core.state is State.FAILED
    assert core.has_ended


@RENEWING
@pytest.mark.parametrize("opening", [DIALLED, ACCEPTED])
def test_a_link_by_the_old_secrets_is_hung_up(make, opening):
    core = make()
    assert fed(core, tell.link_opened("L2", opening)) == [asks.close_link("L2")]
    assert core.state is State.IN_PROGRESS


@RENEWING
def test_a_link_by_the_new_secrets_is_live(make):
    core = make()
    effects = fed(core, tell.link_opened("L2", ACCEPTED, 2))
    assert announced(effects) == [State.LIVE]
    assert effects[0] == asks.use_link("L2")
    assert effects[1].cause == "established"


@RENEWING
def test_only_what_was_opened_for_it_is_offered(make):
    core = make()
    assert fed(core, tell.candidates_ready((OLD,))) == []
    assert fed(core, tell.candidates_ready((NEW,), 2)) == [asks.offer((NEW,))]


def test_a_requester_dials_what_answers_its_new_offer_and_nothing_else():
    core = renewing_requester()
    assert fed(core, of_handler("", OLD)) == []
    assert fed(core, of_handler("unreachable-9", OLD)) == []
    assert fed(core, of_handler("negotiation-2")) == []
    assert fed(core, of_handler("negotiation-2", NEW)) == [asks.dial(NEW, 4)]
    assert fed(core, tell.dial_failed(4)) == [asks.request_dial("negotiation-2-unreachable-3")]


def test_a_requester_fails_when_no_candidate_of_either_end_opens_again():
    core = renewing_requester()
    fed(core, of_handler("negotiation-2", NEW), tell.dial_failed(4))
    fed(core, of_handler("negotiation-2-unreachable-1", NEW))
    assert core.state is State.FAILED


def test_a_handler_dials_what_is_newly_offered_once_it_is_asked_to():
    core = lost_handler()
    assert fed(core, of_requester("unreachable-1", OLD)) == [asks.dial(OLD, 1)]
    fed(core, of_requester("negotiation-2"))
    assert fed(core, of_requester("negotiation-2", NEW)) == []
    pleading = of_requester("negotiation-2-unreachable-2", NEW)
    assert fed(core, pleading) == [asks.dial(NEW, 2)]
    assert fed(core, tell.dial_failed(1)) == []
    assert fed(core, tell.dial_failed(2)) == [asks.request_dial("negotiation-2-unreachable-1")]


def test_a_new_offer_and_a_plea_may_be_seen_at_once():
    """Whoever missed a change sees the object as it is now."""
    effects = fed(lost_handler(), of_requester("negotiation-2-unreachable-2", NEW))
    assert effects[-3:] == [*RENEW, asks.dial(NEW, 1)]


@RENEWING
def test_a_link_that_is_live_again_is_waited_for_as_any_other(make):
    core = make()
    fed(core, tell.link_opened("L2", ACCEPTED, 2))
    fed(core, tell.link_lost("L2", Loss.BROKEN), now=LATER)
    assert core.deadline() == LATER + SESSION_IDLE


# ---- how it is written


@pytest.mark.parametrize(
    ("status", "negotiation", "pleads"),
    [
        ("", 1, False),
        ("unreachable-1", 1, True),
        ("negotiation-2", 2, False),
        ("negotiation-2-unreachable-7", 2, True),
        ("negotiation-999999999", 999_999_999, False),
        ("negotiation-1000000000", 1, False),
        ("negotiation-0", 1, False),
        ("negotiation-02", 1, False),
        ("negotiation-2x", 1, False),
        ("negotiation--unreachable-1", 1, False),
        ("negotiation-2-", 2, False),
        ("negotiation-2-connected", 2, False),
        ("connected", 1, False),
    ],
)
def test_a_status_says_which_negotiation_it_is_of_and_whether_it_pleads(
    status, negotiation, pleads
):
    assert (negotiation_of(status), is_plea(status)) == (negotiation, pleads)


@pytest.mark.parametrize("negotiation", [1, 2, 10, 999_999_999])
def test_a_written_announcement_is_read_unchanged(negotiation):
    assert negotiation_of(beginning(negotiation)) == negotiation
    assert negotiation_of(plea(negotiation, 3)) == negotiation
    assert (is_plea(beginning(negotiation)), is_plea(plea(negotiation, 3))) == (False, True)
    assert plea(negotiation, 3) != plea(negotiation, 4)
