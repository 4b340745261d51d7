"""How the sync manager gets addresses for data objects: from the address allocation.

How the sync manager has data objects registered: by the runtime's own registrar.
"""

from contextlib import suppress
from typing import final

from typing_extensions import override

from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.actor import ActorRef
from actors.runtime.registry.allocation import (
    AddressesWanted,
    AllocationError,
    AllocationMessage,
    FreeWanted,
)
from actors.runtime.registry.registrations import (
    ForgetWanted,
    RegisterWanted,
    RegistrarMessage,
    RegistrationError,
    UnregisterWanted,
)
from actors.runtime.sync.context import Addresses, Records, code_in_use
from fsm.sync.reporter_io import Refused
from specs.bodies.registry import Record
from specs.errors import BadMessageError
from specs.reply_code import Code

__all__ = ["AllocatedAddresses", "RegisteredObjects"]


@final
class RegisteredObjects(Records):
    """Asks the registrar of the same runtime."""

    def __init__(self, registrar: ActorRef[RegistrarMessage]) -> None:
        self._registrar = registrar

    @override
    async def register(self, record: Record) -> Refused | None:
        try:
            await self._registrar.ask(lambda reply: RegisterWanted(record, reply))
        except RegistrationError as error:
            return Refused(code_in_use(error.code), str(error))
        except ActorStoppedError:
            return Refused(Code.UNAVAILABLE, "the runtime is going")
        return None

    @override
    async def unregister(self, url: str) -> None:
        # What cannot be told now, the node notes when the session ends (REG-09).
        with suppress(ActorStoppedError):
            await self._registrar.ask(lambda reply: UnregisterWanted(url, reply))

    @override
    async def forget(self, url: str) -> None:
        with suppress(ActorStoppedError):
            await self._registrar.ask(lambda reply: ForgetWanted(url, reply))


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
