"""The stage of a scenario: the world around its actors, and what the player does in it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import final

import trio
import trio.testing

from actors.play.match.names import Names
from actors.play.match.observer import Observer
from actors.play.script.steps import Scenario, Step, TimeStep
from actors.play.stage.actions import act
from actors.play.stage.losses import Disturbances
from actors.play.stage.setup import set_up
from actors.play.stage.stage_error import StageError
from actors.play.stage.world import World, open_world

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
        names: Learns what the addresses that are given stand for.

    Raises:
        StageError: The world cannot be brought there.
    """
    failure: StageError | None = None
    async with open_world(scenario, observer, names) as world:
        try:
            await set_up(world)
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
        self._disturbances = Disturbances(world.scenario, world.names, world.observer)
        world.network.disturbance = self._disturbances.carried

    async def act(self, step: Step) -> None:
        """Do all that is to be done before a step is looked for; let its time pass.

        Returns when it is under way: what the actors make of it is for the observer.

        Raises:
            StageError: It cannot be done.
        """
        # Whoever acts is slower than what goes on inside a process, faster than a wire.
        await trio.testing.wait_all_tasks_blocked()
        self._disturbances.expect(step)
        for action in self._world.scenario.actions.get(step.number, ()):
            await act(self._world, action, step)
        if isinstance(step, TimeStep):
            await trio.sleep(step.seconds)
