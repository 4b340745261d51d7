"""Models of an application go along with links, stubs and objects, and can break none."""

import pytest
import trio.testing

from actors.kit.supervision.supervisor import open_supervisor
from actors.runtime.following import Followers, StepFeed
from fsm.engine import Entity
from fsm.machines.sync.observer_copy import OBSERVER_COPY, Trigger
from specs.limits.protocol import MODELS_FOLLOWING
from tests.support.trace.memory import MemoryTracer

OBJECT, OBSERVER = "comm://a.example/o", "hyperty://a.example/h"


class Model:
    """Keeps what it is called with."""

    def __init__(self, key):
        self.key = key
        self.heard = []

    def on_enter_live(self, event):
        self._hear("live", event)

    def on_exit_live(self, event):
        self._hear("not live", event)

    def on_enter_in_progress(self, event):
        self._hear("in-progress", event)

    def _hear(self, what, event):
        step = event.kwargs["step"]
        self.heard.append((what, step.cause))


class Sluggish(Model):
    async def on_enter_live(self, event):
        """Never awaited."""


@pytest.fixture
async def feed():
    return StepFeed(MemoryTracer())


@pytest.fixture
async def followers(feed):
    async with open_supervisor("followers") as supervisor:
        yield Followers(feed, supervisor)


@pytest.fixture
def copy():
    return Entity(OBSERVER_COPY, f"{OBJECT}|{OBSERVER}")


def reported(feed, entity, *triggers, given=frozenset()):
    for trigger in triggers:
        feed.step("sm", entity.step(trigger, given=given))


@pytest.mark.parametrize("make", [lambda key: 1 / 0, Sluggish, lambda key: object()])
async def test_an_invalid_model_is_logged_and_counted(feed, followers, copy, make):
    following = await followers.follow("observer_copy", make)
    reported(feed, copy, Trigger.OBSERVE)
    await following.stop()
    assert following.errors == 1


async def test_models_of_what_is_over_are_not_kept_for_ever(feed, followers):
    following = await followers.follow("observer_copy", Model)
    keys = [str(number) for number in range(MODELS_FOLLOWING + 1)]
    for key in keys:
        over = [Trigger.DELETED] if key == "1" else []
        reported(feed, Entity(OBSERVER_COPY, key), Trigger.OBSERVE, *over)
        await trio.testing.wait_all_tasks_blocked()
    await following.stop()
    assert list(following.models) == [keys[0], *keys[2:]]
