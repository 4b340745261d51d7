"""A component that takes one message and then no more: its mailbox fills."""

import trio

from actors.kit.supervision.actor import Actor, Delivery
from actors.kit.supervision.supervisor import ChildSpec
from actors.runtime.bus.messages import Origin
from tests.support.runtime.runtime_parts import BusWorld


class Deaf(Actor[Delivery]):
    """Is busy for ever with what it was given first."""

    async def handle(self, message: Delivery) -> None:
        await trio.sleep_forever()


async def deaf(world: BusWorld, url: str, room: int = 1) -> None:
    """Add one, with a mailbox for so many; to be stopped by the test."""
    ref = await world.supervisor.start_child(ChildSpec(url, Deaf, mailbox=room))
    world.agent.admit(url, Origin.LOCAL, ref)
