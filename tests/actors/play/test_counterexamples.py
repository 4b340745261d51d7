"""What the composition check writes of a run is a scenario that the player takes."""

import attrs
import pytest

from actors.play.player import play
from actors.play.script.reader import read_script_lines
from actors.play.script.steps import CallStep, MessageStep
from fsm.compositions.catalogue import COMPOSITIONS
from fsm.machine_list import MACHINES
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


async def test_declared_actors_do_better_behind_a_loss_than_a_table_without_its_deadline(
    autojump_clock,
):
    """A requester whose invitation is lost waits for ever there, and 10 s by page 03, 3.1."""
    table = MACHINES["p2p_connection"]
    flawed = attrs.evolve(
        table, deadlines=tuple(one for one in table.deadlines if one.state != "in-progress")
    )
    plan = COMPOSITIONS["p2p"]
    found = explore(plan.compose({**MACHINES, table.name: flawed}, plan.bounds))
    (finding,) = found.findings
    text = scenario_of(found.composition, finding.run, "CX-p2p", 60.0)
    (scenario,) = read_script_lines("p2p", text.encode().splitlines())
    *_, lost, rest = scenario.steps
    assert isinstance(lost, MessageStep)
    assert lost.is_lost
    outcome = await play(scenario)
    assert outcome.difference is not None
    assert outcome.difference.number == rest.number
    (seen,) = outcome.difference.seen
    assert seen.startswith("p2p(")
    assert seen.endswith("|requester): in-progress -> failed")
