"""What a data object has outside of its reporter: address, path and listeners (M-18, M-35)."""

from typing import Final, final

from actors.kit.actor import ActorRef
from actors.kit.delivery import Delivery
from actors.runtime.sync_terms import SyncContext
from specs.address import last_segment, subscription_manager
from specs.body import Path
from specs.body_sync import CreateObject, DataObject
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import write_body

__all__ = ["CHANGES", "SUBSCRIPTION", "ObjectPlaces"]

SUBSCRIPTION: Final = "subscription"
CHANGES: Final = "changes"
_SCHEMES: Final = {"communication": "comm", "context": "ctxt"}
"""Schemes that are not the schema's own name (ADR-02)."""


def _scheme_for(schema: str) -> str:
    """Return the address scheme of objects of a data schema (C-48)."""
    name = last_segment(schema).lower()
    return _SCHEMES.get(name, name)


@final
class ObjectPlaces:
    """Sets up, and takes down, the places of the objects reported here."""

    def __init__(self, context: SyncContext) -> None:
        self._context = context

    async def find(self, request: Message, wanted: CreateObject) -> DataObject | None:
        """Get address and path for a new object; None: the reporter was refused (SYN-02)."""
        context = self._context
        url = await context.addresses.allocate(_scheme_for(wanted.schema))
        if url is None:
            await context.refuse(request, Code.UNAVAILABLE, "no address for the object")
            return None
        answer = await context.bus.request(self._path(MessageType.SUBSCRIBE, url))
        if answer.code > LAST_SUCCESS:
            await context.addresses.free(url)
            await context.refuse(request, Code.UNAVAILABLE, "no path to the object")
            return None
        told = wanted.value
        return DataObject(
            request.from_,
            context.runtime,
            told.data,
            url,
            name=told.name,
            schema=wanted.schema,
            resources=told.resources or (),
        )

    async def listen(self, url: str, listener: ActorRef[Delivery]) -> None:
        """Let what is sent to an object lead to `listener`."""
        for address in (url, f"{url}/{SUBSCRIPTION}"):
            await self._context.bus.add_listener(address, listener)

    async def renew(self, url: str) -> None:
        """Claim an object, and set its path, that the node has forgotten (C-44)."""
        claim = write_body(Path((url,), self._context.runtime))
        to = subscription_manager(self._context.domain)
        await self._context.bus.request(self._context.request(MessageType.SUBSCRIBE, to, claim))
        await self._context.bus.request(self._path(MessageType.SUBSCRIBE, url))

    async def leave(self, url: str, listener: ActorRef[Delivery]) -> None:
        """Take everything down again (SYN-22)."""
        await self._context.bus.request(self._path(MessageType.UNSUBSCRIBE, url))
        for address in (f"{url}/{SUBSCRIPTION}", url):
            await self._context.bus.remove_listener(address, listener)
        await self._context.addresses.free(url)

    def _path(self, kind: MessageType, url: str) -> Message:
        body = Path((url, f"{url}/{SUBSCRIPTION}"), self._context.runtime)
        to = subscription_manager(self._context.domain)
        return self._context.request(kind, to, write_body(body))
