"""A hyperty of a process that hands objects over or takes them, and can be killed at a stage.

Run as `party=tests.system.sync.delegating:Party`; `KILLED_AT` in its environment names the stage.
"""

import os
import signal
from contextlib import suppress

import trio

import actors
from actors.runtime.sync.delegation import HandOvers, TakeOvers
from actors.runtime.sync.manager import SyncManager

STAGES = {
    "old, before the offer": (HandOvers, "offer", "before"),
    "old, offered": (HandOvers, "offer", "after"),
    "old, handed over": (HandOvers, "hand", "after"),
    "new, before it takes": (TakeOvers, "_ask_node", "before"),
    "new, taken at the node": (SyncManager, "_delegation_reports", "before"),
}
"""Where the process kills itself as `kill -9` does: in which step, and on which side of it."""


def kill_at(stage):
    owner, name, side = STAGES[stage]
    step = getattr(owner, name)

    async def killed(self, *args):
        if side == "after":
            await step(self, *args)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, killed)


if "KILLED_AT" in os.environ:
    kill_at(os.environ["KILLED_AT"])


class Party(actors.Hyperty):
    """Does with an object what it is asked to, and says what came of it."""

    def __init__(self):
        self.thing = None

    async def on_subscribe(self, url, observer):
        pass

    async def on_delegated(self, delegated):
        self.spawn(self.hold, self.taken_over(delegated.url))

    async def hold(self, opened):
        async with opened as self.thing:
            await trio.sleep_forever()

    async def on_request(self, message):
        match message.body["value"]:
            case ["report", value]:
                self.spawn(self.hold, self.report("ctxt", value))
            case ["delegate", to]:
                self.spawn(self.delegate, to)
            case ["write", number]:
                return await self.write(number)
        return self.thing and self.thing.url

    async def delegate(self, to):
        with suppress(actors.ObjectError):
            await self.thing.delegate(to)

    async def write(self, number):
        try:
            return None if self.thing is None else await self.thing.set("n", number)
        except actors.ObjectError as error:
            return f"refused: {error.code}"
