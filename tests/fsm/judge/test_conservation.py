"""Of a real trace each kind of record is taken away, or doubled: the judge finds nearly all.

Each time one message is lost from one point of a process on, or passed on twice from there on.
"""

from collections import Counter, defaultdict

import attrs
import pytest
import trio
from trio.testing import MockClock

from fsm.judge.claims.records import is_p2p_end
from fsm.judge.trace_line import Verdict
from fsm.judge.verdict import judge_run
from specs.trace import Kind
from tests.support.trace.judged import lines_played
from tests.support.trace.recorded import lines_of, scenario_of

SCENARIO = "SC-16"
ENDS = {"drop", "deny", "synth", "queue", "flush", "relay", "publish"}


@pytest.fixture(scope="module")
def lines():
    clock = MockClock(autojump_threshold=0)
    return trio.run(lines_played, scenario_of(lines_of(SCENARIO)), clock=clock)


def part(name):
    """What sort of component an actor is."""
    if name.startswith("minibus:"):
        return f"bus of a {'link' if is_p2p_end(name.removeprefix('minibus:')) else 'sandbox'}"
    return "bus" if name == "bus" else "stub"


def kinds(lines):
    """Records by kind: whose, what, by which part, of an answer or not."""
    found = defaultdict(list)
    for place, line in enumerate(lines):
        if line.k == Kind.MSG and line.op not in ENDS and line.from_ is not None:
            kind = line.node, line.op, part(line.actor), line.type == "response"
            found[kind].append(place)
    return found


def numbered(lines):
    """The same with numbers without gaps: nothing says that something is missing."""
    numbers = Counter()
    for line in lines:
        numbers[line.node] += 1
        yield attrs.evolve(line, ln=numbers[line.node])


def rest_of(lines, place):
    """The records of the process about the same message from there on."""
    first = lines[place]
    return [
        at
        for at, line in enumerate(lines)
        if at >= place and line.k == Kind.MSG and (line.node, line.mid) == (first.node, first.mid)
    ]


def lost(lines, place):
    gone = set(rest_of(lines, place))
    return [line for at, line in enumerate(lines) if at not in gone]


def doubled(lines, place):
    again = rest_of(lines, place)
    return [*lines[: again[-1] + 1], *(lines[at] for at in again), *lines[again[-1] + 1 :]]


def repeated(lines, place):
    return [*lines[: place + 1], lines[place], *lines[place + 1 :]]


def test_the_trace_as_it_is_breaks_nothing(lines):
    assert judge_run(list(numbered(lines))).verdict is Verdict.CONFORMANT


@pytest.mark.parametrize("spoil", [lost, doubled, repeated])
def test_a_message_that_is_lost_or_given_twice_is_found(lines, spoil):
    found, tried = Counter(), Counter()
    for kind, places in kinds(lines).items():
        for place in {places[0], places[len(places) // 2]}:
            judged = judge_run(list(numbered(spoil(lines, place))))
            tried[kind] += 1
            found[kind] += judged.verdict is Verdict.VIOLATIONS
    assert len(tried) > 20
    missed = {kind: tried[kind] - found[kind] for kind in tried if found[kind] < tried[kind]}
    assert sum(missed.values()) <= 0.08 * sum(tried.values()), missed
