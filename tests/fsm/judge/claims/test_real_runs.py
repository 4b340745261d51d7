"""What the real actors do breaks no claim: the golden scenarios, each to its end."""

from itertools import cycle

import pytest

from fsm.judge.trace_line import Verdict
from fsm.judge.verdict import judge_run
from tests.support.trace.clocks import shifted
from tests.support.trace.judged import lines_played
from tests.support.trace.recorded import NAMES, lines_of, scenario_of


@pytest.mark.parametrize("name", NAMES)
async def test_a_golden_scenario_breaks_no_claim(name, autojump_clock):
    lines = await lines_played(scenario_of(lines_of(name)))
    judged = judge_run(lines)

    assert judged.findings == ()
    assert judged.verdict is Verdict.CONFORMANT
    nodes = sorted({line.node for line in lines})
    by_other_clocks = judge_run(lines_by(lines, nodes, NAMES.index(name) % 2))
    assert by_other_clocks.verdict is Verdict.CONFORMANT


CLOCKS = [(3600.0, 0.0), (-3600.0, 1e-4), (1.0, -1e-4), (-1.0, 0.0), (0.0, 0.0)]


def lines_by(lines, nodes, turn):
    """The same by clocks that differ: hours, seconds, and in how fast they go."""
    dealt = cycle([*CLOCKS[2 * turn :], *CLOCKS[: 2 * turn]])
    return shifted(lines, dict(zip(nodes, dealt, strict=False)))
