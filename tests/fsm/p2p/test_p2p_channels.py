"""What the ends of a link decide about a data channel: offer, answer, candidates of ICE."""

from fsm.engine import Step
from fsm.machines.p2p_connection import State
from fsm.p2p.dialling import ChannelAnswer, DialPolicy
from fsm.p2p.link_end import LinkTerms, Loss, Opening, Role
from specs.bodies.object import ConnectionData, ConnectionDescription
from specs.limits.webrtc import MAX_ICE_CANDIDATES
from tests.support.link_calls import asks, is_asked, tell, told_end
from tests.support.p2p_objects import believed

RA, RB = "hyperty-runtime://a.ex/ra", "hyperty-runtime://b.ex/rb"
PQ, PH, PC = f"{RA}/p2prequester/1", f"{RB}/p2phandler/1", f"{RB}/p2phandler/1/conn/1"
C1, C2 = "connection://a.ex/c1", "connection://b.ex/c2"
POLICY = DialPolicy(("webrtc", "tcp"), b"this machine")
PUBLIC, PRIVATE, NEAR = (
    f"candidate:1 1 udp 1 {host} 9 typ host" for host in ("11.0.0.1", "10.0.0.1", "127.0.0.1")
)
OPENED = tell.link_opened("L1", Opening.DIALLED)
LOST = tell.link_lost("L1", Loss.BROKEN)


def offer(sdp="offer 1", status="", *candidates):
    return believed(ConnectionData(PQ, status, ConnectionDescription("offer", sdp), candidates))


def answer(sdp="answer 1", status="", *candidates):
    return believed(ConnectionData(PH, status, ConnectionDescription("answer", sdp), candidates))


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


def test_candidates_are_offered_each_once_and_not_without_end():
    core = requester()
    many = [PUBLIC.replace(" 9 ", f" {port} ") for port in range(1, 99)]
    offered = [fed(core, tell.ice_found(one)) for one in (*many, *many)]
    assert sum(map(len, offered)) == MAX_ICE_CANDIDATES
