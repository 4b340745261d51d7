"""The end of a delegation that takes the object: a component of this runtime (SYN-26, M-54)."""

from functools import partial
from typing import Final, assert_never, final

import attrs
import trio

from actors.runtime.sync.context import Spawn, SyncContext
from actors.runtime.sync.messages import TakeOverAnswered, Tell
from actors.runtime.sync.reporter.transfers import ObjectTransfers
from fsm.engine import Step
from fsm.sync import delegation as terms
from fsm.sync.delegation import Answered, TakeOverCore
from specs.addresses.address import address_allocation, runtime_of
from specs.bodies.body import HandOver, MoveAddress
from specs.bodies.sync import DataObject
from specs.bodies.word import AddressMethod
from specs.errors import BadMessageError
from specs.limits.sync import HAND_OVER_PART, HAND_OVERS
from specs.message import Message, MessageType, reason_in
from specs.reply_code import Code
from transports.bodies import write_body

__all__ = ["TakeOvers", "heard"]

_ANOTHER: Final = "another hand-over of it is under way here"
_OUT_OF_ORDER: Final = "a part of the hand-over is missing"
_CROWD: Final = "too many objects are being handed over to this runtime"
_NAMED: Final = 4 * HAND_OVER_PART
"""Observers of the old runtime that the node is told of: the others keep the path alive."""


@final
@attrs.define
class _Taking:
    """An object that comes here, part by part.

    Attributes:
        request: The last part; to be answered when it is decided.
        core: None: parts are missing.
    """

    number: int
    thing: DataObject
    public: bool
    last_id: int
    parts: int = 1
    watchers: tuple[terms.Watcher, ...] = ()
    allowed: tuple[str, ...] = ()
    expelled: tuple[str, ...] = ()
    request: Message | None = None
    core: TakeOverCore | None = None


