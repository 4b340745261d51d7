"""Where a runtime's hyperties have their addresses from, and where those go."""

from typing import Final, final

from actors.kit.actor import ActorRef
from actors.runtime.allocation import (
    AddressGiven,
    AddressKept,
    AddressWanted,
    AllocationError,
    AllocationMessage,
    FreeWanted,
)
from actors.runtime.profile import Profile
from fsm.cores.address_reuse import Purpose

__all__ = ["HypertyAddresses"]

_HYPERTY: Final = "hyperty"


@final
class HypertyAddresses:
    """Asks the address allocation of the same runtime."""

    def __init__(self, allocation: ActorRef[AllocationMessage]) -> None:
        self._allocation = allocation

    async def give(self, profile: Profile) -> AddressGiven:
        """Return an address for a hyperty: one kept for its descriptor, else a new one.

        Raises:
            AllocationError: The node gave none.
            NotKeptError: The profile names one that is not kept for it.
        """
        purpose, exactly = _purpose(profile), profile.address
        given: AddressGiven = await self._allocation.ask(
            lambda reply: AddressWanted(purpose, exactly, reply)
        )
        return given

    async def keep(self, url: str, profile: Profile) -> None:
        """Keep an address that nobody uses now."""
        await self._allocation.tell(AddressKept(url, _purpose(profile)))

    async def free(self, urls: tuple[str, ...]) -> None:
        """Give addresses back, if there are any; repeated is fine."""
        if not urls:
            return
        try:
            await self._allocation.ask(lambda reply: FreeWanted(urls, reply))
        except AllocationError:
            # The node frees what a session leaves (I-A7).
            return


def _purpose(profile: Profile) -> Purpose:
    return Purpose(_HYPERTY, profile.descriptor)
