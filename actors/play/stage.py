"""The stage of a scenario: the world around its actors, and the player's hands in it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import final

import trio
import trio.testing

from actors.play.accidents import Accidents
from actors.play.calls import do_call
from actors.play.cue import Cue, cue_of
from actors.play.cues import send
from actors.play.faults import break_it
from actors.play.links import begins
from actors.play.names import Names
from actors.play.observer import Observer
from actors.play.roles import Pair
from actors.play.scenery import set_scene, want_link
from actors.play.script import (
    CallStep,
    FaultStep,
    MessageStep,
    ResolveStep,
    Scenario,
    StateStep,
    Step,
    TimeStep,
)
from actors.play.stage_error import StageError
from actors.play.world import World, open_world

__all__ = ["Stage", "open_stage"]


@asynccontextmanager
async def open_stage(
    scenario: Scenario, observer: Observer, names: Names
) -> AsyncIterator["Stage"]:
    """Open the world of a scenario and bring it to where the scenario begins.

    On leaving, everybody takes leave in good order; it may take virtual minutes.

    Args:
        scenario: What is to be played.
        observer: Sees everything, from the opening on; is told when the scenario begins.
        names: Learns what the addresses of the cast stand for.

    Raises:
        StageError: The world cannot be brought there.
    """
    failure: StageError | None = None
    async with open_world(scenario, observer, names) as world:
        try:
            await set_scene(world)
        except StageError as error:
            # Raised once everybody has left, so that it comes out alone.
            failure = error
        else:
            yield Stage(world)
    if failure is not None:
        raise failure


@final
class Stage:
    """A world in which a scenario is under way."""

    def __init__(self, world: World) -> None:
        self._world = world
        cues = [step for step in world.scenario.steps if self.is_cue(step)]
        self._accidents = Accidents(world.scenario, cues, world.names, world.observer)
        world.air.toll = self._accidents.toll

    def is_cue(self, step: Step) -> bool:
        """Say whether the player has to do something for a step (see `cue`)."""
        return self._cue(step) is not None

    def _cue(self, step: Step) -> Cue | None:
        return cue_of(self._world.scenario, self._world.cast, step)

    async def act(self, step: Step) -> None:
        """Do what a cue wants.

        Returns when it is under way: what the actors make of it is for the observer.

        Raises:
            StageError: It cannot be done.
        """
        world, cue = self._world, self._cue(step)
        # Outsiders are slower than what goes on inside a process, faster than a wire.
        await trio.testing.wait_all_tasks_blocked()
        self._accidents.expect(step)
        match step:
            case MessageStep() if cue is not None:
                await send(world, cue, step)
            case StateStep() if cue is not None:
                await self._move(cue, step)
            case ResolveStep() if cue is not None:
                await self._look_up(step)
            case TimeStep() | FaultStep() | CallStep():
                await self._do(step)
            case _:
                raise StageError(f"step {step.number} is no cue")

    async def _do(self, step: TimeStep | FaultStep | CallStep) -> None:
        match step:
            case TimeStep(seconds=seconds):
                await trio.sleep(seconds)
            case FaultStep():
                break_it(self._world, step)
            case CallStep():
                await do_call(self._world, step)

    async def _move(self, cue: Cue, step: StateStep) -> None:
        if cue is Cue.LINK_BEGINS:
            await self._begin_links(step)
        else:
            await self._leave(step.key[-1])

    async def _begin_links(self, step: Step) -> None:
        """Have a link wanted; if the scenario has both sides want it, both at once."""
        mine = set(begins(step) or ())
        wanted = (begins(one) for one in self._world.scenario.steps)
        for pair in dict.fromkeys(one for one in wanted if one is not None and set(one) == mine):
            if pair not in self._world.wanted:
                await self._want(pair)

    async def _want(self, pair: Pair) -> None:
        asker, asked = (self._world.cast.spokesman(one) for one in pair)
        await want_link(self._world, pair, asker or "", asked or "")

    async def _leave(self, runtime: str) -> None:
        member = self._world.member(runtime)
        member.leave.set()
        await member.left.wait()

    async def _look_up(self, step: ResolveStep) -> None:
        """Have a hyperty of a runtime ask for what its registry is to find."""
        world = self._world
        asking = world.cast.atlas.runtime(step.at) or ""
        pair = (asking, world.cast.home(step.to) or "")
        await want_link(world, pair, world.cast.spokesman(asking) or "", step.to)
