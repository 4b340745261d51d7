"""Requester and handler cores and both registries' tables together: every run ends well.

R9, I-P4, I-P6..I-P8, I-P20.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm.machines.p2p_connection import State
from specs.limits.protocol import P2P_TIMEOUT, RETRY_COOL_DOWN
from tests.support.chance import examples
from tests.support.p2p_world import RA, RB, World

MOVES = [
    *("start-a", "start-b", "lose-a", "lose-b", "dial", "dial", "refuse-dial"),
    *("deliver-a", "deliver-b") * 3,
    *("cut", "reconnect", "close-a", "close-b", "wait", "crash-a", "crash-b"),
    *("unseen-a", "unseen-b", "move-a", "move-b", "reconnect", "wait"),
]


def move(world: World, name: str) -> None:
    verb, _, where = name.partition("-")
    runtime = RA if where == "a" else RB
    match verb:
        case "start" | "deliver" | "lose" | "close" | "crash" | "move":
            getattr(world, verb)(runtime)
        case "unseen":
            world.cut_unseen(runtime)
        case "dial" | "refuse":
            world.dial(succeeds=verb == "dial")
        case "cut" | "reconnect":
            getattr(world, verb)()
        case _:
            world.pass_time(world.now + 4.0)


@settings(max_examples=examples(250))
@given(
    first=st.sampled_from([None, RA, RB]),
    moves=st.lists(st.sampled_from(MOVES), min_size=5, max_size=80),
)
def test_every_run_ends_live_at_both_ends_or_at_none(first, moves):
    world = World()
    if first is not None:
        world.start(first)
        world.settle()
    for name in moves:
        move(world, name)
        assert len(world.live_links()) <= 1
    world.settle()
    assert len(world.live_links()) <= 1
    assert sorted(world.live_ends()) == sorted(
        end for link in world.live_links() for end in world.links[link]
    )
    assert set(world.states().values()) <= {State.LIVE, State.FAILED, State.DISCONNECTED}
    assert_all_agree(world)


def assert_all_agree(world: World) -> None:
    """Entries and controllers say the same as the ends of the links."""
    live = dict(world.live_ends())
    for name, table in world.tables.items():
        rows = [row.link for row in table.entries()]
        assert rows == [link for own, link in live.items() if own == name]
        assert all(row.is_live for row in table.entries())
    machines = {
        "p2p_entry": "bound removed",
        "handler_controller": "open closed",
        "link_dialling": "idle ended",
    }
    last = {(step.machine, step.key): step.new for step in world.others}
    assert all(state in machines[machine].split() for (machine, _), state in last.items())
    assert list(last.values()).count("bound") == len(live)
    open_ = [key for (_, key), state in last.items() if state == "open"]
    assert open_ == [link for link in live.values() if "/conn/" in link]


@settings(max_examples=examples(150))
@given(moves=st.lists(st.sampled_from(["deliver-a", "deliver-b", "dial"]), max_size=60))
def test_without_losses_both_asking_at_once_ends_live_exactly_once(moves):
    world = World()
    world.start(RA)
    world.start(RB)
    for name in moves:
        move(world, name)
    world.settle()
    assert len(world.live_links()) == 1
    assert_all_agree(world)


@settings(max_examples=examples(150))
@given(
    first=st.lists(st.sampled_from(["deliver-a", "deliver-b", "dial"]), max_size=20),
    moves=st.lists(st.sampled_from(["deliver-a", "deliver-b", "dial"]), max_size=60),
)
def test_of_two_requests_at_once_the_smaller_requester_survives(first, moves):
    world = World()
    world.start(RA)
    world.start(RB)
    for name in [*first, *moves]:
        move(world, name)
    world.settle()
    states = world.states()
    assert states[f"{RA}|{RB}|requester|{RA}/p2prequester/1"] == State.LIVE
    assert states[f"{RB}|{RA}|requester|{RB}/p2prequester/1"] == State.FAILED


@pytest.mark.parametrize(("first", "second"), [(RA, RB), (RB, RA)])
def test_a_simultaneous_open_is_decided_alike_in_both_orders(first, second):
    world = World()
    world.start(first)
    world.start(second)
    world.settle()
    reported = [(step.key, step.cause, step.new) for step in world.others]
    assert (f"{RA}|{RB}", "invited", "placeholder") in reported
    assert (f"{RB}|{RA}", "invited", "yielding") in reported
    assert (f"{RB}|{RA}", "live", "bound") in reported
    assert (f"{RA}/p2phandler/1/conn/1", "row-reported", "closed") in reported
    (link,) = world.live_links()
    assert (RA, f"{RA}/p2prequester/1") in world.links[link]


def test_a_peer_that_lost_its_requester_gets_a_new_link():
    world = World()
    world.start(RA)
    world.settle()
    world.crash(RA)
    world.now += RETRY_COOL_DOWN
    world.start(RA)
    world.settle()
    (link,) = world.live_links()
    assert set(world.links[link]) == {
        (RA, f"{RA}/p2prequester/2"),
        (RB, f"{RB}/p2phandler/1/conn/2"),
    }
    assert_all_agree(world)


@pytest.mark.parametrize("lost", range(12))
def test_each_single_lost_signal_leaves_nothing_half_open(lost):
    world = World()
    world.start(RA)
    for count in range(40):
        towards = next((name for name in (RB, RA) if world.signals[name]), None)
        if towards is not None:
            (world.lose if count == lost else world.deliver)(towards)
        world.dial(succeeds=True)
    world.settle()
    assert len(world.live_ends()) in {0, 2}


def test_a_cut_link_comes_back_in_place():
    world = World()
    world.start(RA)
    world.settle()
    (link,) = world.live_links()
    world.cut()
    assert link not in world.links
    assert world.live_ends() == []
    world.settle()
    assert len(world.live_links()) == 1
    assert [step.new for step in world.steps if "|requester|" in step.key] == [
        State.CREATED,
        State.IN_PROGRESS,
        State.LIVE,
        State.DISCONNECTED,
        State.LIVE,
    ]


def test_when_no_candidate_of_the_handler_opens_the_handler_dials():
    world = World()
    world.start(RA)
    while not world.dials:
        move(world, "deliver-a")
        move(world, "deliver-b")
    world.dial(succeeds=False)
    world.settle()
    assert len(world.live_links()) == 1


def test_without_a_dialable_peer_both_ends_fail_before_the_time_is_over():
    world = World()
    world.start(RA)
    for _ in range(30):
        move(world, "deliver-a")
        move(world, "deliver-b")
        world.dial(succeeds=False)
    assert set(world.states().values()) == {State.FAILED}
    assert world.now == 0.0


# ---- a link that comes back only by a new offer and answer (t8)


IN_PLACE = [State.CREATED, State.IN_PROGRESS, State.LIVE, State.DISCONNECTED]
ANEW = [State.IN_PROGRESS, State.LIVE]


def linked() -> World:
    world = World()
    world.start(RA)
    world.settle()
    return world


def steps_of(world: World, role: str) -> list[str]:
    return [step.new for step in world.steps if f"|{role}|" in step.key]


def entries_of(world: World) -> list[str]:
    return [step.cause for step in world.others if step.machine == "p2p_entry"]


def test_a_link_whose_listeners_have_all_changed_returns_by_a_new_offer():
    world = linked()
    world.move(RA)
    world.move(RB)
    world.cut()
    world.settle()
    assert steps_of(world, "requester") == steps_of(world, "handler") == [*IN_PLACE, *ANEW]
    assert [cause for cause in entries_of(world) if cause == "restored"] == ["restored"] * 2
    assert len(world.live_links()) == 1
    assert_all_agree(world)


@pytest.mark.parametrize("moved", [RA, RB])
def test_while_one_end_can_be_dialled_no_new_offer_is_needed(moved):
    world = linked()
    world.move(moved)
    world.cut()
    world.settle()
    assert steps_of(world, "requester") == [*IN_PLACE, State.LIVE]


def test_a_link_may_be_offered_anew_more_than_once():
    world = linked()
    for _ in range(3):
        world.move(RA)
        world.move(RB)
        world.cut()
        world.settle()
    assert steps_of(world, "requester") == [*IN_PLACE, *ANEW, *[State.DISCONNECTED, *ANEW] * 2]
    assert_all_agree(world)


def test_a_handler_that_has_not_noticed_the_loss_leaves_live_before_it_answers_anew():
    world = linked()
    world.move(RA)
    world.move(RB)
    world.cut_unseen(RB)
    world.settle()
    assert steps_of(world, "handler") == [*IN_PLACE, *ANEW]
    (lost,) = [step for step in world.steps if "|handler|" in step.key and step.cause == "closed"]
    assert lost.why == "the requester offers anew"
    assert_all_agree(world)


def test_a_new_offer_of_which_nothing_comes_fails_at_both_ends():
    world = linked()
    world.cut()
    while State.FAILED not in world.states().values():
        world.deliver(RA)
        world.deliver(RB)
        if world.dials:
            world.dial(succeeds=False)
        elif not any(world.signals.values()):
            world.pass_time(world.now + 1.0)
    world.settle()
    assert steps_of(world, "requester") == [*IN_PLACE, State.IN_PROGRESS, State.FAILED]
    assert steps_of(world, "handler") == [*IN_PLACE, State.IN_PROGRESS, State.FAILED]
    assert entries_of(world)[-2:] == ["ended", "ended"]


def test_an_unheard_new_offer_fails_when_the_time_is_over():
    world = linked()
    world.cut()
    while State.IN_PROGRESS not in steps_of(world, "requester")[len(IN_PLACE) :]:
        world.dial(succeeds=False)
        world.lose(RB)
        world.pass_time(world.now + 1.0)
    begun = world.now
    while world.signals[RB]:
        world.lose(RB)
    world.pass_time(begun + P2P_TIMEOUT - 0.1)
    assert steps_of(world, "requester")[-1] == State.IN_PROGRESS
    world.pass_time(begun + P2P_TIMEOUT)
    assert steps_of(world, "requester")[-1] == State.FAILED
    world.settle()
    assert world.live_ends() == []


@pytest.mark.parametrize("late", [RA, RB])
def test_a_dial_by_void_candidates_that_opens_all_the_same_is_hung_up(late):
    """Whichever end it was: the old secrets are of no use once an end offers anew."""
    world = linked()
    world.cut()
    while late not in world.dials:
        if world.dials:
            world.dial(succeeds=False)
        world.deliver(RA)
        world.deliver(RB)
        world.reconnect()
    for _ in range(3):
        world.reconnect()
    assert steps_of(world, "requester")[-1] == State.IN_PROGRESS
    world.settle()
    assert steps_of(world, "requester")[-len(ANEW) :] == ANEW
    assert len(world.live_links()) == 1
    assert_all_agree(world)
