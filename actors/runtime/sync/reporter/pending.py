"""Who asked to observe objects reported here, and is not answered yet (M-38, M-39)."""

from functools import partial
from typing import assert_never, final

import trio

from actors.runtime.sync.context import Spawn, SyncContext
from actors.runtime.sync.messages import Decided, Tell
from actors.runtime.sync.reporter.answers import decision_in, silence
from fsm.sync import reporter_io as core
from specs.bodies.object import Forward, Wrapped
from specs.bodies.sync import DataObject
from specs.jsonvalue import JsonObject
from specs.limits.sync import MAX_REPEATED_ASKS
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.bodies import write_body

__all__ = ["PendingSubscriptions"]


@final
class PendingSubscriptions:
    """Keeps the requests, asks reporters about them, and answers them all."""

    def __init__(self, context: SyncContext, spawn: Spawn, tell: Tell) -> None:
        self._context = context
        self._spawn = spawn
        self._tell = tell
        self._waiting: dict[tuple[str, str], list[Message]] = {}

    def add(self, url: str, observer: str, request: Message) -> bool:
        """Keep a request until it is decided on; False: too many wait for that already."""
        waiting = self._waiting.setdefault((url, observer), [])
        if len(waiting) >= MAX_REPEATED_ASKS:
            return False
        waiting.append(request)
        return True

    def ask(self, of: DataObject, asked: core.ReporterAsked) -> None:
        """Have the reporter of an object asked; `Decided` tells what it said."""
        self._spawn(partial(self._ask, of, asked, self._question(of.url, asked.observer)))

    def _question(self, url: str, observer: str) -> JsonObject:
        """Write what the reporter is asked, as if the observer had asked it itself (M-39)."""
        asked = self._waiting[url, observer][0]
        return write_body(Forward(Wrapped(asked.id, MessageType.SUBSCRIBE, observer, url)))

    async def _ask(self, of: DataObject, asked: core.ReporterAsked, question: JsonObject) -> None:
        bus, decision = self._context.bus, silence(asked)
        # It has its id when it leaves: which of two tasks comes first is chance (I-T7).
        request = self._context.request(MessageType.FORWARD, of.reporter, question, of.url)
        with trio.move_on_after(asked.patience):
            decision = decision_in(asked, await bus.request(request))
        await self._tell(Decided(of.url, decision))

    async def answer(self, url: str, effect: core.Granted | core.Renewed | core.Denied) -> None:
        """Answer all that an observer asked."""
        for request in self._waiting.pop((url, effect.observer), ()):
            match effect:
                case core.Granted():
                    value, told = write_body(effect.snapshot), _lease(effect.lease)
                    if effect.is_renewal and "version" in request.body:
                        told |= {"renewed": True}
                    await self._context.answer(request, Code.OK, value=value, **told)
                case core.Renewed():
                    told = {"renewed": True, **_lease(effect.lease)}
                    await self._context.answer(request, Code.OK, **told)
                case core.Denied():
                    await self._context.refuse(request, effect.code, effect.why)
                case _:
                    assert_never(effect)


def _lease(lease: int | None) -> JsonObject:
    return {} if lease is None else {"lease": lease}
