"""How objects that were stored are there again, and those who observe them hear of it (SYN-25).

The node gives a runtime back the addresses that it had; it may know nothing of them any more,
nor of the observers' paths. So each observer's sync manager is told that the object is back:
it sets its path again, subscribes again, and gets the object as it is now.
"""

from typing import final

import structlog
import trio

from actors.runtime.sync.context import SyncContext
from actors.runtime.sync.messages import StillObserved, Tell
from actors.runtime.sync.presence.registration import SUBSCRIPTION, ObjectPlaces
from actors.runtime.sync.reporter.stored import Revived
from fsm.registry.changes_io import LocalLive
from specs.bodies.sync import ObjectName
from specs.limits.protocol import READ_PAUSE
from specs.limits.sync import BACK_AT_ONCE, BACK_TRIES
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS
from transports.bodies import write_body

__all__ = ["ObjectsBack"]

_log = structlog.get_logger("actors.runtime")


@final
class ObjectsBack:
    """Sets up anew what stored objects have outside of their reporter's runtime."""

    def __init__(self, context: SyncContext, places: ObjectPlaces, tell: Tell) -> None:
        self._context = context
        self._places = places
        self._tell = tell
        self._room = trio.CapacityLimiter(BACK_AT_ONCE)

    async def announce(self, back: Revived) -> None:
        """Have an object found and observed again; as often as it takes."""
        url = back.shown.url
        if not await self._places.renewals.renew(url):
            return
        refusal = await self._places.register(back.shown)
        if refusal is not None:
            _log.warning("stored object is not registered", url=url, why=refusal.why)
        await self._context.registry.tell(LocalLive(url))
        managers = back.managers - {self._context.bus.url}
        async with trio.open_nursery() as nursery:
            for manager in sorted(managers):
                nursery.start_soon(self._call, url, manager)

    async def _call(self, url: str, manager: str) -> None:
        """Tell one sync manager; who it says does not observe any more, does not."""
        async with self._room:
            pause = READ_PAUSE
            for _ in range(BACK_TRIES):
                answer = await self._context.bus.request(self._word(url, manager))
                if answer.code <= LAST_SUCCESS:
                    there = answer.body.get("value")
                    observers = frozenset(map(str, there if isinstance(there, list) else ()))
                    await self._tell(StillObserved(url, manager, observers))
                    return
                await trio.sleep(pause)
                pause *= 2

    def _word(self, url: str, manager: str) -> Message:
        body = write_body(ObjectName(url))
        sender = f"{url}/{SUBSCRIPTION}"
        return self._context.request(MessageType.SUBSCRIBE, manager, body, sender)
