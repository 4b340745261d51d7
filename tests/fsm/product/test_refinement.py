"""Whatever the real P2P cores do, the compositions' rules allow: the model tells no tales.

A walk takes the cores along. The composition says what happens next, and to whom; what comes
of it the cores say, and it must be what one of the composition's rules for that says: the
same moves, the same messages. After each step, states, ends and dials must be the same.
"""

from collections import Counter
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm.compositions.p2p_scene import Scene
from fsm.compositions.p2p_whole import Troubles, whole
from fsm.machine_list import MACHINES
from fsm.product.bounds import Bounds
from fsm.product.rule import Got, Wished
from fsm.product.run import run_of
from fsm.product.steps import Kind, Steps
from specs.limits.protocol import RECONNECT_TRIES
from tests.support.p2p_refinement import Walk

ASKS = {"one asks": {"a": 1, "b": 0}, "both ask": {"a": 1, "b": 1}}
BOUNDS = {
    "one asks": Bounds(losses=1, duplicates=1, channel=4),
    "both ask": Bounds(losses=1, duplicates=0, channel=4),
}


@cache
def composed(name):
    scene = Scene(
        tables=MACHINES,
        asks=ASKS[name],
        bounds=BOUNDS[name],
        links=3,
        tries=RECONNECT_TRIES,
        negotiations=3,
    )
    troubles = Troubles(cuts=2, dials=3, refusals=1, leaves=("a", "b"))
    return scene, Steps(whole("walked", "", scene, troubles, ()))


def walk(name, seed, length, kind=Walk):
    random, way = Random(seed), kind(*composed(name))  # noqa: S311 - nothing secret
    for _ in range(length):
        if not way.go(random):
            break
    return way


class LateHandler(Walk):
    """A walk in which a registry hears of its handler long after the other runtime."""

    def weight(self, step):
        cause = self.cause(step)
        if isinstance(cause, Wished):
            return 100 if cause.wish.endswith("asks for the other") else 1
        if isinstance(cause, Got) and cause.channel == "a hnd to registry":
            return 5
        return 1 if step[0] in {Kind.LOST, Kind.DEADLINE} else super().weight(step)


WALKS = [("one asks", Walk), ("both ask", Walk), ("both ask", LateHandler)]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("name", "kind"), WALKS)
@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), length=st.integers(20, 200))
def test_every_step_of_the_cores_is_one_of_the_rules(name, kind, seed, length):
    walk(name, seed, length, kind)


# ---- and it would be noticed if it were not


def taken_rows(name, walks, kind=Walk):
    """The rows of the three tables that the first walks take, by machine."""
    rows = Counter()
    for seed in range(walks):
        way = walk(name, seed, 200, kind)
        for taken in run_of(way.code, way.history):
            rows.update((m.part.table.name, m.old, m.trigger, m.new) for m in taken.moved)
    return rows


NOT_WALKED = {
    # A handler ends its older link to a runtime before it tells of a new one.
    ("p2p_entry", "placeholder", "invited", "removed"),
    # The winner must fail at one end only, after the other end was asked anew.
    ("p2p_entry", "bound", "replaced", "bound"),
}
"""Rows that no walk of this length takes; `test_p2p_entries` and the worlds of cores do."""


@pytest.mark.timeout(120)
def test_the_walks_take_every_row_of_the_three_tables():
    taken = taken_rows("both ask", 500) + taken_rows("both ask", 100, LateHandler)
    declared = {
        (name, row.old, row.trigger.value, row.target.value)
        for name in ("p2p_connection", "p2p_entry", "handler_controller")
        for row in MACHINES[name].rows
    }
    assert declared - set(taken) == NOT_WALKED


def silenced(word):
    """A walk by rules that never send a message with `word` in its name."""

    class Silenced(Walk):
        def said(self, step):
            moves, sends = super().said(step)
            kept = {k: [one for one in sent if word not in one] for k, sent in sends.items()}
            return moves, {channel: sent for channel, sent in kept.items() if sent}

    return Silenced


SILENT = [
    *("shall yield", "shall resume", "is yielding"),
    *("invites", "is accepted", "is refused", "observes", "changes to", "is withdrawn"),
    *("is created", "is live", "is disconnected", "is failed", "is over", "asks for the row"),
    *("is told of", "shall connect", "shall disconnect", "shall listen", "has listeners"),
    *("breaks", "says goodbye", "is not there"),
]


def walks(name, count, kind):
    for seed in range(count):
        walk(name, seed, 200, kind)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("word", SILENT)
def test_a_message_that_the_rules_do_not_know_of_is_noticed(word):
    with pytest.raises(AssertionError, match="the cores did"):
        walks("both ask", 1000, silenced(word))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("machine", ["p2p_connection", "p2p_entry", "handler_controller"])
def test_a_move_that_the_rules_do_not_know_of_is_noticed(machine):
    class Still(Walk):
        def said(self, step):
            moves, sends = super().said(step)
            tables = {p.name: p.table.name for p in self.steps.composition.parts}
            return {part: m for part, m in moves.items() if tables[part] != machine}, sends

    with pytest.raises(AssertionError, match="the cores did"):
        walks("both ask", 100, Still)
