"""Address allocation, R/address-allocation: addresses of the own node (ALC-01..ALC-03)."""

from typing import final

import attrs
import trio

from actors.kit.ids import IdSource
from actors.kit.supervision.actor import BackgroundTasks, Reply
from actors.runtime.bus.mini_bus import MiniBusPort
from fsm.registry.allocation import AddressReuse, Purpose
from specs.addresses.address import address_allocation, subscription_manager
from specs.bodies.link import Path
from specs.bodies.registry import Allocate, Allocated, AllocationRequest, Free
from specs.errors import BadMessageError, ProtoflyError
from specs.limits.protocol import MAX_LIST, RENEW_TIMEOUT, RETRY_AFTER
from specs.message import Message, MessageType, reason_in
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import read_body, write_body


@final
class AllocationError(ProtoflyError, public=True):
    """The node allocated no addresses, or did not take them back.

    Attributes:
        code: Reply code of the node; or of this runtime, such as 503 if the node cannot be reached.
        reason: Reason in the answer; may be empty.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"no address: {code} {reason}".rstrip())
        self.code = code
        self.reason = reason


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


@attrs.frozen(slots=True)
class AddressGiven:
    """An address for one hyperty.

    Attributes:
        is_new: Whether the node has just allocated it; else it was kept.
    """

    address: str
    is_new: bool


class AddressAllocation:
    """Allocates addresses at the node of the domain, and keeps unused ones for later hyperties.

    Its methods raise ActorStoppedError if the runtime has closed.
    """

    def __init__(
        self, domain: str, port: MiniBusPort, ids: IdSource, tasks: BackgroundTasks
    ) -> None:
        self._node = address_allocation(domain)
        self._paths = subscription_manager(domain)
        self._port = port
        self._ids = ids
        self._tasks = tasks
        self._owned: dict[str, None] = {}
        self._unused = AddressReuse()

    async def address_for(self, purpose: Purpose, exactly: str | None) -> AddressGiven:
        """Return an address: one that is kept for this purpose, else a new one (ALC-02).

        Args:
            purpose: What it is for.
            exactly: The kept address to return; None: any.

        If cancelled, a new address is given back to the node.

        Raises:
            AllocationError: The node allocated no address.
            BadMessageError: The answer of the node is malformed.
            NotKeptError: `exactly` is not kept for this purpose.
        """
        address = exactly
        if address is None:
            address = self._unused.take_alike(purpose)
        elif not self._unused.take(address, purpose):
            raise NotKeptError(address)
        if address is not None:
            return AddressGiven(address, is_new=False)
        (address,) = await self.allocate(purpose.scheme, 1)
        self._owned[address] = None
        return AddressGiven(address, is_new=True)

    def keep(self, address: str, purpose: Purpose) -> None:
        """Keep an unused address for the next hyperty with the same purpose."""
        self._owned[address] = None
        self._unused.keep(address, purpose)

    async def allocate(self, scheme: str, number: int) -> tuple[str, ...]:
        """Return new addresses of a scheme, such as `hyperty` or `connection`.

        If cancelled, they are given back to the node.

        Raises:
            AllocationError: The node allocated no addresses.
            BadMessageError: The answer of the node is malformed.
        """
        return await self._tasks.ask(self._allocate, scheme, number)

    async def free(self, addresses: tuple[str, ...]) -> None:
        """Give addresses back to the node. Idempotent (C-47).

        If cancelled, the node frees the others when the session ends.

        Raises:
            AllocationError: The node did not take some of them.
        """
        self._unused.forget(addresses)
        for address in addresses:
            self._owned.pop(address, None)
        answers = [
            await self._give_back(addresses[first : first + MAX_LIST])
            for first in range(0, len(addresses), MAX_LIST)
        ]
        for answer in answers:
            _check(answer)

    async def claim_all(self) -> None:
        """Claim the addresses of all hyperties again, at a node that has forgotten them (C-44)."""
        owned = tuple(self._owned)
        for first in range(0, len(owned), MAX_LIST):
            batch = owned[first : first + MAX_LIST]
            if not await self._claim(batch):
                # One of them has another owner now: claim the others one by one.
                for address in batch:
                    await self._claim((address,))

    async def _claim(self, addresses: tuple[str, ...]) -> bool:
        """Claim addresses, repeatedly until the node answers; return whether it accepted.

        An address that is given back meanwhile is left out.
        """
        pause = RETRY_AFTER
        while owned := tuple(address for address in addresses if address in self._owned):
            body = Path(owned, self._port.url)
            answer = await self._request(MessageType.SUBSCRIBE, self._paths, body)
            if answer.code not in {Code.TIMEOUT, Code.UNAVAILABLE}:
                return answer.code <= LAST_SUCCESS
            await trio.sleep(pause)
            pause = min(2 * pause, RENEW_TIMEOUT)
        return True

    async def _allocate(self, reply: Reply[tuple[str, ...]], scheme: str, number: int) -> None:
        body = Allocate(scheme, AllocationRequest(number))
        answer = await self._request(MessageType.CREATE, self._node, body)
        try:
            addresses = _read_addresses(answer, number)
        except (AllocationError, BadMessageError) as error:
            reply.fail(error)
            return
        if reply.is_open:
            reply.send(addresses)
        else:
            await self._give_back(addresses)

    async def _give_back(self, addresses: tuple[str, ...]) -> Message:
        body = Free(children_resources=addresses)
        return await self._request(MessageType.DELETE, self._node, body)

    async def _request(self, kind: MessageType, to: str, body: Allocate | Free | Path) -> Message:
        sender = self._port.url
        number = self._ids.next(sender)
        return await self._port.request(Message(number, kind, sender, to, write_body(body)))


def _read_addresses(answer: Message, number: int) -> tuple[str, ...]:
    """Return the addresses in an answer. Raises AllocationError, BadMessageError."""
    _check(answer)
    value = answer.body.get("value")
    body = attrs.evolve(answer, body=value if isinstance(value, dict) else {})
    addresses = read_body(body, Allocated).allocated
    if len(addresses) != number:
        raise BadMessageError(f"{len(addresses)} addresses came where {number} were asked for")
    return addresses


def _check(answer: Message) -> None:
    if answer.code > LAST_SUCCESS:
        raise AllocationError(answer.code, reason_in(answer))
