"""Each end of a P2P link alone: what comes too early, too late, or not for it (C-15..C-17)."""

import attrs
import pytest

from fsm.engine import Step
from fsm.machine_list import MACHINES
from fsm.machines.p2p_connection import State
from fsm.p2p.dialling import DialPlan, DialPolicy
from fsm.p2p.link_end import LinkTerms, Loss, Opening, Role
from specs.bodies.object import Candidate, ConnectionData
from specs.limits.protocol import DIAL_TIMEOUT, HANDSHAKE_TIMEOUT, P2P_TIMEOUT, SESSION_IDLE
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
def test_a_refused_object_fails_from_created(make):
    core = make()
    fed(core, *TO_PROGRESS[make][:-1], tell.object_refused("no"))
    assert core.state is State.FAILED
    assert core.has_ended


@BOTH
def test_a_refused_invitation_fails_from_in_progress(make):
    core = make()
    effects = fed(core, *TO_PROGRESS[make], tell.invitation_answered(409, "simultaneous open"))
    assert effects[1:] == [
        asks.announce(State.FAILED, "simultaneous open"),
        asks.withdraw(),
        asks.end(),
    ]


@BOTH
def test_a_refused_observation_fails_also_without_a_reason(make):
    core = make()
    fed(core, *TO_PROGRESS[make], tell.observe_refused(""))
    assert core.state is State.FAILED


@BOTH
@pytest.mark.parametrize("late", [tell.invitation_answered(408), tell.observe_refused("late")])
def test_a_refusal_that_comes_late_harms_no_live_link(make, late):
    core = live(make)
    assert core.tell(late, 1.0) == []
    assert core.state is State.LIVE


@BOTH
def test_the_time_for_a_set_up_is_bounded(make):
    core = make()
    fed(core, *TO_PROGRESS[make])
    assert core.deadline() == P2P_TIMEOUT
    assert core.tell(tell.time_over(), P2P_TIMEOUT / 2) == []
    core.tell(tell.time_over(), P2P_TIMEOUT)
    assert core.state is State.FAILED


@BOTH
def test_a_lost_link_is_not_waited_for_without_end(make):
    core = live(make)
    core.tell(tell.link_lost("L1", Loss.BROKEN), 1.0)
    assert core.deadline() == 1.0 + SESSION_IDLE
    assert fed(core, tell.time_over(), now=core.deadline()) == [asks.withdraw(), asks.end()]
    assert core.state is State.DISCONNECTED


@BOTH
def test_a_link_that_the_peer_opened_anew_replaces_the_one_we_believed_in(make):
    core = live(make)
    effects = core.tell(tell.link_opened("L2", ACCEPTED), LATER)
    reported = [effect.state for effect in effects if is_asked(effect, "announce")]
    assert reported == [State.DISCONNECTED, State.LIVE]
    links = [each for each in effects if is_asked(each, "release_link", "use_link")]
    assert links == [asks.release_link("L1"), asks.use_link("L2")]


@BOTH
def test_a_second_link_that_we_dialled_is_closed(make):
    core = live(make)
    assert core.tell(tell.link_opened("L2", DIALLED), LATER) == [asks.close_link("L2")]


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


@BOTH
def test_a_goodbye_of_the_peer_ends_the_link(make):
    core = live(make)
    effects = fed(core, tell.link_lost("L1", Loss.ORDERLY), now=1.0)
    assert effects[-2:] == [asks.withdraw(), asks.end()]
    assert core.state is State.DISCONNECTED


@BOTH
def test_closing_a_live_link_says_goodbye_and_answers(make):
    effects = fed(live(make), tell.disconnect("asked"), now=1.0)
    assert asks.close_link("L1") in effects
    assert effects[-1] == asks.answer_command(Code.OK)


@BOTH
def test_the_loss_of_another_link_is_no_matter(make):
    core = live(make)
    assert core.tell(tell.link_lost("L0", Loss.BROKEN), 1.0) == []
    assert core.state is State.LIVE


@BOTH
@pytest.mark.parametrize(
    ("late", "effects"),
    [
        (tell.connect(), [asks.answer_command(Code.GONE, "the link has ended")]),
        (tell.disconnect(""), [asks.answer_command(Code.OK)]),
        (tell.object_created(), [asks.withdraw()]),
        (tell.link_opened("L9", ACCEPTED), [asks.close_link("L9")]),
        (tell.peer_invited(C2, PH), [asks.answer_invitation(C2, Code.GONE, "the link has ended")]),
        (tell.time_over(), []),
        (OFFER, []),
    ],
)
def test_after_the_end_nothing_is_left_lying_about(make, late, effects):
    core = make()
    fed(core, *TO_PROGRESS[make], tell.disconnect("asked"))
    assert core.tell(late, 1.0) == effects


def test_a_requester_reconnects_only_what_is_lost():
    core = live(requester)
    assert core.tell(tell.connect(), 1.0) == [asks.answer_command(Code.ACCEPTED, "reconnecting")]


def test_a_requester_accepts_one_answer_object_of_the_handler_it_invited():
    core = requester()
    fed(core, *TO_PROGRESS[requester])
    refused = core.tell(tell.peer_invited(C2, f"{RB}/p2phandler/9"), 0.0)
    assert [effect.code for effect in refused] == [Code.FORBIDDEN]
    assert core.tell(tell.peer_invited(C2, PH), 0.0)[-1] == asks.observe(C2)
    again = core.tell(tell.peer_invited("connection://b.ex/c9", PH), 0.0)
    assert [effect.code for effect in again] == [Code.CONFLICT]


