"""Supervision: who is started again, with whom, how often, and who hears of it."""

from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.kit.errors import NameTakenError, RestartLimitError
from actors.kit.supervision.supervisor import ChildSpec, Restart, Strategy, open_supervisor
from tests.actors.kit.supervision.scribe import Crash, Scribe, deeds


def scribe(diary, name, restart=Restart.PERMANENT):
    return ChildSpec(name, partial(Scribe, diary), restart)


async def test_a_temporary_child_goes_down_with_the_others_and_stays_down(diary):
    async with open_supervisor("s", Strategy.ONE_FOR_ALL) as supervisor:
        a = await supervisor.start_child(scribe(diary, "a"))
        b = await supervisor.start_child(scribe(diary, "b", Restart.TEMPORARY))
        await a.tell(Crash())
        await b.wait_stopped()
        await wait_all_tasks_blocked()

        assert deeds(diary)[2:] == ["a stops", "b stops", "a starts"]


async def test_the_first_start_error_comes_out_at_the_starter(diary):
    async with open_supervisor("s") as supervisor:
        with pytest.raises(KeyError):
            await supervisor.start_child(
                ChildSpec("a", partial(Scribe, diary, fails_to_start=KeyError("no")))
            )

        assert supervisor.children == ()
        await supervisor.start_child(scribe(diary, "a"))


async def test_start_errors_at_restarts_escalate_at_last(diary):
    errors = iter([None, *[OSError(str(number)) for number in range(9)]])

    with pytest.RaisesGroup(RestartLimitError):
        async with open_supervisor("s") as supervisor:
            ref = await supervisor.start_child(
                ChildSpec("a", lambda: Scribe(diary, fails_to_start=next(errors)))
            )
            await ref.tell(Crash())
            await trio.sleep_forever()


async def test_a_name_is_given_once(diary):
    async with open_supervisor("s") as supervisor:
        await supervisor.start_child(scribe(diary, "a"))
        with pytest.raises(NameTakenError):
            await supervisor.start_child(scribe(diary, "a"))

        await supervisor.stop_child("a")
        await supervisor.start_child(scribe(diary, "a"))
