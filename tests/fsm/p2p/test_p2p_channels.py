"""What the ends of a link decide about a data channel: offer, answer, candidates of ICE."""

import attrs
import pytest

from fsm.engine import Step
from fsm.machines.p2p_connection import State
from fsm.p2p.dialling import ChannelAnswer, DialPlan, DialPolicy, LinkPolicy, P2pUse, PeerPolicy
from fsm.p2p.link_end import LinkTerms, Loss, Opening, Role
from specs.bodies.object import Candidate, ConnectionData, ConnectionDescription, IceCandidate
from specs.limits.webrtc import MAX_ICE_CANDIDATES
from tests.support.link_calls import asks, is_asked, tell, told_end
from tests.support.p2p_objects import believed

RA, RB = "hyperty-runtime://a.ex/ra", "hyperty-runtime://b.ex/rb"
PQ, PH, PC = f"{RA}/p2prequester/1", f"{RB}/p2phandler/1", f"{RB}/p2phandler/1/conn/1"
C1, C2 = "connection://a.ex/c1", "connection://b.ex/c2"
POLICY = DialPolicy(("webrtc", "tcp"), b"this machine")
TCP = Candidate("tcp", "11.0.0.1:1", "00")
PUBLIC, PRIVATE, NEAR = (
    f"candidate:1 1 udp 1 {host} 9 typ host" for host in ("11.0.0.1", "10.0.0.1", "127.0.0.1")
)
OPENED = tell.link_opened("L1", Opening.DIALLED)
LOST = tell.link_lost("L1", Loss.BROKEN)


def offer(sdp="offer 1", status="", *candidates):
    return believed(ConnectionData(PQ, status, ConnectionDescription("offer", sdp), candidates))


def answer(sdp="answer 1", status="", *candidates):
    return believed(ConnectionData(PH, status, ConnectionDescription("answer", sdp), candidates))


def with_ice(seen, ice):
    return tell.peer_object_seen(seen.data, seen.standing, ice)


def fed(core, *inputs):
    effects = [core.tell(happened, 0.0) for happened in inputs][-1]
    return [
        each
        for each in effects
        if not (isinstance(each, Step) or is_asked(each, "pin", "announce"))
    ]


def requester(policy=POLICY):
    core = told_end(LinkTerms(RA, RB, PQ, PH), Role.REQUESTER, policy)
    fed(core, tell.start(), tell.object_created(), tell.peer_invited(C2, PH))
    return core


def handler():
    core = told_end(LinkTerms(RB, RA, PC, PQ), Role.HANDLER, POLICY, C1)
    fed(core, tell.start(), tell.row_reported(has_own_request=False))
    return core


def live_requester(*candidates):
    core = requester()
    fed(core, answer("answer 1", "", *candidates), OPENED)
    assert core.state is State.LIVE
    return core


def test_a_requester_offers_a_channel_and_a_handler_answers_what_is_offered():
    core = told_end(LinkTerms(RA, RB, PQ, PH), Role.REQUESTER, POLICY)
    assert fed(core, tell.start(), tell.object_created())[0] == asks.listen()
    assert fed(core, tell.candidates_ready((TCP,), sdp="offer 1")) == [
        asks.offer((TCP,), "offer 1")
    ]
    other = handler()
    assert fed(other, offer()) == [asks.create_object()]
    assert fed(other, tell.object_created())[0] == asks.listen("offer 1")


def test_an_answer_is_dialled_once_and_first_where_it_is_the_best_kind():
    core = requester()
    assert fed(core, answer("answer 1", "", TCP)) == [asks.dial(ChannelAnswer("answer 1"), 1)]
    assert fed(core, tell.dial_failed(1)) == [asks.dial(TCP, 2)]
    fed(core, tell.link_opened("L1", Opening.DIALLED), LOST)
    assert fed(core, tell.connect())[1:] == [asks.dial(TCP, 3)]


def test_an_answer_is_dialled_last_where_another_kind_is_better():
    core = requester(attrs.evolve(POLICY, kinds=("tcp", "webrtc")))
    assert fed(core, answer("answer 1", "", TCP)) == [asks.dial(TCP, 1)]
    assert fed(core, tell.dial_failed(1)) == [asks.dial(ChannelAnswer("answer 1"), 2)]