def test_a_requester_pleads_once_a_round_and_fails_when_the_handler_cannot_dial_either():
    core = requester()
    offered = believed(ConnectionData(PH, "", None, (TCP,)))
    fed(core, *TO_PROGRESS[requester], tell.peer_invited(C2, PH))
    assert fed(core, offered) == [asks.dial(TCP, 1)]
    assert fed(core, tell.dial_failed(1)) == [asks.request_dial("unreachable-1")]
    assert fed(core, tell.dial_failed(1)) == []
    core.tell(believed(ConnectionData(PH, "unreachable-1", None, (TCP,))), 0.0)
    assert core.state is State.FAILED


def test_a_handler_dials_only_when_asked_to_and_says_when_nothing_opens():
    core = controller()
    held = ConnectionData(PQ, "", None, (TCP,))
    fed(core, *TO_PROGRESS[controller])
    assert fed(core, believed(held)) == []
    pleading = believed(ConnectionData(PQ, "unreachable-1", None, (TCP,)))
    assert fed(core, pleading) == [asks.dial(TCP, 1)]
    assert fed(core, pleading) == []
    assert fed(core, tell.dial_failed(1)) == [asks.request_dial("unreachable-1")]


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


def test_a_handler_dials_in_the_round_of_a_plea_and_is_idle_again():
    pleading = believed(ConnectionData(PQ, "unreachable-1", None, (TCP,)))
    steps = dialled(controller(), *TO_PROGRESS[controller], pleading, tell.dial_failed(1))
    assert steps == ["idle", "ready", "dialling", "ready", "idle"]


@BOTH
def test_an_end_dials_nothing_while_its_link_is_live(make):
    opened = (*ANSWERED[make], tell.link_opened("L1", ACCEPTED))
    steps = dialled(make(), *TO_PROGRESS[make], *opened)
    assert steps[-1] == "idle"


def test_a_handler_leaves_reconnecting_to_the_requester():
    (answer,) = live(controller).tell(tell.connect(), 1.0)
    assert answer.code is Code.FORBIDDEN


def test_a_handler_answers_an_invitation_once():
    core = controller()
    fed(core, tell.start(), tell.row_reported(has_own_request=False))
    assert core.tell(tell.row_reported(has_own_request=True), 0.0) == []
    (answer,) = core.tell(tell.peer_invited(C1, PQ), 0.0)
    assert answer.code is Code.CONFLICT


def test_a_handler_that_gives_up_early_refuses_the_invitation():
    core = controller()
    effects = fed(core, tell.start(), tell.disconnect("closing"))
    assert effects[0] == asks.answer_invitation(C1, Code.CONFLICT, "closing")


def test_candidates_are_dialled_by_policy_and_unix_only_on_the_same_machine():
    plan = DialPlan(POLICY, RB)
    here, there = (
        attrs.evolve(POLICY, machine=machine).sign_candidate(Candidate("unix", "/x", machine.hex()))
        for machine in (b"this machine", b"another")
    )
    plan.learn([Candidate("websocket", "x", "00"), TCP, attrs.evolve(there, address="/y"), there])
    assert [plan.next(), plan.next()] == [TCP, None]
    plan.forget()
    plan.learn([TCP, here])
    assert [plan.next(), plan.next(), plan.next()] == [here, TCP, None]
    plan.restart()
    assert plan.next() == here


def test_an_unknown_machine_is_never_the_same():
    nowhere = DialPolicy(("unix",), None)
    candidate = Candidate("unix", "/x", "00", None)
    assert not nowhere.allows(candidate, RB)
    assert nowhere.sign_candidate(candidate) == candidate
    assert not nowhere.offers("unix", "/x", RB)


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


def test_a_requester_that_yields_dials_nothing_and_hangs_up_what_opens():
    core = yielding()
    assert fed(core, tell.dial_failed(1)) == []
    assert fed(core, SEEN[1]) == []
    assert fed(core, tell.link_opened("L1", DIALLED)) == [asks.close_link("L1")]
    assert core.deadline() == P2P_TIMEOUT


def test_a_requester_that_yields_goes_on_where_it_was():
    core = yielding()
    effects = fed(core, tell.resume())
    assert states_of(effects) == [State.IN_PROGRESS]
    assert effects[-1] == asks.dial(TCP, 2)
    assert core.deadline() == P2P_TIMEOUT
    fed(core, tell.link_opened("L1", DIALLED))
    assert core.state is State.LIVE


YIELDED_ENDS = [
    tell.disconnect("asked"),
    tell.invitation_answered(409, "409"),
    tell.peer_object_deleted(),
]


@pytest.mark.parametrize("end", YIELDED_ENDS, ids=lambda end: end.name)
def test_a_requester_that_yields_fails_when_the_other_link_has_won(end):
    core = yielding()
    effects = fed(core, end)
    assert core.state is State.FAILED
    if end in YIELDED_ENDS[:2]:
        assert next(one.why for one in effects if is_asked(one, "announce")).startswith("409")


def test_a_requester_that_yields_does_not_wait_for_ever():
    core = yielding()
    fed(core, tell.time_over(), now=P2P_TIMEOUT)
    assert core.state is State.FAILED


def test_a_requester_without_an_object_has_nothing_to_wait_with():
    core = requester()
    effects = fed(core, tell.start(), tell.yield_to_peer())
    assert states_of(effects) == [State.FAILED]
    assert asks.answer_command(Code.OK) in effects


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


def test_a_stale_order_to_go_on_allows_no_second_plea():
    core = requester()
    offered = believed(ConnectionData(PH, "", None, (TCP,)))
    fed(core, *TO_PROGRESS[requester], tell.peer_invited(C2, PH), offered, tell.dial_failed(1))
    (answer,) = core.tell(tell.resume(), 0.0)
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
