"""A lost link that is negotiated anew: each end alone (P2P-16, t8 of page 03)."""

from fsm.engine import Step
from fsm.machines.p2p_connection import State
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.link_end import LinkTerms, Loss, Opening, Role
from specs.bodies.object import Candidate, ConnectionData
from specs.limits.protocol import IN_PLACE_TRIES, RECONNECT_TRIES
from tests.support.link_calls import asks, is_asked, tell, told_end
from tests.support.p2p_objects import believed

RA, RB = "hyperty-runtime://a.ex/ra", "hyperty-runtime://b.ex/rb"
PQ, PH, PC = f"{RA}/p2prequester/1", f"{RB}/p2phandler/1", f"{RB}/p2phandler/1/conn/1"
C1, C2 = "connection://a.ex/c1", "connection://b.ex/c2"
POLICY = DialPolicy(("tcp",))
OLD, NEW = Candidate("tcp", "11.0.0.1:1", "01"), Candidate("tcp", "11.0.0.1:2", "02")
DIALLED, ACCEPTED = Opening.DIALLED, Opening.ACCEPTED
LOST = tell.link_lost("L1", Loss.BROKEN)
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


# ---- when it begins


def test_the_registry_tries_often_enough_that_it_comes_to_a_new_offer():
    assert IN_PLACE_TRIES < RECONNECT_TRIES


def test_a_link_by_a_new_offer_has_all_its_attempts_again():
    core = renewing_requester()
    fed(core, tell.link_opened("L2", ACCEPTED, 2), tell.link_lost("L2", Loss.BROKEN))
    fed(core, *[tell.connect()] * IN_PLACE_TRIES)
    assert core.state is State.DISCONNECTED
    assert asks.renew(3, "negotiation-3") in fed(core, tell.connect())


# ---- what is void then


def test_a_handler_dials_what_is_newly_offered_once_it_is_asked_to():
    core = lost_handler()
    assert fed(core, of_requester("unreachable-1", OLD)) == [asks.dial(OLD, 1)]
    fed(core, of_requester("negotiation-2"))
    assert fed(core, of_requester("negotiation-2", NEW)) == []
    pleading = of_requester("negotiation-2-unreachable-2", NEW)
    assert fed(core, pleading) == [asks.dial(NEW, 2)]
    assert fed(core, tell.dial_failed(1)) == []
    assert fed(core, tell.dial_failed(2)) == [asks.request_dial("negotiation-2-unreachable-1")]
