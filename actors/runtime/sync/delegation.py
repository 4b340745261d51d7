"""Delegation of data objects: the sync manager's part at both ends (SYN-26, M-54, I-D1).

It hosts the cores of `fsm.sync.delegation`: `Delegations` gives objects away, `TakeOvers` takes
them. What waits for others runs in tasks; their results come back by the mailbox, so that the
tables change in its own task only.
"""

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from itertools import count
from typing import Final, TypeAlias, assert_never, final

import attrs
import trio

from actors.runtime.sync.context import Spawn, SyncContext
from actors.runtime.sync.messages import DelegationAnswered, Report, TakeOverAnswered
from actors.runtime.sync.registration import SUBSCRIPTION
from actors.runtime.sync.reporter.reporter import ObjectTransfers
from fsm.engine import Step
from fsm.sync import delegation as terms
from fsm.sync.delegation import Answered, DelegationCore, HandedOver, TakeOverCore
from fsm.sync.reporter_io import Held, Released
from specs.addresses.address import (
    RUNTIME_SCHEME,
    address_allocation,
    domain_of,
    runtime_of,
    scheme_of,
    subscription_manager,
)
from specs.bodies.link import Path
from specs.bodies.object import (
    Delegate,
    ForwardDelegation,
    HandOver,
    MoveAddress,
    Watching,
    Wrapped,
)
from specs.bodies.sync import DataObject
from specs.bodies.word import AddressMethod
from specs.errors import BadMessageError
from specs.limits.protocol import REPLY_TIMEOUT
from specs.limits.sync import DELEGATIONS_KNOWN, HAND_OVER_PART, HAND_OVER_PARTS, HAND_OVERS
from specs.message import Message, MessageType, reason_in
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import write_body

__all__ = ["Delegations", "HandOvers", "TakeOvers", "heard", "parts_of"]

_ANOTHER: Final = "another delegation of it is open here"
_OUT_OF_ORDER: Final = "a part of the hand-over is missing"
_CROWD: Final = "too many objects are being handed over to this runtime"
_NAMED: Final = 4 * HAND_OVER_PART
"""Observers of the old runtime that the node is informed of: the others keep the path alive."""


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
    """The objects that are being handed over to this runtime."""

    def __init__(
        self, context: SyncContext, spawn: Spawn, report: Report, reported: ObjectTransfers
    ) -> None:
        self._context = context
        self._spawn = spawn
        self._report = report
        self._reported = reported
        self._coming: dict[tuple[str, str], _Taking] = {}
        self._numbers: dict[str, int] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing is being taken."""
        return not self.takers

    @property
    def takers(self) -> set[str]:
        """The hyperties that take an object over, once the node has answered."""
        return {to for (_, to), one in self._coming.items() if one.core is not None}

    def is_taking(self, url: str) -> bool:
        """Return whether the node is being asked for an object."""
        return any(of == url and one.core is not None for (of, _), one in self._coming.items())

    def number_of(self, url: str) -> int:
        """Return by which attempt an object came here; 0: it did not."""
        return self._numbers.get(url, 0)

    async def take(self, request: Message, part: HandOver) -> None:
        """Take one part; the last is answered when the node has decided.

        Args:
            request: The request.
            part: Part of the object's state.

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
        await self._report(
            TakeOverAnswered(core.url, core.to, core.number, answer.code, answer.why)
        )

    def let_go(self) -> None:
        """End everything without a word: the runtime leaves."""
        for coming in self._coming.values():
            for effect in () if coming.core is None else coming.core.feed(terms.Left()):
                if isinstance(effect, Step):
                    self._context.step(effect)
        self._coming.clear()


def heard(answer: Message, *, is_here: bool = False) -> Answered:
    """Return what an answer says.

    Args:
        answer: The answer.
        is_here: Whether the answering component is local.
    """
    return Answered(answer.code, reason_in(answer), is_here)


Work: TypeAlias = Callable[[], Awaitable[terms.Answered]]
"""Sends a request and returns the answer."""

