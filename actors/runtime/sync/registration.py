"""The registrations of a data object: address, path, listeners and record.

All of it is the reporter's runtime's to set up and to take down (M-18, M-35, M-21, M-23).

How a node that has forgotten an object's address and paths gets to know them again (C-44).

A node that is busy, full or silent is asked again, after longer and longer pauses: without its
paths the object cannot be found. The objects of a runtime take turns: a request of the last of
many that waited in a line at the node would be given up before its answer comes.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeAlias, final

import trio

from actors.kit.errors import ActorStoppedError
from actors.kit.log import get_logger
from actors.kit.supervision.actor import ActorRef, Delivery
from actors.runtime.registry.allocation import AddressAllocation, AllocationError
from actors.runtime.registry.registrations import Registrar, RegistrationError
from actors.runtime.registry.registry import Registry
from actors.runtime.sync.output import SyncOutput, code_in_use
from actors.runtime.sync.schemas import scheme_for
from fsm.effects import Refused
from specs.addresses.address import (
    RUNTIME_SCHEME,
    scheme_of,
    status_of,
    subscription_manager,
)
from specs.bodies.link import Path
from specs.bodies.object import CreateObject, DataObject
from specs.bodies.registry import Record
from specs.child import SUBSCRIPTION, children_addresses
from specs.errors import BadMessageError
from specs.limits.protocol import READ_PAUSE
from specs.limits.sync import RENEWED_AT_ONCE, REPEAT_LAST
from specs.message import Message, MessageType, reason_in
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import write_body

_log = get_logger("actors.runtime")

_CLOSED: Final = "the runtime has closed"
_LOST: Final = frozenset({Code.FORBIDDEN, Code.CONFLICT})
"""Answers that say: the address is another's now."""

Ask: TypeAlias = Callable[[str], Awaitable[Message]]
"""Claims an object at the node, and sets its paths; returns what was answered last."""


@final
class _Renewal:
    """One object's; `again` is set when the node has forgotten it once more."""

    def __init__(self) -> None:
        self.again = trio.Event()

    async def rest(self, pause: float) -> float:
        """Wait, but not once the node has forgotten it again; return the next pause."""
        with trio.move_on_after(pause):
            await self.again.wait()
        return READ_PAUSE if self.again.is_set() else min(2 * pause, REPEAT_LAST)


@final
class Renewals:
    """The renewals of one runtime's objects: one of each at a time.

    Args:
        ask: Claims an object.
        may_ask: Whether an object may be claimed: it is reported here, and not deleted.
    """

    def __init__(self, ask: Ask, may_ask: Callable[[str], bool] = lambda _: True) -> None:
        self._ask = ask
        self._may_ask = may_ask
        self._permits = trio.CapacityLimiter(RENEWED_AT_ONCE)
        self._running: dict[str, _Renewal] = {}

    async def renew(self, url: str) -> bool:
        """Ask the node as often as it takes; return whether it has all of the object now.

        If not, the address is another's, or the object is reported here no more, or this is
        being done already: then it is done once more.
        """
        if url in self._running:
            self._running[url].again.set()
            return False
        renewal, pause = _Renewal(), READ_PAUSE
        self._running[url] = renewal
        while self._running.get(url) is renewal:
            answer = await self._turn(url, renewal)
            if answer is not None and _is_over(answer, renewal):
                del self._running[url]
                return _is_done(url, answer)
            pause = await renewal.rest(pause)
        return False

    def forget(self, url: str) -> None:
        """Ask no more: the object is not reported here any more."""
        renewal = self._running.pop(url, None)
        if renewal is not None:
            renewal.again.set()

    async def _turn(self, url: str, renewal: _Renewal) -> Message | None:
        """Ask once; None: it may not be asked, or what was answered is of no use any more."""
        async with self._permits:
            if self._running.get(url) is not renewal:
                return None
            renewal.again = trio.Event()  # also if it may not be asked: else nothing would rest
            if not self._may_ask(url):
                return None
            answer = await self._ask(url)
        return answer if self._running.get(url) is renewal else None


def _is_over(answer: Message, renewal: _Renewal) -> bool:
    is_decided = answer.code <= LAST_SUCCESS or answer.code in _LOST
    return is_decided and not renewal.again.is_set()


def _is_done(url: str, answer: Message) -> bool:
    if answer.code in _LOST:
        _log.error("object has lost its address", url=url, why=reason_in(answer))
    return answer.code <= LAST_SUCCESS