@final
class TakeOvers:
    """What is being handed over to this runtime, by object."""

    def __init__(
        self, context: SyncContext, spawn: Spawn, tell: Tell, reported: ObjectTransfers
    ) -> None:
        self._context = context
        self._spawn = spawn
        self._tell = tell
        self._reported = reported
        self._coming: dict[tuple[str, str], _Taking] = {}
        self._numbers: dict[str, int] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing is being taken."""
        return not self.takers

    @property
    def takers(self) -> set[str]:
        """Who takes something, once the node has answered."""
        return {to for (_, to), one in self._coming.items() if one.core is not None}

    def is_taking(self, url: str) -> bool:
        """Say whether the node is being asked for an object."""
        return any(of == url and one.core is not None for (of, _), one in self._coming.items())

    def number_of(self, url: str) -> int:
        """Return by which attempt an object came here; 0: it did not."""
        return self._numbers.get(url, 0)

    async def take(self, request: Message, part: HandOver) -> None:
        """Take one part; the last is answered when the node has decided.

        Raises:
            BadMessageError: It does not fit to what came before.
        """
        key = part.resource, request.from_
        reported = self._reported.cores.find(part.resource)
        if reported is not None or self.is_taking(part.resource):
            raise BadMessageError(_ANOTHER, Code.CONFLICT)
        coming = self._begun(part, key)
        coming.watchers += tuple(
            terms.Watcher(one.observer, one.manager, one.lease) for one in part.observers
        )
        coming.allowed += part.allowed
        coming.expelled += part.expelled
        if part.part < part.parts:
            await self._context.answer(request, Code.OK)
            return
        coming.request = request
        coming.core = TakeOverCore(part.resource, request.from_, part.number)
        await self._reported.listeners.expect(part.resource)
        await self._feed(key, terms.Begun())

    def _begun(self, part: HandOver, key: tuple[str, str]) -> _Taking:
        """Return what this part belongs to; the first one begins anew."""
        if part.part == 1:
            if part.value is None or part.value.url != part.resource:
                raise BadMessageError("the first part has the object")
            if key not in self._coming:
                self._make_room()
            last = part.last_id or 0
            self._coming[key] = _Taking(part.number, part.value, bool(part.public), last)
            return self._coming[key]
        coming = self._coming.get(key)
        if coming is None or (coming.number, coming.parts + 1) != (part.number, part.part):
            raise BadMessageError(_OUT_OF_ORDER, Code.CONFLICT)
        coming.parts += 1
        return coming

    def _make_room(self) -> None:
        """Forget the oldest whose last part has not come: perhaps it never does.

        Raises:
            BadMessageError: The node is being asked for all of them.
        """
        if len(self._coming) >= HAND_OVERS:
            oldest = next((key for key, one in self._coming.items() if one.core is None), None)
            if oldest is None:
                raise BadMessageError(_CROWD, Code.UNAVAILABLE)
            del self._coming[oldest]

    def leave(self, component: str) -> None:
        """Forget what comes to a component that is gone, but for what the node is asked for."""
        for key in [key for key, one in self._coming.items() if one.core is None]:
            if key[1] == component:
                del self._coming[key]

    async def answered(self, report: TakeOverAnswered) -> bool:
        """Take what the node has said; return whether the object is reported here now."""
        key = report.url, report.to
        coming = self._coming.get(key)
        if coming is None or coming.core is None or coming.core.number != report.number:
            return False
        await self._feed(key, terms.Answered(report.code, report.why))
        return coming.core.may_write

    async def _feed(self, key: tuple[str, str], happened: terms.DelegationInput) -> None:
        coming = self._coming[key]
        if coming.core is None:
            return
        for effect in coming.core.feed(happened):
            await self._perform(coming, coming.core, effect)

    async def _perform(
        self, coming: _Taking, core: TakeOverCore, effect: terms.TakeOverEffect
    ) -> None:
        match effect:
            case Step():
                self._context.step(effect)
            case terms.AddressTaken(pause):
                self._spawn(partial(self._ask_node, coming, core, pause))
            case terms.TookOver() | terms.Dropped():
                del self._coming[core.url, core.to]
                await self._end(coming, core, effect)
            case _:
                assert_never(effect)

    async def _end(
        self, coming: _Taking, core: TakeOverCore, effect: terms.TookOver | terms.Dropped
    ) -> None:
        request = coming.request
        match effect:
            case terms.TookOver():
                runtime = self._context.runtime
                thing = attrs.evolve(coming.thing, reporter=core.to, runtime=runtime)
                handed = terms.HandedOver(
                    thing, coming.watchers, coming.allowed, coming.public, coming.expelled
                )
                self._note(core)
                self._context.go_on(core.url, coming.last_id)
                await self._reported.take_over(handed, core.to)
                if request is not None:
                    await self._context.answer(request, Code.OK)
            case terms.Dropped(code, why):
                await self._reported.listeners.expect_no_more(core.url)
                if request is not None:
                    await self._context.refuse(request, code, why)
            case _:
                assert_never(effect)

    def _note(self, core: TakeOverCore) -> None:
        kept = {url: k for url, k in self._numbers.items() if self._reported.cores.find(url)}
        self._numbers = {**kept, core.url: core.number}

    async def _ask_node(self, coming: _Taking, core: TakeOverCore, pause: float) -> None:
        await trio.sleep(pause)
        old = coming.thing.runtime
        there = [one.observer for one in coming.watchers if runtime_of(one.manager) == old]
        body = MoveAddress(
            core.url,
            AddressMethod.TAKE.value,
            core.number,
            core.to,
            tuple(there[:_NAMED]) or None,
        )
        to = address_allocation(self._context.domain)
        asked = self._context.request(MessageType.UPDATE, to, write_body(body))
        answer = heard(await self._context.bus.request(asked))
        await self._tell(TakeOverAnswered(core.url, core.to, core.number, answer.code, answer.why))

    def let_go(self) -> None:
        """End everything without a word: the runtime leaves."""
        for coming in self._coming.values():
            for effect in () if coming.core is None else coming.core.feed(terms.Left()):
                if isinstance(effect, Step):
                    self._context.step(effect)
        self._coming.clear()


def heard(answer: Message, *, is_here: bool = False) -> Answered:
    """Return what an answer says."""
    return Answered(answer.code, reason_in(answer), is_here)