_SILENCE: Final = terms.Answered(Code.TIMEOUT, "no answer came in time")
_SIGN_OF_LIFE: Final = REPLY_TIMEOUT / 3
_MOVING: Final = "the object is being handed over; try again"
_MOST: Final = HAND_OVER_PART * (HAND_OVER_PARTS - 1)


_NOTHING_HANDED: Final = Answered(Code.INTERNAL, "nothing was handed over")


@final
class HandOvers:
    """Sends the requests of a delegation, and reports the answers to the core that decides."""

    def __init__(self, context: SyncContext) -> None:
        self._context = context

    async def ask(self, core: DelegationCore, request: Message) -> Answered:
        """Ask the other hyperty, as if the reporter had asked it itself.

        Args:
            core: The core.
            request: The request.
        """
        asked = Wrapped(request.id, request.type, request.from_, request.to, request.body)
        body = write_body(ForwardDelegation(asked))
        question = self._context.request(
            MessageType.FORWARD, core.to, body, core.url, request.identity
        )
        answer = await self._context.bus.request(question)
        value = answer.body.get("value")
        lives_in = value.get("runtime") if isinstance(value, dict) else None
        return heard(answer, is_here=lives_in == self._context.runtime)

    async def offer(self, core: DelegationCore) -> Answered:
        """Notify the node of the hyperty that may take the address."""
        body = MoveAddress(core.url, AddressMethod.OFFER.value, core.number, core.to)
        return await self._ask_node(body)

    async def withdraw(self, core: DelegationCore) -> Answered:
        """Take the offer back, and hear whose the address is."""
        return await self._ask_node(_withdrawal(core))

    async def post_withdrawal(self, core: DelegationCore) -> None:
        """Take the offer back, and wait for no answer."""
        await self._context.bus.post(self._to_node(_withdrawal(core)))

    async def claim(self, core: DelegationCore) -> Answered:
        """Claim the address at a node that has forgotten whose it is (C-44)."""
        to = subscription_manager(self._context.domain)
        body = write_body(Path((core.url,), self._context.runtime))
        claim = self._context.request(MessageType.SUBSCRIBE, to, body)
        return heard(await self._context.bus.request(claim))

    async def hand(self, core: DelegationCore, handed: HandedOver) -> Answered:
        """Give the object to the other runtime, part by part; the last answer counts.

        Args:
            core: The core.
            handed: The handed over object.
        """
        last = _NOTHING_HANDED
        for part in parts_of(handed, core.number, self._context.last_id(core.url)):
            body = write_body(part)
            # As the sync manager: the answer must find it when the object is elsewhere already.
            given = self._context.request(MessageType.CREATE, core.to, body)
            last = heard(await self._context.bus.request(given))
            if last.code > LAST_SUCCESS:
                break
        return last

    async def _ask_node(self, body: MoveAddress) -> Answered:
        return heard(await self._context.bus.request(self._to_node(body)))

    def _to_node(self, body: MoveAddress) -> Message:
        to = address_allocation(self._context.domain)
        return self._context.request(MessageType.UPDATE, to, write_body(body))


def _withdrawal(core: DelegationCore) -> MoveAddress:
    return MoveAddress(core.url, AddressMethod.WITHDRAW.value, core.number)


