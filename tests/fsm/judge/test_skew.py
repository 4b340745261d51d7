"""Clocks of processes: no claim depends on them, and how far apart they are is found."""

from operator import itemgetter

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm.judge.crossings import Crossing, Part, clock_lines, skews
from fsm.judge.verdict import judge_run
from tests.fsm.judge.claims.test_claims import CASES
from tests.support.cases import for_each
from tests.support.trace.clocks import shifted
from tests.support.trace.histories import reported

HOUR = 3600.0
SHIFTS = st.sampled_from([-HOUR, -1.0, 0.0, 1.0, HOUR]) | st.floats(-1e6, 1e6)
CLOCKS = st.tuples(SHIFTS, st.sampled_from([-1e-4, 0.0, 1e-4]))
BOTH = [
    (f"{case.claim} {word}", history)
    for case in CASES
    for word, history in (("kept", case.kept), ("broken", case.broken))
]


@pytest.mark.parametrize("history", [pytest.param(one, id=name) for name, one in BOTH])
@settings(max_examples=4, deadline=None)
@given(ra=CLOCKS, rb=CLOCKS, rest=CLOCKS)
def test_no_claim_depends_on_how_the_clocks_of_processes_differ(history, ra, rb, rest):
    lines = reported(history)
    moved = shifted(lines, {"ra": ra, "rb": rb}, rest)

    assert judge_run(moved).findings == judge_run(lines).findings


@for_each(BOTH, itemgetter(0))
def test_no_claim_depends_on_which_run_began_first_by_its_own_clock(name, history):
    """The name of a run begins with the time of its start."""
    lines = reported(history)
    later = [attrs.evolve(line, run=f"{1000 - ord(line.node[-1])}{line.node}") for line in lines]

    claims = {(one.claim, one.nodes, one.ln) for one in judge_run(later).findings}
    assert claims == {(one.claim, one.nodes, one.ln) for one in judge_run(lines).findings}


ONE, TWO, THREE = ("r1", "node.a.ex"), ("r2", "alice"), ("r3", "bob")
SECOND = 10**9


def exchanged(node, stub, ahead, delays=(0.1, 0.1), at=5):
    """A message from a stub and one to it, by two clocks, each with its delay."""
    key, now, (there, back) = f"m{len(node)} {id(stub)}", at * SECOND, delays

    def at_stub(seconds):
        return now + round((seconds + ahead) * SECOND)

    def crossing(way, part, time):
        return Crossing(f"{key} {way}", part, 0, time, 1, "l")

    node += [
        crossing("there", Part.NODE_GOT, now + round(there * SECOND)),
        crossing("back", Part.NODE_SENT, now + SECOND),
    ]
    stub += [
        crossing("there", Part.STUB_SENT, at_stub(0)),
        crossing("back", Part.STUB_GOT, at_stub(1 + back)),
    ]


@pytest.mark.parametrize("ahead", [0.0, 3600.0, -3600.0, 0.5])
@pytest.mark.parametrize(("there", "back"), [(0.1, 0.1), (0.0, 0.4), (0.3, 0.01)])
def test_the_clock_is_within_what_is_said(ahead, there, back):
    node, stub = [], []
    exchanged(node, stub, ahead, (there, back))

    found = skews({ONE: node, TWO: stub})[TWO]

    assert abs(found.seconds - ahead) <= found.uncertainty + 1e-6
    assert found.uncertainty == pytest.approx((there + back) / 2)


def test_more_messages_say_it_more_exactly():
    node, stub = [], []
    exchanged(node, stub, 2.0, (0.5, 0.01))
    exchanged(node, stub, 2.0, (0.01, 0.5))

    found = skews({ONE: node, TWO: stub})[TWO]

    assert (found.seconds, found.uncertainty) == pytest.approx((2.0, 0.01))


def test_processes_that_spoke_with_the_same_node_are_compared_with_it():
    node, alice, bob = [], [], []
    exchanged(node, alice, 2.0)
    exchanged(node, bob, -1.0)

    found = skews({ONE: node, TWO: alice, THREE: bob})

    assert {who[1]: (one.than, round(one.seconds)) for who, one in found.items()} == {
        "node.a.ex": ("node.a.ex", 0),
        "alice": ("node.a.ex", 2),
        "bob": ("node.a.ex", -1),
    }


def test_messages_in_one_direction_only_say_nothing():
    node, stub = [], []
    exchanged(node, stub, 2.0)

    assert skews({ONE: node[:1], TWO: stub[:1]}) == {}


def test_of_a_clock_that_was_set_meanwhile_nothing_is_said():
    node, stub = [], []
    exchanged(node, stub, 0.0)
    exchanged(node, stub, 100.0, at=50)

    assert skews({ONE: node, TWO: stub}) == {}


def test_a_node_that_answers_between_two_stubs_is_before_the_second():
    """A message keeps its via on the whole way, so that both ends are compared directly, too."""
    way = "hyperty-runtime://a.ex/ra/protostub/1"
    lines = reported(
        f"""
        @ra
        x xmit read 1 HA>HB stub=SA link=l seq=1 via={way}
        @mn
        x rcv read 1 HA>HB link=k via={way}
        x xmit read 1 HA>HB link=j via={way}
        @rb
        x rcv read 1 HA>HB stub=SB link=l seq=1 via={way}
        x xmit 200 1 HB>HA stub=SB link=l seq=1 via=SB
        @mn
        x rcv 200 1 HB>HA link=j via=SB
        x xmit 200 1 HB>HA link=k via=SB
        @ra
        x rcv 200 1 HB>HA stub=SA link=l seq=1 via=SB
        """
    )
    times = [0, 0, 1, 0, 2, 3, 0, 4, 5, 6, 7, 8]
    moved = [
        attrs.evolve(line, wall_ns=(100 + at + (50 if line.node == "rb" else 0)) * SECOND)
        for at, line in enumerate(lines)
    ]
    assert len(times) <= len(lines)

    found = {node: skew for (_, node), skew in judge_run(moved).skews.items()}

    assert abs(found["rb"].seconds - 50) <= found["rb"].uncertainty
    assert abs(found["ra"].seconds) <= found["ra"].uncertainty


def test_people_are_notified_of_clocks_that_are_far_apart():
    node, alice, bob = [], [], []
    exchanged(node, alice, 3600.0)
    exchanged(node, bob, 0.0, (0.001, 0.002))

    assert list(clock_lines(skews({ONE: node, TWO: alice, THREE: bob}))) == [
        "clock of alice: 3.6e+03 s ahead of that of node.a.ex, give or take 1e+02 ms"
    ]
    assert list(clock_lines(skews({ONE: node, THREE: bob}))) == [
        "clocks of 2 processes: at most 2 ms apart"
    ]
