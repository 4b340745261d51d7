"""What the composition check writes of a run is a scenario that the player takes."""

import attrs
import pytest

from actors.play.player import play
from actors.play.script import CallStep
from actors.play.script_file import read_script_lines
from fsm.catalogue import MACHINES
from fsm.compositions.catalogue import COMPOSITIONS
from fsm.product.explorer import explore
from fsm.product.script import scenario_of

STATES = 2_000
"""Enough for a run of some length."""


def counterexamples(name):
    """Runs of a composition that may come to rest nowhere, as scenarios."""
    plan = COMPOSITIONS[name]
    whole = plan.compose(MACHINES, plan.bounds)
    restless = tuple(attrs.evolve(end, cases=()) for end in whole.ends)
    found = explore(attrs.evolve(whole, ends=restless), STATES)
    texts = [scenario_of(whole, finding.run, f"CX-{name}") for finding in found.findings]
    return [read_script_lines(name, text.encode().splitlines())[0] for text in texts if text]


@pytest.mark.parametrize("name", COMPOSITIONS)
async def test_a_counterexample_is_read_and_played(autojump_clock, name):
    """Whether actors do what it tells is not said here; that it is played is."""
    scenarios = counterexamples(name)
    for scenario in scenarios:
        outcome = await play(scenario)
        step = None if outcome.difference is None else scenario.step(outcome.difference.number)
        assert outcome.steps == len(scenario.steps)
        assert not isinstance(step, CallStep)
