"""What damage to traces does to their verdict: never a violation, and nothing lost in silence."""

import json
import random
import shutil

import attrs
import pytest
import trio
from click.testing import CliRunner
from trio.testing import MockClock

from fsm.__main__ import cli
from fsm.judge.trace_line import Verdict
from fsm.judge.verdict import judge_run
from tests.support.trace.damage import DAMAGES, write_whole
from tests.support.trace.judged import lines_played
from tests.support.trace.recorded import lines_of, scenario_of

SCENARIOS = ("SC-05", "SC-09", "SC-16", "SC-25", "SC-27", "SC-31")
"""Requests, data objects and direct links, with links that break and requests that repeat."""

NAMES = {"SC-05": "a b", "SC-27": "ü/50%"}
"""Nodes of these have names that stand in a path otherwise."""

ROUNDS = 3


@pytest.fixture(scope="module", params=SCENARIOS)
def whole(request, tmp_path_factory):
    """What the processes of a scenario wrote."""
    clock = MockClock(autojump_threshold=0)
    lines = trio.run(lines_played, scenario_of(lines_of(request.param)), clock=clock)
    prefix = NAMES.get(request.param, "")
    lines = [attrs.evolve(one, node=prefix + one.node, wall_ns=1) for one in lines]
    assert judge_run(lines).verdict is Verdict.CONFORMANT
    directory = tmp_path_factory.mktemp(request.param)
    write_whole(directory, lines)
    return directory


def judged(directory):
    """The flaws and the judgement, as a script reads them."""
    done = CliRunner().invoke(cli, ["judge", str(directory), "--json"])
    reported = [json.loads(line) for line in done.stdout.splitlines()]
    return done, [one for one in reported if one["schema"] == "protofly.flaw/1"], reported


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_breaks_no_claim_and_what_is_lost_is_named(whole, damage, tmp_path):
    for seed in range(ROUNDS):
        dice = random.Random(seed)  # noqa: S311 - reproducible, not secret
        place = tmp_path / str(seed)
        shutil.copytree(whole, place)
        lost = damage(place, dice)

        done, flaws, reported = judged(place)

        broken = [one for one in reported if one["schema"] == "protofly.broken-claim/1"]
        assert broken == [], (seed, broken)
        verdict = reported[-1]["verdict"]
        assert verdict == ("incomplete" if lost else "conformant"), (seed, done.stdout)
        for _, node in lost:
            # Who has no trace is named by its address, which ends as its name does.
            end = node.removeprefix("a b").removeprefix("ü/50%")
            assert any(node == one.get("node") or end in one["reason"] for one in flaws), seed