def test_an_end_without_data_channels_dials_no_answer():
    core = requester(DialPolicy(("tcp",)))
    assert fed(core, answer()) == [asks.request_dial("unreachable-1")]


def test_another_answer_in_the_same_negotiation_changes_nothing():
    plan = DialPlan(POLICY, RB)
    plan.learn_answer("answer 1")
    plan.learn_answer("answer 2")
    assert [plan.next(), plan.next()] == [ChannelAnswer("answer 1"), None]


def test_a_lost_channel_is_negotiated_anew_at_once_if_nothing_else_is_known():
    """t8: there is nothing to dial in place."""
    core = live_requester()
    fed(core, LOST)
    effects = fed(core, tell.connect())
    assert effects[1:] == [asks.renew(2, "negotiation-2"), asks.listen()]
    assert core.state is State.IN_PROGRESS
    assert fed(core, answer("answer 2", "negotiation-2")) == [
        asks.dial(ChannelAnswer("answer 2"), 2)
    ]


def test_a_handler_answers_the_new_offer_and_not_the_old_one():
    core = handler()
    fed(core, offer(), tell.object_created(), OPENED, LOST)
    void = tell.peer_object_seen(ConnectionData(PQ, "negotiation-2"))
    assert fed(core, void) == [asks.renew(2, "negotiation-2")]
    assert fed(core, offer("offer 2", "negotiation-2")) == [asks.listen("offer 2")]
    assert fed(core, offer("offer 2", "negotiation-2")) == []


# --- candidates of ICE --------------------------------------------------------------------


NAMED = LinkPolicy(P2pUse.NEVER, (PeerPolicy("b.ex", P2pUse.WHENEVER_POSSIBLE),))


@pytest.mark.parametrize(
    ("candidate", "policy", "is_offered"),
    [
        (PUBLIC, POLICY, True),
        (PRIVATE, POLICY, False),
        (PRIVATE, attrs.evolve(POLICY, links=NAMED), True),
        (NEAR, POLICY, True),
        (NEAR, attrs.evolve(POLICY, machine=None), False),
        ("", POLICY, True),
        ("nonsense", POLICY, False),
    ],
)
def test_an_address_is_offered_to_those_who_may_know_it(candidate, policy, is_offered):
    trickled = fed(requester(policy), tell.ice_found(candidate))
    proof = policy.ice_proof(candidate)
    assert trickled == ([asks.trickle(candidate, proof)] if is_offered else [])
    assert (proof is not None) is (candidate == NEAR and policy.machine is not None)


def test_candidates_are_offered_each_once_and_not_without_end():
    core = requester()
    many = [PUBLIC.replace(" 9 ", f" {port} ") for port in range(1, 99)]
    offered = [fed(core, tell.ice_found(one)) for one in (*many, *many)]
    assert sum(map(len, offered)) == MAX_ICE_CANDIDATES


def test_candidates_of_a_negotiation_that_is_over_are_not_offered():
    core = live_requester()
    fed(core, LOST, tell.connect())
    assert fed(core, tell.ice_found(PUBLIC, 1)) == []
    assert fed(core, tell.ice_found(PUBLIC, 2)) == [asks.trickle(PUBLIC)]


def test_a_candidate_is_tried_once_in_each_negotiation():
    ice = (IceCandidate(PUBLIC, "s"), IceCandidate(PRIVATE, "s"))
    core = requester()
    first = with_ice(answer(), ice)
    assert asks.hear_ice(PUBLIC) in fed(core, first)
    assert fed(core, first) == []
    fed(core, OPENED, LOST, tell.connect())
    again = with_ice(answer("answer 2", "negotiation-2"), ice)
    assert asks.hear_ice(PUBLIC) in fed(core, again)


def test_candidates_of_an_end_that_is_not_believed_are_not_tried():
    core = handler()
    unsigned = tell.peer_object_seen(offer().data, ice=(IceCandidate(PUBLIC, "s"),))
    assert fed(core, unsigned) == []
