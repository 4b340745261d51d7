"""Address allocation, R/address-allocation: asks the own node for addresses (ALC-01, ALC-03)."""

from typing import TypeAlias, assert_never, final

import attrs
from typing_extensions import override

from actors.kit.actor import Actor, Reply
from actors.kit.delivery import Delivery
from actors.kit.ids import IdSource
from actors.runtime.mini_bus import MiniBusPort
from specs.address import address_allocation
from specs.body import Allocate, Allocated, AllocationWish, Free
from specs.errors import BadMessageError, ProtoflyError
from specs.jsonvalue import JsonObject
from specs.message import Message, MessageType, refuse
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import read_body, write_body

__all__ = [
    "AddressAllocation",
    "AddressesWanted",
    "AllocationError",
    "AllocationMessage",
    "FreeWanted",
]


@final
class AllocationError(ProtoflyError):
    """The node gave no addresses, or did not take them back.

    Attributes:
        code: What it answered, or what was answered for it.
        reason: Its own words.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"no address: the node answered {code} {reason}".rstrip())
        self.code = code
        self.reason = reason


@final
@attrs.frozen(slots=True)
class AddressesWanted:
    """Allocate addresses; fails with `AllocationError`.

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


AllocationMessage: TypeAlias = AddressesWanted | FreeWanted | Delivery


@final
class AddressAllocation(Actor[AllocationMessage]):
    """The only part of a runtime that talks to its node about addresses."""

    def __init__(self, domain: str, port: MiniBusPort, ids: IdSource) -> None:
        self._node = address_allocation(domain)
        self._port = port
        self._ids = ids

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
                assert_never(message)

    async def _allocate(self, wanted: AddressesWanted) -> None:
        body = write_body(Allocate(wanted.scheme, AllocationWish(wanted.number)))
        answer = await self._ask(MessageType.CREATE, body)
        try:
            allocated = _allocated(answer)
        except (AllocationError, BadMessageError) as error:
            wanted.reply.fail(error)
            return
        wanted.reply.send(allocated)

    async def _free(self, wanted: FreeWanted) -> None:
        body = write_body(Free(children_resources=wanted.addresses))
        answer = await self._ask(MessageType.DELETE, body)
        if answer.code > LAST_SUCCESS:
            wanted.reply.fail(_refused(answer))
        else:
            wanted.reply.send(None)

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
    told = attrs.evolve(answer, body=value if isinstance(value, dict) else {})
    return read_body(told, Allocated).allocated


def _refused(answer: Message) -> AllocationError:
    why = answer.body.get("description")
    return AllocationError(answer.code, why if isinstance(why, str) else "")
