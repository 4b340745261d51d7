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


@pytest.mark.parametrize(
    "name", ["session", "session-tables", "p2p-late", "p2p-leave", "simultaneous-open"]
)
async def test_a_counterexample_is_read_and_played(autojump_clock, name):
    """Whether actors do what a run tells is not said here; that it is played is."""
    whole = COMPOSITIONS[name]
    # Without one of its ends, a composition comes to rest where it must not.
    resting = next(
        one for one in whole.ends if one.name in {"apart", "each pair is linked, or not"}
    )
    restless = attrs.evolve(whole, ends=[one for one in whole.ends if one is not resting])
    (finding,) = explore(restless, STATES).findings
    lines = scenario_of(restless, finding.run, f"CX-{name}").encode().splitlines()
    (scenario,) = read_script_lines(name, lines)
    difference = await play(scenario)
    step = None if difference is None else scenario.step(difference.number)
    assert step is None or step.word != "call"
