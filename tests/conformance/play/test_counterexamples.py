"""What the composition check writes of a run is a scenario that the player takes."""

import attrs
import pytest

from fsm.explore.compositions.catalogue import COMPOSITIONS
from fsm.explore.evidence import scenario_of
from fsm.explore.explorer import explore
from tests.conformance.play.player import play
from tests.conformance.play.script import read_script_lines

STATES = 2_000
"""Enough for a run of some length."""


def counterexamples(name):
    """Runs of a composition that may come to rest nowhere, as scenarios."""
    restless = attrs.evolve(COMPOSITIONS[name], ends=())
    found = explore(restless, STATES)
    texts = [scenario_of(restless, finding.run, f"CX-{name}") for finding in found.findings]
    return [read_script_lines(name, text.encode().splitlines())[0] for text in texts if text]


@pytest.mark.parametrize("name", ["session", "session-tables", "p2p-late", "simultaneous-open"])
async def test_a_counterexample_is_read_and_played(autojump_clock, name):
    """Whether actors do what it tells is not said here; that it is played is."""
    for scenario in counterexamples(name):
        difference = await play(scenario)
        step = None if difference is None else scenario.step(difference.number)
        assert step is None or step.word != "call"
