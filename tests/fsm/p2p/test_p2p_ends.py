"""Each end of a P2P link alone: what comes too early, too late, or not for it (C-15..C-17)."""

import attrs
import pytest

from fsm.engine import Step
from fsm.machine_list import MACHINES
from fsm.machines.p2p_connection import State
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.link_end import LinkTerms, Loss, Opening, Role
from specs.bodies.object import Candidate, ConnectionData
from specs.limits.protocol import DIAL_TIMEOUT, HANDSHAKE_TIMEOUT, P2P_TIMEOUT
from specs.reply_code import Code
from tests.support.link_calls import asks, is_asked, tell, told_end
from tests.support.p2p_objects import believed

RA, RB = "hyperty-runtime://a.ex/ra", "hyperty-runtime://b.ex/rb"
PQ, PH, PC = f"{RA}/p2prequester/1", f"{RB}/p2phandler/1", f"{RB}/p2phandler/1/conn/1"
C1, C2 = "connection://a.ex/c1", "connection://b.ex/c2"
POLICY = DialPolicy(("unix", "tcp"), b"this machine")
TCP = Candidate("tcp", "11.0.0.1:1", "00")
LATER = DIAL_TIMEOUT + HANDSHAKE_TIMEOUT + 1.0
"""When nothing that was dialled before can still open."""

DIALLING = "link_dialling"
DIALLED, ACCEPTED = Opening.DIALLED, Opening.ACCEPTED
OFFER = believed(ConnectionData(PQ))


def requester():
    return told_end(LinkTerms(RA, RB, PQ, PH), Role.REQUESTER, POLICY)


def controller():
    return told_end(LinkTerms(RB, RA, PC, PQ), Role.HANDLER, POLICY, C1)


def fed(core, *inputs, now=0.0):
    """Feed a core; what the last input leads to, of the steps only those of the connection."""
    for happened in inputs[:-1]:
        core.tell(happened, now)
    return [each for each in core.tell(inputs[-1], now) if not is_beside_the_connection(each)]


def is_beside_the_connection(effect):
    is_other = isinstance(effect, Step) and effect.machine != "p2p_connection"
    return is_other or is_asked(effect, "pin")


TO_PROGRESS = {
    requester: (tell.start(), tell.object_created()),
    controller: (
        tell.start(),
        tell.row_reported(has_own_request=False),
        OFFER,
        tell.object_created(),
    ),
}
ANSWERED = {requester: (tell.peer_invited(C2, PH), believed(ConnectionData(PH))), controller: ()}
"""What lets an end in progress know whose its peer is, where it does not yet."""

BOTH = pytest.mark.parametrize("make", [requester, controller])


def live(make):
    core = make()
    fed(core, *TO_PROGRESS[make], *ANSWERED[make], tell.link_opened("L1", ACCEPTED))
    assert core.state is State.LIVE
    return core


@BOTH
def test_a_link_that_the_peer_opened_anew_replaces_the_one_we_believed_in(make):
    core = live(make)
    effects = core.tell(tell.link_opened("L2", ACCEPTED), LATER)
    reported = [effect.state for effect in effects if is_asked(effect, "announce")]
    assert reported == [State.DISCONNECTED, State.LIVE]
    links = [each for each in effects if is_asked(each, "release_link", "use_link")]
    assert links == [asks.release_link("L1"), asks.use_link("L2")]


@pytest.mark.parametrize("is_reversed", [False, True], ids=["in order", "reversed"])
@BOTH
def test_of_two_links_that_cross_both_ends_keep_the_one_the_requester_dialled(make, is_reversed):
    """I-P6: whatever order they open in; else each end closes what the other keeps."""
    core = live(make)
    core.tell(tell.link_lost("L1", Loss.BROKEN), 1.0)
    by_requester = DIALLED if make is requester else ACCEPTED
    by_handler = ACCEPTED if make is requester else DIALLED
    opened = [tell.link_opened("kept", by_requester), tell.link_opened("closed", by_handler)]

    effects = [core.tell(each, 2.0) for each in (reversed(opened) if is_reversed else opened)]

    last = asks.use_link("kept") if is_reversed else asks.close_link("closed")
    assert last in effects[-1]
    assert core.state is State.LIVE
    assert core.tell(tell.link_lost("closed", Loss.BROKEN), 3.0) == []


def dial_steps(core, *inputs):
    """The steps of the dialling of a core while it is fed."""
    effects = [effect for happened in inputs for effect in core.tell(happened, 0.0)]
    return [each for each in effects if isinstance(each, Step) and each.machine == DIALLING]


def dialled(core, *inputs):
    """The states that the dialling of a core goes through while it is fed."""
    return [each.new for each in dial_steps(core, *inputs)]


