"""Requester and handler cores and both registries' tables together: every run ends well.

R9, I-P4, I-P6..I-P8, I-P20.
"""

import pytest

from fsm.machines.p2p_connection import State
from specs.limits.protocol import P2P_TIMEOUT
from tests.fsm.p2p.p2p_world import RA, RB, World


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
