"""Plays a scenario: does what is to be done before each step, and waits for the step.

What is done, breaks, or lasts (`do`, `fault`, `time`) comes when all steps before were
seen and no actor has work left at that moment. All else the actors must do; it is
waited for in virtual time. A route that a registry finds only for a message of a later
step is looked for behind that message.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, final

import attrs
import trio
import trio.testing

from actors.kit.errors import RestartLimitError
from specs.errors import BadUrlError, ProtoflyError
from tests.conformance.play.match.difference import Difference, show_step
from tests.conformance.play.match.names import Names
from tests.conformance.play.match.observer import Observer
from tests.conformance.play.match.score import Score
from tests.conformance.play.script.steps import (
    MessageStep,
    ResolveStep,
    Scenario,
    Step,
)
from tests.conformance.play.stage.participants import StageError
from tests.conformance.play.stage.stage import Stage, open_stage

PATIENCE: Final = 30.0
"""Seconds of virtual time an expectation is waited for (ours): twice `REPLY_TIMEOUT`."""

_EPILOGUE: Final = 0.25
"""Seconds of virtual time in which what contradicts a scenario may still follow (ours)."""


@final
@attrs.frozen
class Outcome:
    """The outcome of a scenario.

    Attributes:
        scenario: Its name.
        steps: How many it has.
        difference: The first step that was otherwise; None: it passed.
    """

    scenario: str
    steps: int
    difference: Difference | None

    @property
    def is_pass(self) -> bool:
        """Whether the run is as the scenario says."""
        return self.difference is None


async def play(scenario: Scenario) -> Outcome:
    """Play one scenario on a stage of its own, under a clock that jumps."""
    difference = await survive(partial(_play, scenario))
    return Outcome(scenario.name, len(scenario.steps), difference)


async def survive(work: Callable[[], Awaitable[Difference | None]]) -> Difference | None:
    """Let a play that cannot go on be one that differs, at no step of its own."""
    difference: Difference | None = None
    try:
        difference = await work()
    except* (StageError, BadUrlError) as group:
        difference = Difference(0, "a world as it is before the first step", _texts(group))
    except* RestartLimitError as group:
        difference = Difference(0, "actors that do not crash", _texts(group))
    return difference


def _texts(group: BaseExceptionGroup[ProtoflyError]) -> tuple[str, ...]:
    """Return what the errors in a group say, each once."""
    texts: list[str] = []
    for error in group.exceptions:
        texts += _texts(error) if isinstance(error, BaseExceptionGroup) else [str(error)]
    return tuple(dict.fromkeys(texts))


async def _play(scenario: Scenario) -> Difference | None:
    observer, names = Observer(), Names()
    async with open_stage(scenario, observer, names) as stage:
        return await perform(stage, Score(scenario, observer, names))


async def perform(stage: Stage, score: Score) -> Difference | None:
    """Go through the steps of a scenario on its stage; return the first that is otherwise.

    Args:
        stage: Opened participants.
        score: Comparison of what is seen with the scenario.
    """
    return await _Play(stage, score).run()


@final
class _Play:
    """One scenario on its stage."""

    def __init__(self, stage: Stage, score: Score) -> None:
        self._scenario = score.scenario
        self._stage = stage
        self._observer = score.observer
        self._score = score
        self._later: list[ResolveStep] = []

    async def run(self) -> Difference | None:
        """Go through the steps; return the first that is otherwise."""
        for place, step in enumerate(self._scenario.steps):
            behind = self._scenario.steps[place + 1 :]
            if isinstance(step, ResolveStep) and self._waits(step, behind):
                self._later.append(step)
                continue
            difference = await self._step(step)
            if difference is not None:
                return difference
        await trio.sleep(_EPILOGUE)
        return self._score.contradiction()

    async def _step(self, step: Step) -> Difference | None:
        try:
            if self._scenario.is_acted(step):
                await trio.testing.wait_all_tasks_blocked()
            self._score.passed(step)
            if self._scenario.is_acted(step):
                await self._stage.act(step)
        except StageError as error:
            return Difference(step.number, show_step(step), (str(error),))
        if not await self._seen(step):
            return self._score.difference(step)
        return await self._routed(step)

    async def _routed(self, step: Step) -> Difference | None:
        """Look for the routes of a message that has gone by now."""
        before = [
            one
            for one in self._later
            if isinstance(step, MessageStep) and step.message.to == one.to
        ]
        for one in before:
            self._later.remove(one)
            if not await self._seen(one):
                return self._score.difference(one)
        return None

    async def _seen(self, step: Step) -> bool:
        """Wait until a step was seen; return whether it was."""
        with trio.move_on_after(PATIENCE):
            await trio.lowlevel.checkpoint()
            while not self._score.seek(step):
                await self._observer.more(len(self._observer.items))
            return True
        return False

    def _waits(self, step: ResolveStep, behind: Sequence[Step]) -> bool:
        """Return whether a route is found only for a later message of the scenario."""
        if self._scenario.is_acted(step):
            return False
        before = self._scenario.steps[: -len(behind) - 1]
        if any(_is_outstanding(one, step) for one in before):
            return False
        return any(isinstance(one, MessageStep) and one.message.to == step.to for one in behind)


def _is_outstanding(one: Step, step: ResolveStep) -> bool:
    """Return whether a step leaves a message for the address at the bus of this registry."""
    if not isinstance(one, MessageStep) or one.message.to != step.to:
        return False
    end = one.hop.last[0]
    return end.root == step.at.root and end.part == "bus"