@final
class ObjectRegistrations:
    """Sets up, and takes down, the places of the objects reported here.

    Args:
        out: What the sync manager sends.
        registry: Registry of the runtime.
        allocation: Allocates the addresses of data objects.
        registrar: Registers them in the domain registry.
        may_ask: Whether an object may be claimed.

    Attributes:
        renewals: Of those that the node has forgotten.
    """

    def __init__(
        self,
        out: SyncOutput,
        registry: Registry,
        allocation: AddressAllocation,
        registrar: Registrar,
        may_ask: Callable[[str], bool],
    ) -> None:
        self._out = out
        self._registry = registry
        self._allocation = allocation
        self._registrar = registrar
        self.renewals: Final = Renewals(self._ask, may_ask)

    async def find(self, request: Message, wanted: CreateObject) -> DataObject | None:
        """Get address and path for a new object; None: the reporter was refused (SYN-02).

        Args:
            request: The request.
            wanted: The requested object.
        """
        out = self._out
        try:
            (url,) = await self._allocation.allocate(scheme_for(wanted.schema, request.from_), 1)
        except AllocationError as error:
            out.refuse(request, code_in_use(error.code), str(error))
            return None
        except BadMessageError as error:
            out.refuse(request, Code.BAD_BACKEND, f"no address: {error.reason}")
            return None
        except ActorStoppedError:
            out.refuse(request, Code.GONE, _CLOSED)
            return None
        answer = await out.bus.request(self._path(MessageType.SUBSCRIBE, url))
        if answer.code > LAST_SUCCESS:
            await self._free(url)
            why = f"no path to the object: {reason_in(answer)}"
            out.refuse(request, code_in_use(answer.code), why)
            return None
        value = wanted.value
        return DataObject(
            request.from_,
            out.runtime,
            value.data,
            url,
            name=value.name,
            schema=wanted.schema,
            resources=value.resources or (),
            created=out.time_of_day(),
        )

    def listen(self, url: str, listener: ActorRef[Delivery]) -> None:
        """Let what is sent to an object lead to `listener`.

        Args:
            url: Address of the object.
            listener: Receiver of the messages.
        """
        for address in (url, f"{url}/{SUBSCRIPTION}"):
            self._out.bus.open_address(address, listener)
        self._out.bus.listen(status_of(url), self._registry.listener)

    async def register(self, created: DataObject) -> Refused | None:
        """Have an object found by others (SYN-03); None: it is, or need not be.

        The object of a part of the runtime, such as the description of a P2P link, is for
        by invitation only.
        """
        if scheme_of(created.reporter) == RUNTIME_SCHEME:
            return None
        record = Record(
            created.url,
            created.runtime,
            reporter=created.reporter,
            schema=created.schema,
            name=created.name,
            resources=created.resources,
            data_schemes=(scheme_of(created.url),),
        )
        try:
            await self._registrar.register(record)
        except RegistrationError as error:
            return Refused(code_in_use(error.code), str(error))
        except ActorStoppedError:
            return Refused(Code.GONE, _CLOSED)
        return None

    async def _ask(self, url: str) -> Message:
        """Claim an object, and set its paths; return the first refusal, or the last answer."""
        bus, body = self._out.bus, write_body(Path((url,), self._out.runtime))
        to = subscription_manager(self._out.domain)
        claimed = await bus.request(self._out.request(MessageType.SUBSCRIBE, to, body))
        if claimed.code > LAST_SUCCESS:
            return claimed
        return await bus.request(self._path(MessageType.SUBSCRIBE, url))

    async def leave(self, url: str, listener: ActorRef[Delivery]) -> None:
        """Take everything down again (SYN-22).

        Args:
            url: Address of the object.
            listener: Receiver of the messages.
        """
        self.renewals.forget(url)
        await self._out.bus.request(self._path(MessageType.UNSUBSCRIBE, url))
        # What cannot be reported now, the node notes when the session ends (REG-09).
        with suppress(ActorStoppedError):
            await self._registrar.unregister(url)
        self._out.bus.unlisten(status_of(url), self._registry.listener)
        for address in (f"{url}/{SUBSCRIPTION}", url):
            self._out.bus.close_address(address, listener)
        await self._free(url)

    async def _free(self, url: str) -> None:
        # What the node does not take back now, it takes when the session ends (I-A7).
        with suppress(AllocationError, ActorStoppedError):
            await self._allocation.free((url,))

    def _path(self, kind: MessageType, url: str) -> Message:
        paths = (url, f"{url}/{SUBSCRIPTION}", *children_addresses(url))
        body = Path(paths, self._out.runtime)
        to = subscription_manager(self._out.domain)
        return self._out.request(kind, to, write_body(body))
