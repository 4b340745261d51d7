"""What the real actors do breaks no claim: the golden scenarios, each to its end."""

import pytest

from fsm.judge.trace_line import Verdict
from fsm.judge.verdict import judge_run
from tests.support.trace.judged import lines_played
from tests.support.trace.recorded import NAMES, lines_of, scenario_of


@pytest.mark.parametrize("name", NAMES)
async def test_a_golden_scenario_breaks_no_claim(name, autojump_clock):
    judged = judge_run(await lines_played(scenario_of(lines_of(name))))

    assert judged.findings == ()
    assert judged.verdict is Verdict.CONFORMANT
