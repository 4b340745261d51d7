"""Observers a reporter lets in, expels and hears of (SYN-18, SYN-21, SYN-23, M-45, M-53)."""

from typing import Final, final

from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.delivery import Delivery
from actors.runtime.sync.context import SyncContext
from actors.runtime.sync.registration import CHANGES, SUBSCRIPTION
from fsm.effects import RowChanged
from fsm.sync.reporter import PUBLIC, AllowedObservers, ReporterCore
from fsm.sync.reporter_io import CutOff, Expired
from specs.addresses.address import RUNTIME_SCHEME, runtime_of, scheme_of, subscription_manager
from specs.bodies.object import (
    CutPath,
    ObjectBack,
    ObserverExpelled,
    ObserverList,
    ObserversChange,
)
from specs.bodies.sync import CreateObject, DataObject
from specs.bodies.word import Operation
from specs.message import Message, MessageType
from specs.reply_code import Code
from specs.trace import Op
from transports.bodies import write_body

__all__ = ["OBSERVERS", "ObserverLists", "allowed_observers", "trace_allowed"]

OBSERVERS: Final = "observers"


def allowed_observers(wanted: CreateObject) -> AllowedObservers:
    """Return who may observe a new object unasked."""
    return AllowedObservers(wanted.allow or (), is_public=bool(wanted.public))


def trace_allowed(context: SyncContext, created: DataObject, guests: AllowedObservers) -> None:
    """Trace who may observe a new object unasked (I-D9)."""
    for observer in (*guests.allowed, *((PUBLIC,) if guests.is_public else ())):
        context.allowed_observer(Op.ADD, created.url, observer, created.reporter)


@final
class ObserverLists:
    """The observers resources of the objects reported here; and how observers are cut off.

    What is said at `O/observers` stays in the runtime: it is for the reporter, and read by
    nobody else.
    """

    def __init__(self, context: SyncContext) -> None:
        self._context = context
        self._versions: dict[str, int] = {}

    async def open(self, created: DataObject, listener: ActorRef[Delivery]) -> None:
        """Let a reporter hear who observes its object; a part of a runtime wants no such thing."""
        if scheme_of(created.reporter) == RUNTIME_SCHEME:
            return
        self._versions[created.url] = 0
        address = f"{created.url}/{OBSERVERS}"
        # The sync manager listens, too: so nothing of it ever goes outward.
        await self._context.bus.add_listener(address, listener)
        await self._context.bus.follow(address, created.reporter)

    async def close(self, url: str, listener: ActorRef[Delivery]) -> None:
        """End it; repeated is fine."""
        if self._versions.pop(url, None) is not None:
            address = f"{url}/{OBSERVERS}"
            await self._context.bus.remove_listener(address, listener)
            await self._context.bus.unfollow_all(address)

    async def changed(self, url: str, row: RowChanged) -> None:
        """Tell the reporter that somebody observes from now on, or no more (M-53)."""
        if url not in self._versions:
            return
        self._versions[url] += 1
        operation = Operation.ADD if row.op is Op.ADD else Operation.REMOVE
        change = ObserversChange((row.val,), operation.value, self._versions[url])
        to = f"{url}/{OBSERVERS}"
        event = self._context.request(MessageType.UPDATE, to, write_body(change), url)
        await self._context.bus.publish(event, frozenset({self._context.runtime}))

    async def asked(self, url: str, reported: ReporterCore, request: Message) -> None:
        """Show the reporter, and nobody else, who observes."""
        if request.type is not MessageType.READ:
            await self._context.refuse(request, Code.MALFORMED, "observers are read, and no more")
        elif request.from_ != reported.snapshot.reporter:
            await self._context.refuse(request, Code.UNAUTHENTICATED, "only the reporter may")
        else:
            listed = ObserverList(self._versions.get(url, 0), reported.observers)
            await self._context.answer(request, Code.OK, value=write_body(listed))

    async def cut_off(self, url: str, cut: CutOff | Expired) -> None:
        """Have an observer hear nothing more, whatever it does itself (SYN-21).

        The node stops first what goes to its runtime, if nobody else observes there; then
        the sync manager there is told, which serves the others on. One whose lease is over
        may be there all the same: it is told to subscribe again (M-52).
        """
        is_over = isinstance(cut, Expired)
        runtime = runtime_of(cut.manager) if cut.manager else None
        if runtime != self._context.runtime:
            path = CutPath((f"{url}/{CHANGES}",), cut.observer, runtime, is_over or None)
            to = subscription_manager(self._context.domain)
            request = self._context.request(MessageType.UNSUBSCRIBE, to, write_body(path))
            await self._context.bus.post(request)
        if cut.manager:
            body = write_body(ObjectBack(url) if is_over else ObserverExpelled(url, cut.observer))
            kind = MessageType.SUBSCRIBE if is_over else MessageType.UNSUBSCRIBE
            sender = f"{url}/{SUBSCRIPTION}"
            await self._context.bus.post(self._context.request(kind, cut.manager, body, sender))
