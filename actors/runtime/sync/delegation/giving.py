"""What the end that gives an object says to others: the new reporter, and the node (M-54)."""

from collections.abc import Iterator
from itertools import count
from typing import Final, final

from actors.runtime.sync.context import SyncContext
from fsm.sync.delegation import DelegationCore
from fsm.sync.delegation_io import Answered, HandedOver
from specs.addresses.address import address_allocation, subscription_manager
from specs.bodies.body import HandOver, MoveAddress, Path, Watching
from specs.bodies.object import Forward, Wrapped
from specs.bodies.word import AddressWish
from specs.limits.sync import HAND_OVER_PART
from specs.message import Message, MessageType, reason_in
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import write_body

__all__ = ["HandOvers", "heard", "parts_of"]

_NOTHING_HANDED: Final = Answered(Code.INTERNAL, "nothing was handed over")


@final
class HandOvers:
    """Asks, and says what was answered; whoever asks decides what it means."""

    def __init__(self, context: SyncContext) -> None:
        self._context = context

    async def ask(self, core: DelegationCore, request: Message) -> Answered:
        """Ask the other hyperty, as if the reporter had asked it itself."""
        asked = Wrapped(request.id, request.type, request.from_, request.to, request.body)
        body = write_body(Forward(asked))
        question = self._context.request(MessageType.FORWARD, core.to, body, core.url)
        answer = await self._context.bus.request(question)
        value = answer.body.get("value")
        lives_in = value.get("runtime") if isinstance(value, dict) else None
        return heard(answer, is_here=lives_in == self._context.runtime)

    async def offer(self, core: DelegationCore) -> Answered:
        """Tell the node who may take the address."""
        wish = MoveAddress(core.url, AddressWish.OFFER.value, core.number, core.to)
        return await self._ask_node(wish)

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
        """Give the object to the other runtime, part by part; the last answer counts."""
        last = _NOTHING_HANDED
        for part in parts_of(handed, core.number, self._context.last_id(core.url)):
            body = write_body(part)
            # As the sync manager: the answer must find it when the object is elsewhere already.
            given = self._context.request(MessageType.CREATE, core.to, body)
            last = heard(await self._context.bus.request(given))
            if last.code > LAST_SUCCESS:
                break
        return last

    async def _ask_node(self, wish: MoveAddress) -> Answered:
        return heard(await self._context.bus.request(self._to_node(wish)))

    def _to_node(self, wish: MoveAddress) -> Message:
        to = address_allocation(self._context.domain)
        return self._context.request(MessageType.UPDATE, to, write_body(wish))


def _withdrawal(core: DelegationCore) -> MoveAddress:
    return MoveAddress(core.url, AddressWish.WITHDRAW.value, core.number)


def heard(answer: Message, *, is_here: bool = False) -> Answered:
    """Return what an answer says."""
    return Answered(answer.code, reason_in(answer), is_here)


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
