"""How the sync manager gets addresses for data objects: from the address allocation."""

from contextlib import suppress
from typing import final

from typing_extensions import override

from actors.kit.actor import ActorRef
from actors.kit.errors import ActorStoppedError
from actors.runtime.registry.allocation import (
    AddressesWanted,
    AllocationError,
    AllocationMessage,
    FreeWanted,
)
from actors.runtime.sync.context import Addresses
from specs.errors import BadMessageError

__all__ = ["AllocatedAddresses"]


@final
class AllocatedAddresses(Addresses):
    """Asks the address allocation of the same runtime."""

    def __init__(self, allocation: ActorRef[AllocationMessage]) -> None:
        self._allocation = allocation

    @override
    async def allocate(self, scheme: str) -> str | None:
        try:
            addresses: tuple[str, ...] = await self._allocation.ask(
                lambda reply: AddressesWanted(scheme, 1, reply)
            )
        except (AllocationError, BadMessageError, ActorStoppedError):
            return None
        return addresses[0]

    @override
    async def free(self, address: str) -> None:
        # What the node does not take back now, it takes when the session ends (I-A7).
        with suppress(AllocationError, ActorStoppedError):
            await self._allocation.ask(lambda reply: FreeWanted((address,), reply))
