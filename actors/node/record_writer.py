"""The group commit of the domain registry: nothing leaves before it is durable (I-G3).

Everything the registry says passes here, in order. What came in while one commit ran
is the next one, so the cost of a commit is shared by all who wait.
"""

from typing import final

import attrs
from typing_extensions import override

from actors.kit.actor import Actor, ActorRef
from actors.node.bus_message import BusMessage, Emitted
from actors.node.record_file import Change, RecordFile

__all__ = ["RecordWriter", "Settle"]


@final
@attrs.frozen
class Settle:
    """Make changes durable, then let this out."""

    changes: tuple[Change, ...]
    emitted: tuple[Emitted, ...]


@final
class RecordWriter(Actor[Settle]):
    """Commits what is in its mailbox at once, a batch of it at a time."""

    def __init__(self, file: RecordFile, bus: ActorRef[BusMessage]) -> None:
        self._file = file
        self._bus = bus
        self._changes: list[Change] = []
        self._emitted: list[Emitted] = []

    @override
    async def handle(self, message: Settle) -> None:
        self._changes += message.changes
        self._emitted += message.emitted

    @override
    async def drained(self) -> None:
        changes, self._changes = self._changes, []
        emitted, self._emitted = self._emitted, []
        await self._file.commit(changes)
        for one in emitted:
            await self._bus.tell(one)
