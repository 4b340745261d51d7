"""A hyperty with a machine of its own, which it steps as no table declares when it is asked."""

import trio
from typing_extensions import override

from actors.runtime.hyperty.hyperty import Hyperty
from fsm.engine import Entity
from fsm.machine_list import MACHINES
from fsm.machines.address import Trigger
from specs.jsonvalue import Json
from specs.message import Message

KEY = "comm://a.ex/o1"
WRONG = "misstep"
TASK = "misstep in a task"


def misstep() -> None:
    """Release an address that was never allocated."""
    Entity(MACHINES["address"], KEY).step(Trigger.RELEASE)


class Misstep(Hyperty):
    """Missteps when it is asked to; answers anything else with what it was asked."""

    @override
    async def on_request(self, message: Message) -> Json:
        value = message.body.get("value")
        if value == WRONG:
            misstep()
        if value == TASK:
            self.spawn(self.work)
            await trio.sleep_forever()
        return value

    async def work(self) -> None:
        misstep()
