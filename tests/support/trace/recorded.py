"""A scenario that was played once, and judged again as it is or spoilt."""

from pathlib import Path

import attrs
import orjson
import trio

from tests.conformance.play.names import Names
from tests.conformance.play.player import perform
from tests.conformance.play.route import Observer
from tests.conformance.play.score import Difference, Score
from tests.conformance.play.script import Scenario, read_script_lines
from tests.conformance.play.stage import open_stage

GOLDEN = Path(__file__).parents[2] / "fixtures" / "scenarios.jsonl"
LINES = [orjson.loads(line) for line in GOLDEN.read_bytes().splitlines()]
NAMES = list(dict.fromkeys(line["sc"] for line in LINES))


def lines_of(name: str) -> list[dict]:
    """The lines of a golden scenario, each a copy."""
    return [orjson.loads(orjson.dumps(line)) for line in LINES if line["sc"] == name]


def scenario_of(lines: list[dict]) -> Scenario:
    """Read lines, given as objects."""
    (scenario,) = read_script_lines("scenario", [orjson.dumps(line) for line in lines])
    return scenario


@attrs.frozen
class Recorded:
    """What was seen while a scenario was played.

    Attributes:
        names: What its names stood for before the first step.
        cues: How much had been seen when each cue was acted, by the numbers of the steps.
        difference: How it went.
    """

    observer: Observer
    names: Names
    cues: dict
    difference: Difference | None

    async def judge(self, scenario: Scenario) -> Difference | None:
        """Let the player judge what was seen by a scenario; nothing is played again."""
        replay = _Replay(self)
        score = Score(scenario, replay.observer, self.names.copy())
        return await perform(replay, score)


class _Replay:
    """A stage on which what was seen once is seen again, from cue to cue."""

    def __init__(self, recorded: Recorded) -> None:
        self.observer = Observer()
        self.observer.start = recorded.observer.start
        self.observer.processes = recorded.observer.processes
        self._recorded = recorded
        self._show_until_cue_behind(0)

    def _show_until_cue_behind(self, number: int) -> None:
        behind = (seen for step, seen in sorted(self._recorded.cues.items()) if step > number)
        items = self._recorded.observer.items
        known = len(self.observer.items)
        for seen in items[known : next(behind, len(items))]:
            self.observer.see(seen.who, seen.actor, seen.fact, seen.message)

    async def act(self, step) -> None:
        await trio.lowlevel.checkpoint()
        self._show_until_cue_behind(step.n)


class _Watched:
    """A stage, and what had been seen when it was to act."""

    def __init__(self, stage, observer):
        self.cues = {}
        self._stage, self._observer = stage, observer

    async def act(self, step):
        self.cues[step.n] = len(self._observer.items)
        await self._stage.act(step)


async def record(scenario: Scenario) -> Recorded:
    """Play a scenario and keep what was seen, up to where it ended."""
    observer, names = Observer(), Names()
    async with open_stage(scenario, observer, names) as stage:
        before = names.copy()
        score, watched = Score(scenario, observer, names), _Watched(stage, observer)
        difference = await perform(watched, score)
        kept = Observer()
        kept.items, kept.start = list(observer.items), observer.start
        kept.processes = set(observer.processes)
    return Recorded(kept, before, watched.cues, difference)