def parts_of(handed: HandedOver, number: int, last_id: int) -> Iterator[HandOver]:
    """Split a hand-over into messages of a bearable size; the first holds the object.

    Args:
        handed: All that is known of it.
        number: Of the attempt.
        last_id: Of the object's messages before these.
    """
    url, most = handed.thing.url, HAND_OVER_PART
    watching = [Watching(one.observer, one.manager, one.lease) for one in handed.watchers]
    allowed, expelled = handed.authorised, handed.expelled
    parts = 1 + max(-(-len(each) // most) for each in (watching, allowed, expelled))
    public, last = handed.public or None, last_id + parts
    yield HandOver(url, number, 1, parts, handed.thing, public=public, last_id=last)
    for part, start in zip(count(2), range(0, most * (parts - 1), most), strict=False):
        some = slice(start, start + most)
        lists = tuple(watching[some]), allowed[some], expelled[some]
        yield HandOver(url, number, part, parts, None, *lists)


@final
@attrs.frozen
class _Giving:
    """A hand-over that was begun here, and the request to be answered."""

    core: DelegationCore
    request: Message


@final
class Delegations:
    """The hand-overs of one runtime, of both kinds.

    Attributes:
        taking: What is handed over to this runtime.
    """

    def __init__(
        self, context: SyncContext, spawn: Spawn, report: Report, reported: ObjectTransfers
    ) -> None:
        self._context = context
        self._spawn = spawn
        self._report = report
        self._reported = reported
        self._work = HandOvers(context)
        self._giving: dict[str, _Giving] = {}
        self._numbers: dict[str, int] = {}
        self._given: dict[str, None] = {}
        self.taking: Final = TakeOvers(context, spawn, report, reported)

    @property
    def is_empty(self) -> bool:
        """Whether no object is being handed over."""
        return not self._giving and self.taking.is_empty

    @property
    def takers(self) -> set[str]:
        """The hyperties that an object is being handed over to."""
        return self.taking.takers

    def is_moving(self, address: str) -> bool:
        """Return whether an address is of an object that is being handed over."""
        url = address.removesuffix(f"/{SUBSCRIPTION}")
        return url in self._given or self.taking.is_taking(url)

    async def put_off(self, request: Message) -> None:
        """Answer a request to an object that is being handed over."""
        await self._context.refuse(request, Code.UNAVAILABLE, _MOVING)

    # --- the end that gives -----------------------------------------------------------------

    async def delegate(self, request: Message, body: Delegate) -> None:
        """Hand an object over for its reporter (M-54).

        Args:
            request: The request.
            body: Body of the request.

        Raises:
            BadMessageError: There is no such object, or the request is not its reporter's.
        """
        url, to = body.resource, body.delegate
        reported = self._reported.cores.find(url)
        if reported is None:
            raise BadMessageError("no such object", Code.NOT_FOUND)
        if reported.snapshot.reporter != request.from_:
            raise BadMessageError("only the reporter hands it over", Code.FORBIDDEN)
        self._check(url, to)
        if to == request.from_:
            await self._context.answer(request, Code.OK)
            return
        self._numbers = {
            one: k for one, k in self._numbers.items() if self._reported.cores.find(one)
        }
        # Above all ids of the object's messages, that rise over a restart; the rest does not.
        number = self._numbers[url] = 1 + max(
            self._numbers.get(url, 0), self.taking.number_of(url), self._context.last_id(url)
        )
        self._giving[url] = _Giving(DelegationCore(url, to, number), request)
        self._spawn(partial(self._say_trying, url, number, request))
        await self._feed(url, terms.Begun())

    async def _say_trying(self, url: str, number: int, request: Message) -> None:
        """Keep the reporter's request open as long as the delegation lasts."""
        giving: _Giving | None = self._giving[url]
        while giving is not None and giving.core.number == number:
            await self._context.answer(request, Code.TRYING)
            await trio.sleep(_SIGN_OF_LIFE)
            giving = self._giving.get(url)

    def _check(self, url: str, to: str) -> None:
        reported = self._reported.cores.find(url)
        if url in self._giving:
            raise BadMessageError("it is being handed over already", Code.CONFLICT)
        if scheme_of(to) == RUNTIME_SCHEME:
            raise BadMessageError("a part of a runtime reports nothing for others", Code.FORBIDDEN)
        if domain_of(to) != self._context.domain:
            raise BadMessageError("an object does not leave its domain", Code.FORBIDDEN)
        if reported is not None and len(reported.observers) > _MOST:
            raise BadMessageError("it has too many observers to be handed over", Code.TOO_LARGE)

    async def answered(self, report: DelegationAnswered) -> None:
        """Take what a task has heard."""
        giving = self._giving.get(report.url)
        if giving is None or giving.core.number != report.number:
            return
        reported = self._reported.cores.find(report.url)
        is_gone = reported is None and giving.core.may_write
        heard = terms.Answered(report.code, report.why, is_here=report.is_here)
        await self._feed(report.url, terms.Left() if is_gone else heard)

    async def _feed(self, url: str, happened: terms.DelegationInput) -> None:
        giving = self._giving[url]
        for effect in giving.core.feed(happened):
            await self._perform(giving, effect)

    async def _perform(self, giving: _Giving, effect: terms.DelegationEffect) -> None:
        core, url = giving.core, giving.core.url
        match effect:
            case Step():
                self._context.step(effect)
            case terms.Kept() | terms.GivenAway() | terms.Passed():
                await self._end(giving, effect)
            case terms.AddressOffered():
                await self._reported.cores.feed(url, Held())
                self._do(core, partial(self._work.offer, core))
            case terms.OfferDropped():
                await self._work.post_withdrawal(core)
            case terms.ObjectHanded():
                self._hand(core)
            case terms.OtherAsked():
                self._do(core, partial(self._work.ask, core, giving.request))
            case terms.AddressWithdrawn() | terms.AddressClaimed():
                self._doubt(core, effect)
            case _:
                assert_never(effect)

    def _hand(self, core: DelegationCore) -> None:
        reported = self._reported.cores.find(core.url)
        if reported is not None:
            self._do(core, partial(self._work.hand, core, self._reported.handed(reported)))

    def _doubt(
        self, core: DelegationCore, effect: terms.AddressWithdrawn | terms.AddressClaimed
    ) -> None:
        match effect:
            case terms.AddressWithdrawn(pause):
                self._do(core, partial(self._work.withdraw, core), pause)
            case terms.AddressClaimed():
                self._do(core, partial(self._work.claim, core))
            case _:
                assert_never(effect)

    def _do(self, core: DelegationCore, work: Work, pause: float = 0.0) -> None:
        self._spawn(partial(self._run, core, work, pause, core.patience))

    async def _run(self, core: DelegationCore, work: Work, pause: float, patience: float) -> None:
        await trio.sleep(pause)
        heard = _SILENCE
        with trio.move_on_after(patience):
            heard = await work()
        await self._report(
            DelegationAnswered(core.url, core.number, heard.code, heard.why, heard.is_here)
        )

    async def _end(
        self, giving: _Giving, effect: terms.Kept | terms.GivenAway | terms.Passed
    ) -> None:
        """Report the outcome to the reporter, when all is in place."""
        url, request = giving.core.url, giving.request
        del self._giving[url]
        match effect:
            case terms.Kept(code, why):
                await self._reported.cores.feed(url, Released())
                if giving.core.is_forgotten:
                    self._reported.renew(url)
                await self._context.refuse(request, code, why)
            case terms.GivenAway(code, why):
                self._note_given(url)
                await self._reported.give_away(url)
                if code <= LAST_SUCCESS:
                    await self._context.answer(request, Code.OK)
                else:
                    await self._context.refuse(request, code, why)
            case terms.Passed():
                await self._reported.pass_on(url, giving.core.to)
                await self._context.answer(request, Code.OK)
            case _:
                assert_never(effect)

    def _note_given(self, url: str) -> None:
        self._given[url] = None
        if len(self._given) > DELEGATIONS_KNOWN:
            del self._given[next(iter(self._given))]

    # --- the end that takes -----------------------------------------------------------------

    async def taken(self, report: TakeOverAnswered) -> None:
        """Take the node's answer to the end that takes an object."""
        url = report.url
        if await self.taking.answered(report):
            self._given.pop(url, None)

    def leave(self, component: str) -> None:
        """Forget what has only begun to come to a component that is gone."""
        self.taking.leave(component)

    def let_go(self) -> None:
        """End everything without a word: the runtime leaves."""
        for giving in tuple(self._giving.values()):
            for effect in giving.core.feed(terms.Left()):
                if isinstance(effect, Step):
                    self._context.step(effect)
        self._giving.clear()
        self.taking.let_go()
