"""Clocks of processes: no claim depends on them, and how far apart they are is found."""

from fsm.judge.crossings import Crossing, Part, clock_lines, skews

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
