"""Address allocation at `MN(d)/address-allocation` (M-18..M-20, M-54)."""

from collections.abc import Callable
from typing import Final, final

from typing_extensions import override

from actors.node.components import LocalService
from actors.node.tables import Tables
from fsm.effects import Refused
from fsm.registry import allocation
from fsm.registry.addresses import ENTROPY, Offer, OfferInput, Take, Withdraw
from fsm.sync.subscriptions import entity_of
from specs.addresses.address import domain_of, is_node, scheme_of
from specs.bodies.object import MoveAddress
from specs.bodies.registry import Allocate, Allocated, Free
from specs.bodies.word import AddressMethod
from specs.errors import BadMessageError
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code
from transports.bodies import read_body, write_body

__all__ = ["AllocationService"]

_HYPERTY: Final = "hyperty"


@final
class AllocationService(LocalService):
    """Allocates addresses of the node's domain, moves them, and takes them back."""

    def __init__(
        self, tables: Tables, schemes: frozenset[str], entropy: Callable[[int], bytes]
    ) -> None:
        self._tables = tables
        self._schemes = schemes
        self._entropy = entropy

    @override
    def receive(self, message: Message, by: str) -> Message:
        match message.type:
            case MessageType.CREATE:
                return self._allocate(message, read_body(message, Allocate), by)
            case MessageType.DELETE:
                return self._free(message, read_body(message, Free), by)
            case MessageType.UPDATE:
                return self._move(message, read_body(message, MoveAddress), by)
            case other:
                known = "create, update and delete"
                raise BadMessageError(f"address allocation knows {known}, not {other}")

    def _allocate(self, message: Message, request: Allocate, by: str) -> Message:
        if is_node(by):
            # It speaks for its own domain only: what it had here would be of this one.
            return refuse(message, Code.FORBIDDEN, "no addresses are allocated to a node")
        if request.scheme not in self._schemes:
            raise BadMessageError(f"no addresses of scheme {request.scheme!r} are allocated here")
        fresh = tuple(self._fresh(request.scheme, by) for _ in range(request.value.number))
        outcome = self._tables.own(allocation.Allocate(by, fresh, request.value.allocation_key))
        if isinstance(outcome, Refused):
            return refuse(message, outcome.code, outcome.why)
        return reply_to(message, Code.OK, {"value": write_body(Allocated(fresh))})

    def _free(self, message: Message, request: Free, by: str) -> Message:
        outcome = (
            self._tables.own(allocation.Free(by, request.children_resources or ()))
            if request.resource is None
            else self._tables.own(allocation.FreeBlock(by, request.resource))
        )
        if isinstance(outcome, Refused):
            return refuse(message, outcome.code, outcome.why)
        return reply_to(message, Code.OK)

    def _move(self, message: Message, request: MoveAddress, by: str) -> Message:
        """Let the address of a data object go to another runtime of the domain (SYN-26)."""
        is_object = request.resource == entity_of(request.resource) and self._is_object(
            request.resource
        )
        if not is_object or is_node(by):
            return refuse(
                message, Code.FORBIDDEN, "only data objects of this domain are handed over"
            )
        happened = self._moving(request, by)
        observers = request.observers or ()
        if isinstance(happened, Refused):
            outcome: Refused | None = happened
        else:
            outcome = self._tables.move(happened, observers)
        if outcome is not None:
            return refuse(message, outcome.code, outcome.why)
        return reply_to(message, Code.OK)

    def _is_object(self, address: str) -> bool:
        is_ours = domain_of(address) == self._tables.addresses.domain
        return is_ours and scheme_of(address) in self._schemes - {_HYPERTY}

    def _moving(self, request: MoveAddress, by: str) -> OfferInput | Refused:
        match request.operation:
            case AddressMethod.TAKE:
                return Take(request.resource, by, request.number, request.delegate or "")
            case AddressMethod.WITHDRAW:
                return Withdraw(request.resource, by, request.number)
            case _:
                return self._offer(request, by)

    def _offer(self, request: MoveAddress, by: str) -> Offer | Refused:
        delegate = request.delegate or ""
        to = self._tables.rights.owner_of(delegate) if delegate else None
        if to is None:
            return Refused(Code.NOT_FOUND, f"no session owns {delegate or 'no address'}")
        if is_node(to):
            return Refused(Code.FORBIDDEN, "an object does not leave its domain")
        return Offer(request.resource, by, to, request.number, delegate)

    def _fresh(self, scheme: str, by: str) -> str:
        name = self._tables.mint.name(self._entropy(ENTROPY), by)
        return f"{scheme}://{self._tables.addresses.domain}/{name}"
