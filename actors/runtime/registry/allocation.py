"""Address allocation, R/address-allocation: addresses of the own node (ALC-01..ALC-03)."""

from typing import TypeAlias, assert_never, final

import attrs
import trio
from typing_extensions import override

from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Actor, Reply
from actors.kit.supervision.delivery import Delivery
from actors.runtime.bus.mini_bus import MiniBusPort
from fsm.registry.addresses import AddressReuse, Purpose
from specs.addresses.address import address_allocation, subscription_manager
from specs.bodies.link import Path
from specs.bodies.registry import Allocate, Allocated, AllocationRequest, Free
from specs.errors import BadMessageError, ProtoflyError
from specs.jsonvalue import JsonObject
from specs.limits.protocol import MAX_LIST, RENEW_TIMEOUT, RETRY_AFTER
from specs.message import Message, MessageType, reason_in, refuse
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import read_body, write_body

__all__ = [
    "AddressAllocation",
    "AddressGiven",
    "AddressKept",
    "AddressWanted",
    "AddressesWanted",
    "AllocationError",
    "AllocationMessage",
    "ClaimsWanted",
    "FreeWanted",
    "NotKeptError",
]


@final
class AllocationError(ProtoflyError, public=True):
    """The node allocated no addresses, or did not take them back.

    Attributes:
        code: Reply code of the node; or of this runtime, such as 503 if the node cannot be reached.
        reason: Reason in the answer; may be empty.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"no address: the node answered {code} {reason}".rstrip())
        self.code = code
        self.reason = reason


@final
class NotKeptError(ProtoflyError):
    """A profile names an address that is not kept for its hyperty; the node was not asked.

    Attributes:
        address: The address.
    """

    def __init__(self, address: str) -> None:
        super().__init__(
            f"{address} is not found among the addresses kept for such a hyperty; "
            "deploy it without naming an address"
        )
        self.address = address


@final
@attrs.frozen(slots=True)
class AddressGiven:
    """An address for one hyperty.

    Attributes:
        is_new: Whether the node has just allocated it; else it was kept.
    """

    address: str
    is_new: bool


@final
@attrs.frozen(slots=True)
class AddressWanted:
    """Give an address for a purpose: one that is kept for it, else a new one (ALC-02).

    A new one that is no longer awaited is given back to the node.

    Fails with `AllocationError`; with `NotKeptError` if it has to be one that is not kept.

    Attributes:
        exactly: The address it has to be; None: any.
    """

    purpose: Purpose
    exactly: str | None
    reply: Reply[AddressGiven]


@final
@attrs.frozen(slots=True)
class AddressKept:
    """Keep an unused address for the next object with the same purpose."""

    address: str
    purpose: Purpose


@final
@attrs.frozen(slots=True)
class ClaimsWanted:
    """The node has forgotten this runtime: claim the addresses of its hyperties again (C-44)."""

    reply: Reply[None]


@final
@attrs.frozen(slots=True)
class AddressesWanted:
    """Allocate addresses; fails with `AllocationError`.

    Addresses that are no longer awaited are given back to the node.

    Attributes:
        scheme: Such as `hyperty` or `connection`.
    """

    scheme: str
    number: int
    reply: Reply[tuple[str, ...]]


@final
@attrs.frozen(slots=True)
class FreeWanted:
    """Give addresses back; fails with `AllocationError`. Repeated is fine (C-47)."""

    addresses: tuple[str, ...]
    reply: Reply[None]


_Keeping: TypeAlias = AddressWanted | AddressKept | ClaimsWanted

AllocationMessage: TypeAlias = AddressesWanted | FreeWanted | Delivery | _Keeping


@final
class AddressAllocation(Actor[AllocationMessage]):
    """The only part of a runtime that talks to its node about addresses."""

    def __init__(self, domain: str, port: MiniBusPort, ids: IdSource) -> None:
        self._node = address_allocation(domain)
        self._paths = subscription_manager(domain)
        self._owned: dict[str, None] = {}
        self._port = port
        self._ids = ids
        self._kept = AddressReuse()

    @override
    async def start(self) -> None:
        await self._port.add_listener(self._port.url, self.me)

    @override
    async def handle(self, message: AllocationMessage) -> None:
        match message:
            case AddressesWanted():
                self.spawn(self._allocate, message)
            case FreeWanted():
                self.spawn(self._free, message)
            case Delivery(request):
                if request.is_request:
                    why = "addresses are allocated by the node"
                    await self._port.post(refuse(request, Code.MALFORMED, why))
            case _:
                self._keep(message)

    def _keep(self, message: _Keeping) -> None:
        match message:
            case AddressWanted():
                self._give(message)
            case AddressKept(address, purpose):
                self._owned[address] = None
                self._kept.keep(address, purpose)
            case ClaimsWanted(reply):
                self.spawn(self._claim_all, reply)
            case _:
                assert_never(message)

    def _give(self, wanted: AddressWanted) -> None:
        """Give an address out at once if one is kept, and out of one hand."""
        address = wanted.exactly
        if address is None:
            address = self._kept.take_alike(wanted.purpose)
        elif not self._kept.take(address, wanted.purpose):
            wanted.reply.fail(NotKeptError(address))
            return
        if address is None:
            self.spawn(self._allocate_one, wanted)
        else:
            wanted.reply.send(AddressGiven(address, is_new=False))

    async def _allocate_one(self, wanted: AddressWanted) -> None:
        try:
            (address,) = await self._allocated(wanted.purpose.scheme, 1)
        except (AllocationError, BadMessageError) as error:
            wanted.reply.fail(error)
        else:
            if wanted.reply.is_open:
                self._owned[address] = None
                wanted.reply.send(AddressGiven(address, is_new=True))
            else:
                await self._give_back((address,))

    async def _claim_all(self, reply: Reply[None]) -> None:
        owned = tuple(self._owned)
        for first in range(0, len(owned), MAX_LIST):
            batch = owned[first : first + MAX_LIST]
            if not await self._claim(batch):
                # One of them is another's now; that is no reason to lose the others.
                for address in batch:
                    await self._claim((address,))
        reply.send(None)

    async def _claim(self, addresses: tuple[str, ...]) -> bool:
        """Claim addresses, as often as it takes to be answered; return whether they are ours."""
        pause = RETRY_AFTER
        while True:
            sender = self._port.url
            body = write_body(Path(addresses, sender))
            number = self._ids.next(sender)
            asked = Message(number, MessageType.SUBSCRIBE, sender, self._paths, body)
            answer = await self._port.request(asked)
            if answer.code not in {Code.TIMEOUT, Code.UNAVAILABLE}:
                return answer.code <= LAST_SUCCESS
            await trio.sleep(pause)
            pause = min(2 * pause, RENEW_TIMEOUT)

    async def _allocate(self, wanted: AddressesWanted) -> None:
        try:
            addresses = await self._allocated(wanted.scheme, wanted.number)
        except (AllocationError, BadMessageError) as error:
            wanted.reply.fail(error)
        else:
            if wanted.reply.is_open:
                wanted.reply.send(addresses)
            else:
                await self._give_back(addresses)

    async def _allocated(self, scheme: str, number: int) -> tuple[str, ...]:
        body = write_body(Allocate(scheme, AllocationRequest(number)))
        answer = await self._ask(MessageType.CREATE, body)
        addresses = _allocated(answer)
        if len(addresses) != number:
            raise BadMessageError(f"{len(addresses)} addresses came where {number} were asked for")
        return addresses

    async def _free(self, wanted: FreeWanted) -> None:
        self._kept.forget(wanted.addresses)
        for address in wanted.addresses:
            self._owned.pop(address, None)
        for first in range(0, len(wanted.addresses), MAX_LIST):
            answer = await self._give_back(wanted.addresses[first : first + MAX_LIST])
            if answer.code > LAST_SUCCESS:
                wanted.reply.fail(_refused(answer))
                return
        wanted.reply.send(None)

    async def _give_back(self, addresses: tuple[str, ...]) -> Message:
        return await self._ask(MessageType.DELETE, write_body(Free(children_resources=addresses)))

    async def _ask(self, kind: MessageType, body: JsonObject) -> Message:
        sender = self._port.url
        number = self._ids.next(sender)
        return await self._port.request(Message(number, kind, sender, self._node, body))


def _allocated(answer: Message) -> tuple[str, ...]:
    """Read the addresses out of an answer.

    Raises:
        AllocationError: It says no.
        BadMessageError: It says yes, but not what.
    """
    if answer.code > LAST_SUCCESS:
        raise _refused(answer)
    value = answer.body.get("value")
    answered = attrs.evolve(answer, body=value if isinstance(value, dict) else {})
    return read_body(answered, Allocated).allocated


def _refused(answer: Message) -> AllocationError:
    return AllocationError(answer.code, reason_in(answer))