def test_these_are_all_paths_of_a_dialling_end():
    """No row of the table is without use, and no step without a row."""
    over, lost = tell.disconnect("closing"), tell.link_lost("L1", Loss.BROKEN)
    opened, failed, connect = (
        tell.link_opened("L1", ACCEPTED),
        tell.dial_failed(1),
        tell.connect(),
    )
    asked = (*TO_PROGRESS[requester], *ANSWERED[requester])
    offered = believed(ConnectionData(PH, "", None, (TCP,)))
    late = attrs.evolve(TCP, address="11.0.0.1:2")
    after = believed(ConnectionData(PH, "", None, (TCP, late)))
    pleas = [
        believed(ConnectionData(PQ, f"unreachable-{number}", None, (TCP,))) for number in (1, 2)
    ]
    tails = ((), (offered,), (offered, failed), (offered, failed, after))
    taken = [
        step
        for tail in tails
        for last in ((over,), (opened, over), (opened, lost, connect, connect))
        for step in dial_steps(requester(), *asked, *tail, *last)
    ]
    taken += dial_steps(requester(), *asked, offered, failed, after, tell.dial_failed(2))
    taken += dial_steps(
        requester(), *asked, offered, failed, opened, lost, connect, tell.dial_failed(2), connect
    )
    taken += dial_steps(requester(), over)
    taken += dial_steps(controller(), *TO_PROGRESS[controller], *pleas, failed)

    rows = {(row.source, row.trigger, row.target) for row in MACHINES[DIALLING].rows}
    assert {(step.old, step.cause, step.new) for step in taken} == rows


def test_a_requester_dials_from_the_beginning_and_late_candidates_after_its_plea():
    offered = believed(ConnectionData(PH, "", None, (TCP,)))
    late = attrs.evolve(TCP, address="11.0.0.1:2")
    after = believed(ConnectionData(PH, "", None, (TCP, late)))
    tried = (tell.peer_invited(C2, PH), offered, tell.dial_failed(1), after, tell.dial_failed(2))
    ended = tell.disconnect("closing")
    steps = dialled(requester(), *TO_PROGRESS[requester], *tried, ended)
    assert steps == ["ready", "dialling", "ready", "pleaded", "dialling-late", "pleaded", "ended"]


def test_a_handler_leaves_reconnecting_to_the_requester():
    (answer,) = live(controller).tell(tell.connect(), 1.0)
    assert answer.code is Code.FORBIDDEN


def test_a_handler_answers_an_invitation_once():
    core = controller()
    fed(core, tell.start(), tell.row_reported(has_own_request=False))
    assert core.tell(tell.row_reported(has_own_request=True), 0.0) == []
    (answer,) = core.tell(tell.peer_invited(C1, PQ), 0.0)
    assert answer.code is Code.CONFLICT


# ---- a simultaneous open (P2P-27, I-P20)

SEEN = (tell.peer_invited(C2, PH), believed(ConnectionData(PC, candidates=(TCP,))))


def yielding():
    """A requester that was dialling when it was ordered to yield."""
    core = requester()
    fed(core, *TO_PROGRESS[requester], *SEEN, tell.yield_to_peer())
    assert core.state is State.YIELDING
    return core


def states_of(effects):
    return [effect.state for effect in effects if is_asked(effect, "announce")]


def test_a_requester_that_yields_goes_on_where_it_was():
    core = yielding()
    effects = fed(core, tell.resume())
    assert states_of(effects) == [State.IN_PROGRESS]
    assert effects[-1] == asks.dial(TCP, 2)
    assert core.deadline() == P2P_TIMEOUT
    fed(core, tell.link_opened("L1", DIALLED))
    assert core.state is State.LIVE


@pytest.mark.parametrize("number", [2, 1])
def test_a_stale_order_to_yield_changes_nothing(number):
    core = live(requester)
    if number == 2:
        core = requester()
        fed(core, *TO_PROGRESS[requester])
    (answer,) = fed(core, tell.yield_to_peer(number))
    assert answer.code == Code.CONFLICT
    (answer,) = fed(core, tell.resume(number))
    assert answer.code == Code.CONFLICT


def test_a_second_order_to_yield_is_followed_already():
    assert fed(yielding(), tell.yield_to_peer()) == [asks.answer_command(Code.OK)]


def test_a_requester_that_has_ended_cannot_go_on():
    core = yielding()
    fed(core, tell.time_over(), now=P2P_TIMEOUT)
    (answer,) = fed(core, tell.resume())
    assert answer.code == Code.GONE


def test_only_requesters_yield():
    core = controller()
    fed(core, *TO_PROGRESS[controller])
    for order in (tell.yield_to_peer(), tell.resume()):
        (answer,) = fed(core, order)
        assert answer.code == Code.FORBIDDEN
