"""Records a scenario, played by the real actors."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import trio
from trio.testing import MockClock

from tests.conformance.play.names import Names
from tests.conformance.play.player import perform, survive
from tests.conformance.play.route import Observer
from tests.conformance.play.score import Difference, Score
from tests.conformance.play.script import Scenario, read_script
from tests.conformance.play.stage import open_stage
from tests.golden.cores import PROCESS, watched_cores
from tests.golden.form import Part, hop
from tests.golden.notes import Notes, noted_frames
from tests.simulation.world.fate import sealed
from transports.memory import MemoryLink

_FIXTURES: Final = Path(__file__).parents[1] / "fixtures"

FILES: Final = (_FIXTURES / "scenarios.jsonl", _FIXTURES / "new-scenarios.jsonl")


def _scenarios() -> dict[str, Scenario]:
    return {one.name: one for file in FILES for one in read_script(file)}


def scenario_names() -> list[str]:
    """Return the names of all scenarios."""
    return list(_scenarios())


def record_scenario(name: str) -> Part:
    """Play a scenario, and record it."""
    notes, observer = Notes(), Observer()
    with ExitStack() as stack:
        stack.enter_context(watched_cores(notes.add_core, notes.ids))
        stack.enter_context(noted_frames(notes, MemoryLink, _ends))
        stack.enter_context(_named_processes())
        stack.enter_context(sealed(0, is_steady=True))
        play = partial(_play, _scenarios()[name], observer)
        difference = trio.run(survive, play, clock=MockClock(autojump_threshold=0))
    for seen in observer.items:
        grade, subject, line = hop(seen.fact, notes.ids)
        notes.add(grade, f"{seen.who} {subject}", line, seen.time)
    notes.add("users", "scenario", "passes" if difference is None else str(difference.number))
    return notes.part()


async def _play(scenario: Scenario, observer: Observer) -> Difference | None:
    names = Names()
    async with open_stage(scenario, observer, names) as stage:
        return await perform(stage, Score(scenario, observer, names))


def _ends(link: MemoryLink) -> str:
    """Return which end of which link it is: links come in the order in which they are dialled."""
    return link.name


@contextmanager
def _named_processes() -> Iterator[None]:
    """Let cores know in whose process they are: it begins where its tracer is made."""
    sound = Observer.tracer

    def tracer(observer, who):
        PROCESS.set(who)
        return sound(observer, who)

    Observer.tracer = tracer
    try:
        yield
    finally:
        Observer.tracer = sound
