"""Address allocation at `MN(d)/address-allocation` (M-18..M-20)."""

from collections.abc import Callable
from typing import final

from typing_extensions import override

from actors.node.desk import Desk
from actors.node.tables import Tables
from fsm.cores import allocation_terms as allocation
from fsm.cores.address_mint import ENTROPY
from fsm.cores.refused import Refused
from specs.address import is_node
from specs.body import Allocate, Allocated, Free
from specs.errors import BadMessageError
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code
from transports.bodies import read_body, write_body

__all__ = ["AllocationDesk"]


@final
class AllocationDesk(Desk):
    """Hands out addresses of the node's domain and takes them back.

    Args:
        tables: Where owners are noted.
        schemes: What addresses are handed out for.
        entropy: Makes them unguessable.
    """

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
            case other:
                raise BadMessageError(f"address allocation knows create and delete, not {other}")

    def _allocate(self, message: Message, wish: Allocate, by: str) -> Message:
        if is_node(by):
            # It speaks for its own domain only: what it had here would be of this one.
            return refuse(message, Code.FORBIDDEN, "no addresses are allocated to a node")
        if wish.scheme not in self._schemes:
            raise BadMessageError(f"no addresses of scheme {wish.scheme!r} are allocated here")
        fresh = tuple(self._fresh(wish.scheme) for _ in range(wish.value.number))
        outcome = self._tables.own(allocation.Allocate(by, fresh, wish.value.allocation_key))
        if isinstance(outcome, Refused):
            return refuse(message, outcome.code, outcome.why)
        return reply_to(message, Code.OK, {"value": write_body(Allocated(fresh))})

    def _free(self, message: Message, wish: Free, by: str) -> Message:
        outcome = (
            self._tables.own(allocation.Free(by, wish.children_resources or ()))
            if wish.resource is None
            else self._tables.own(allocation.FreeBlock(by, wish.resource))
        )
        if isinstance(outcome, Refused):
            return refuse(message, outcome.code, outcome.why)
        return reply_to(message, Code.OK)

    def _fresh(self, scheme: str) -> str:
        name = self._tables.mint.name(self._entropy(ENTROPY))
        return f"{scheme}://{self._tables.addresses.domain}/{name}"
