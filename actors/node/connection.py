"""One link of the front door: a task that reads, a task that writes, nothing decided."""

import math
from collections.abc import Callable
from typing import final

import trio
from typing_extensions import override

from actors.kit.actor import Actor, ActorRef
from actors.kit.counters import Counters
from actors.kit.errors import ActorStoppedError
from actors.kit.tally import Tally
from actors.node.bus_message import Arrived, BusMessage, Connected, Gone, TooLarge
from actors.node.door import Door
from actors.node.outbox import Outbox
from actors.node.port import Nudge, Port
from specs.limits import HANDSHAKE_TIMEOUT
from transports.errors import (
    Farewell,
    FrameTooLargeError,
    LinkBrokenError,
    LinkClosedError,
    LinkError,
)
from transports.link import Link

__all__ = ["MAILBOX", "Connection"]

MAILBOX = 8
"""Nudges a connection can have waiting; the bus never sends more than four."""


@final
class Connection(Actor[Nudge]):
    """Carries frames between one link and the bus.

    A peer that does not read blocks this actor's task and nobody else; the bus
    frees it by cancelling the write. A peer that has no session in time is left.
    """

    def __init__(
        self,
        number: int,
        link: Link,
        make_door: Callable[[], Door],
        bus: ActorRef[BusMessage],
        counters: Counters,
    ) -> None:
        self._number = number
        self._link = link
        self._door = make_door()
        self._bus = bus
        self._counters = counters
        self._traffic = counters.traffic[self._door.wire]
        self._outbox = Outbox()
        self._handshake_until = math.inf
        self._why = "closed by the node"

    @override
    async def start(self) -> None:
        self._handshake_until = trio.current_time() + HANDSHAKE_TIMEOUT
        self._counters.count(Tally.LINKS_OPENED, self._door.wire)
        self._port = Port(self._number, self._link.name, self._door, self._outbox, self.me)
        await self._bus.tell(Connected(self._port))
        self.spawn(self._read)

    @override
    async def handle(self, message: Nudge) -> None:
        match message:
            case Nudge.WRITE:
                await self._write()
            case Nudge.GRANTED:
                self._handshake_until = math.inf
            case Nudge.LEAVE:
                await self._write()
                self.finish()

    @override
    def deadline(self) -> float:
        return self._handshake_until

    @override
    async def timed_out(self) -> None:
        self._why = "no session in time"
        self._port.farewell = Farewell.REFUSED
        self._outbox.is_leaving = True
        self.finish()

    @override
    async def stop(self) -> None:
        self._outbox.is_leaving = True
        self._outbox.close()
        try:
            await self._bus.tell(Gone(self._number, self._link.name, self._why))
        except ActorStoppedError:
            self._why = "the bus is gone"
        await self._link.aclose(self._port.farewell)

    async def _write(self) -> None:
        """Write until there is nothing to write, or nobody to write to."""
        outbox = self._outbox
        with outbox.writing():
            while parcels := outbox.take():
                self._traffic.sent += len(parcels)
                try:
                    await self._link.send_many(tuple(self._door.write(parcels)))
                except LinkError as exc:
                    self._leave(str(exc))
                    return
        outbox.is_idle = True

    async def _read(self) -> None:
        """Hand on what comes until nothing can come any more."""
        try:
            greeting = self._door.greeting()
            if greeting:
                await self._bus.tell(Arrived(self._number, greeting))
            while True:
                items = self._door.read(await self._link.receive())
                self._traffic.received += len(items)
                await self._bus.tell(Arrived(self._number, items))
        except FrameTooLargeError:
            await self._bus.tell(TooLarge(self._number))
        except LinkBrokenError as exc:
            self._leave(exc.reason)
        except (LinkClosedError, ActorStoppedError) as exc:
            self._leave(str(exc))

    def _leave(self, why: str) -> None:
        self._why = why
        if not self._outbox.is_leaving:
            self._outbox.is_leaving = True
            self.me.try_tell(Nudge.LEAVE)
