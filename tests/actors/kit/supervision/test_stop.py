"""Stopping: in reverse order, within bounds, and nothing is lost without a word."""

from functools import partial

import pytest

from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.supervisor import ChildSpec, Restart, open_supervisor
from tests.actors.kit.supervision.scribe import Scribe


def scribe(diary, name="a", make=Scribe):
    return ChildSpec(name, partial(make, diary), Restart.TEMPORARY)


async def test_no_child_is_started_while_the_supervisor_stops(diary):
    class Late(Scribe):
        async def stop(self):
            with pytest.raises(ActorStoppedError):
                await supervisor.start_child(scribe(diary, "late"))
            self.write("was refused")

    async with open_supervisor("s") as supervisor:
        await supervisor.start_child(scribe(diary, "a", Late))

    assert diary[-1] == "a was refused"
