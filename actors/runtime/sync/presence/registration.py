"""What a data object has outside of its reporter: address, path, listeners and record.

All of it is the reporter's runtime's to set up and to take down (M-18, M-35, M-21, M-23).
"""

from typing import Final, final

from actors.kit.actor import ActorRef
from actors.kit.delivery import Delivery
from actors.runtime.sync.context import SyncContext
from actors.runtime.sync.presence.renewal import Renewals
from fsm.sync.reporter_io import Refused
from specs.addresses.address import (
    RUNTIME_SCHEME,
    SCHEME_ALIASES,
    is_backend,
    last_segment,
    scheme_of,
    status_of,
    subscription_manager,
)
from specs.bodies.body import Path, Record
from specs.bodies.sync import CreateObject, DataObject
from specs.child import children_addresses
from specs.errors import BadMessageError
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import write_body

__all__ = ["CHANGES", "SUBSCRIPTION", "ObjectPlaces", "schema_named", "scheme_for"]

SUBSCRIPTION: Final = "subscription"
CHANGES: Final = "changes"
_SCHEMES: Final = {"communication": "comm", "context": "ctxt"}
"""Schemes that are not the schema's own name (ADR-02)."""


_LINKS: Final = "connection"
"""The scheme of the descriptions of links, which parts of a runtime report."""

_NOT_OF_OBJECTS: Final = frozenset(
    {"hyperty", RUNTIME_SCHEME, *SCHEME_ALIASES, "user", "hyperty-catalogue", _LINKS}
)

_SCHEMAS: Final = {scheme: name.capitalize() for name, scheme in _SCHEMES.items()}


def schema_named(name: str, domain: str) -> str:
    """Return the catalogue address of a data schema; of one whose name is its scheme, its own."""
    if "://" in name:
        return name
    last = _SCHEMAS.get(name, name.capitalize())
    return f"hyperty-catalogue://catalogue.{domain}/.well-known/dataschema/{last}"


def scheme_for(schema: str, reporter: str) -> str:
    """Return the address scheme of objects of a data schema (C-48).

    Raises:
        BadMessageError: What has such addresses is no data object, or none of this reporter's.
    """
    name = last_segment(schema).lower()
    scheme = _SCHEMES.get(name, name)
    is_of_part = scheme == _LINKS and scheme_of(reporter) == RUNTIME_SCHEME
    if is_backend(f"{scheme}://") or (scheme in _NOT_OF_OBJECTS and not is_of_part):
        raise BadMessageError(f"no data object has an address of the scheme {scheme}")
    return scheme


@final
class ObjectPlaces:
    """Sets up, and takes down, the places of the objects reported here.

    Attributes:
        renewals: Of those that the node has forgotten.
    """

    def __init__(self, context: SyncContext) -> None:
        self._context = context
        self.renewals: Final = Renewals(self._ask)

    async def find(self, request: Message, wanted: CreateObject) -> DataObject | None:
        """Get address and path for a new object; None: the reporter was refused (SYN-02)."""
        context = self._context
        url = await context.addresses.allocate(scheme_for(wanted.schema, request.from_))
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
        await self._context.bus.watch(status_of(url), self._context.registry)

    async def register(self, created: DataObject) -> Refused | None:
        """Have an object found by others (SYN-03); None: it is, or need not be.

        The object of a part of the runtime, such as the description of a P2P link, is for
        whoever is invited to it, and nobody else's to find.
        """
        if scheme_of(created.reporter) == RUNTIME_SCHEME:
            return None
        return await self._context.records.register(
            Record(
                created.url,
                created.runtime,
                reporter=created.reporter,
                schema=created.schema,
                name=created.name,
                resources=created.resources,
                data_schemes=(scheme_of(created.url),),
            )
        )

    async def renew(self, url: str) -> None:
        """Have the node know an object again, as often as it takes."""
        await self.renewals.renew(url)

    async def _ask(self, url: str) -> Message:
        """Claim an object, and set its paths; return the first refusal, or the last answer."""
        bus, body = self._context.bus, write_body(Path((url,), self._context.runtime))
        to = subscription_manager(self._context.domain)
        claimed = await bus.request(self._context.request(MessageType.SUBSCRIBE, to, body))
        if claimed.code > LAST_SUCCESS:
            return claimed
        return await bus.request(self._path(MessageType.SUBSCRIBE, url))

    async def leave(self, url: str, listener: ActorRef[Delivery]) -> None:
        """Take everything down again (SYN-22)."""
        self.renewals.forget(url)
        await self._context.bus.request(self._path(MessageType.UNSUBSCRIBE, url))
        await self._context.records.unregister(url)
        await self.listen_no_more(url, listener)
        await self._context.addresses.free(url)

    async def listen_no_more(self, url: str, listener: ActorRef[Delivery]) -> None:
        """End what `listen` began."""
        await self._context.bus.unwatch(status_of(url), self._context.registry)
        for address in (f"{url}/{SUBSCRIPTION}", url):
            await self._context.bus.remove_listener(address, listener)

    async def give_away(self, url: str, listener: ActorRef[Delivery]) -> None:
        """Take down what is here of an object; the rest is another runtime's now (SYN-26)."""
        self.renewals.forget(url)
        await self._context.records.forget(url)
        await self.listen_no_more(url, listener)

    def _path(self, kind: MessageType, url: str) -> Message:
        paths = (url, f"{url}/{SUBSCRIPTION}", *children_addresses(url))
        body = Path(paths, self._context.runtime)
        to = subscription_manager(self._context.domain)
        return self._context.request(kind, to, write_body(body))
