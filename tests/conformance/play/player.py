"""Plays a scenario: does what is to be done before each step, and waits for the step.

What is done, breaks, or lasts (`do`, `fault`, `time`) comes when all steps before were seen and no
actor has work left at that moment. All else the actors must do; it is waited for in virtual time. A
route that a registry finds only for a message of a later step is looked for behind that message.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Protocol

import trio
import trio.testing

from actors.kit.errors import RestartLimitError
from specs.errors import BadUrlError, ProtoflyError
from tests.conformance.play.names import Names
from tests.conformance.play.route import Observer
from tests.conformance.play.score import Difference, Score, show_step
from tests.conformance.play.script import Line, Scenario
from tests.conformance.play.stage import StageError, open_stage

PATIENCE: Final = 30.0
"""Seconds of virtual time an expectation is waited for (ours): twice `REPLY_TIMEOUT`."""

_EPILOGUE: Final = 0.25
"""Seconds of virtual time in which what contradicts a scenario may still follow (ours)."""


class Acts(Protocol):
    """A stage."""

    async def act(self, step: Line) -> None:
        """Do all that is to be done before a step is looked for."""


async def play(scenario: Scenario, observer: Observer | None = None) -> Difference | None:
    """Play a scenario on a stage of its own, under a clock that jumps; None: it passes.

    Args:
        observer: Collects what is seen.
    """
    return await survive(partial(_play, scenario, observer or Observer()))


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


async def _play(scenario: Scenario, observer: Observer) -> Difference | None:
    names = Names()
    async with open_stage(scenario, observer, names) as stage:
        return await perform(stage, Score(scenario, observer, names))


async def perform(stage: Acts, score: Score) -> Difference | None:
    """Go through the steps of a scenario on its stage; return the first that is otherwise."""
    scenario, later = score.scenario, list[Line]()
    for place, step in enumerate(scenario.steps):
        if step.word == "resolve" and _waits(scenario, place):
            later.append(step)
            continue
        if scenario.is_acted(step):
            await trio.testing.wait_all_tasks_blocked()
        score.passed(step)
        if scenario.is_acted(step):
            try:
                await stage.act(step)
            except StageError as error:
                return Difference(step.n, show_step(step), (str(error),))
        # The routes of a message that has gone by now.
        routes = [one for one in later if step.word == "msg" and step.msg.to == one.to]
        for one in (step, *routes):
            if not await _is_seen(score, one):
                return score.difference(one)
        later = [one for one in later if one not in routes]
    await trio.sleep(_EPILOGUE)
    return score.contradiction()


async def _is_seen(score: Score, step: Line) -> bool:
    """Wait until a step was seen; return whether it was."""
    with trio.move_on_after(PATIENCE):
        await trio.lowlevel.checkpoint()
        while not score.seek(step):
            await score.observer.more(len(score.observer.items))
        return True
    return False


def _waits(scenario: Scenario, place: int) -> bool:
    """Return whether a route is found only for a later message of the scenario."""
    step = scenario.steps[place]
    to = [(at, one) for at, one in enumerate(scenario.steps) if one.word == "msg"]
    mine = [(at, one.hop.last) for at, one in to if one.msg.to == step.to]
    is_asked = any(
        at < place and last.part == "bus" and last.root == step.at.root for at, last in mine
    )
    return not scenario.is_acted(step) and not is_asked and any(at > place for at, _ in mine)
