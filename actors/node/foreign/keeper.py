"""Who keeps the sandbox of a foreign domain's stub for the table of foreign domains."""

from contextlib import suppress
from typing import final

from typing_extensions import override

from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.actor import ActorRef
from actors.pipe.keeper import Handed, KeeperTools
from actors.pipe.plan import RoomPlan
from actors.pipe.stub_keeper import StubKeeper
from fsm.catalogue.foreign_io import (
    OfRoom,
    RoomFull,
    RoomGone,
    RoomKept,
    RoomLost,
    RoomMoved,
    RoomReady,
    RoomSpoke,
)
from fsm.engine import Step
from fsm.machines.stub_connection import State
from fsm.session.node_session_io import Parcel
from specs.message import Message

__all__ = ["ForeignKeeper"]


@final
class ForeignKeeper(StubKeeper[Parcel]):
    """Tells the owner of the table what comes of one sandbox; takes what is for its stub.

    Args:
        plan: What is in it.
        tools: What it is kept with.
        owner: Is told.
    """

    def __init__(self, plan: RoomPlan, tools: KeeperTools, owner: ActorRef[OfRoom]) -> None:
        super().__init__(plan, tools)
        self._owner = owner

    @override
    async def handle(self, message: Parcel) -> None:
        match self.hand(message.line):
            case Handed.FULL | Handed.TOO_LARGE:
                await self._tell(RoomFull(self.plan.url, message.message))
            case Handed.GONE:
                await self._tell(RoomLost(self.plan.url, message.message))
            case Handed.TAKEN:
                pass

    @override
    async def ready(self) -> None:
        await self._tell(RoomReady(self.plan.url))

    @override
    async def posted(self, message: Message) -> None:
        await self._tell(RoomSpoke(self.plan.url, message))

    @override
    async def asked(self, message: Message) -> None:
        # Its answer comes as a parcel, like any other.
        await self._tell(RoomSpoke(self.plan.url, message))

    @override
    async def lost(self, message: Message) -> None:
        await self._tell(RoomFull(self.plan.url, message))

    @override
    async def moved(self, step: Step) -> None:
        await self._tell(RoomMoved(self.plan.url, State(step.new), step.why))

    @override
    async def kept(self, token: str) -> None:
        await self._tell(RoomKept(self.plan.url, token))

    @override
    def ended(self, why: str) -> None:
        self.finish()

    @override
    async def stop(self) -> None:
        self.rest()
        await self._tell(RoomGone(self.plan.url, self.why))

    async def _tell(self, news: OfRoom) -> None:
        # An owner that is gone wants no news.
        with suppress(ActorStoppedError):
            await self._owner.tell(news)
