"""What the sync manager is given, and what its own tasks tell it."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias, final

import attrs

from actors.kit.actor import Reply
from actors.kit.delivery import Delivery
from actors.kit.ids import IdSource
from actors.kit.tracer import Tracer
from actors.runtime.ports import CorePort
from fsm.cores.data_object_terms import ReporterAccepted, ReporterRefused
from fsm.cores.effects import RowChanged
from fsm.cores.resolve import Topology
from fsm.engine import Step
from specs.address import RUNTIME_SCHEME, domain_of, is_below, runtime_of, scheme_of
from specs.body_sync import DataObject, Subscription
from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code
from specs.trace import Fact, Kind, Op
from transports.bodies import read_body

__all__ = [
    "Addresses",
    "ComponentLeft",
    "Decided",
    "Job",
    "ObjectReady",
    "ObjectRemoved",
    "ObjectsClosed",
    "ObserveDone",
    "ObserverLeft",
    "PathClosed",
    "PathsForgotten",
    "Spawn",
    "SyncContext",
    "SyncMessage",
    "SyncNews",
    "Tell",
    "code_in_use",
    "observer_of",
]

_MANAGER: Final = "sm"
_CODES: Final = frozenset(Code)


class Addresses(ABC):
    """Where addresses of data objects come from: the runtime's address allocation."""

    @abstractmethod
    async def allocate(self, scheme: str) -> str | None:
        """Return a new address of a scheme; None: the node gives none."""

    @abstractmethod
    async def free(self, address: str) -> None:
        """Give an address back; one that is not ours any more is fine."""


@final
@attrs.frozen(slots=True)
class SyncContext:
    """All that the sync manager may use.

    Attributes:
        runtime: The runtime it serves.
        domain: Its domain, at whose node reporter paths are set.
        topology: Whose node paths to objects of other domains are set at.
        bus: Its handle on the Message BUS; the handle's address is its own.
    """

    runtime: str
    domain: str
    bus: CorePort
    addresses: Addresses
    ids: IdSource
    tracer: Tracer
    topology: Topology = Topology.TRIANGLE

    def node_for(self, url: str) -> str:
        """Return the domain at whose node the path to an object is set (C-49).

        In the triangle that of the object's reporter, which fans out; in the trapezoid the
        own one, which subscribes onward.
        """
        return domain_of(url) if self.topology is Topology.TRIANGLE else self.domain

    def request(
        self, kind: MessageType, to: str, body: JsonObject, from_: str | None = None
    ) -> Message:
        """Write a request, from the sync manager itself or from an object."""
        sender = from_ or self.bus.url
        return Message(self.ids.next(sender), kind, sender, to, body)

    async def answer(self, request: Message, code: int, **body: Json) -> None:
        """Answer a request."""
        await self.bus.post(reply_to(request, code, body))

    async def refuse(self, request: Message, code: int, why: str) -> None:
        """Answer a request with a refusal."""
        await self.bus.post(refuse(request, code, why))

    def step(self, step: Step) -> None:
        """Trace that an entity moved."""
        self.tracer.step(_MANAGER, step)

    def row(self, row: RowChanged) -> None:
        """Trace that a row of a table changed."""
        if self.tracer.hops:
            fact = Fact(
                k=Kind.TABLE,
                op=row.op,
                table=row.table,
                key=row.key,
                val=row.val,
                writer=row.writer,
            )
            self.tracer.record(_MANAGER, fact)

    def written(self, written: DataObject) -> None:
        """Trace that an object has a new version."""
        fact = Fact(
            k=Kind.OBJ,
            op=Op.WRITE,
            key=written.url,
            version=written.version,
            by=written.reporter,
        )
        self.tracer.record(_MANAGER, fact)


@final
@attrs.frozen(slots=True)
class ObjectReady:
    """A new object has its address, path and listeners.

    Attributes:
        request: The reporter's own.
        created: None: there will be none, and the reporter has been told.
    """

    request: Message
    created: DataObject | None


@final
@attrs.frozen(slots=True)
class Decided:
    """The reporter said whether an observer may subscribe."""

    url: str
    decision: ReporterAccepted | ReporterRefused


@final
@attrs.frozen(slots=True)
class ObjectRemoved:
    """Path, listeners and address of a deleted object are gone.

    Attributes:
        request: The reporter's own; None: nobody asked for it.
    """

    url: str
    request: Message | None


@final
@attrs.frozen(slots=True)
class ObserveDone:
    """The reporter's end answered, or the path was refused.

    Attributes:
        request: The observer's own request.
        answer: What it comes to.
    """

    request: Message
    url: str
    answer: Message


@final
@attrs.frozen(slots=True)
class ObserverLeft:
    """The reporter's end knows that an observer left.

    Attributes:
        request: The observer's own; None: nobody asked for it.
    """

    url: str
    observer: str
    request: Message | None


@final
@attrs.frozen(slots=True)
class PathClosed:
    """Nothing of an object comes here any more: its path and listeners are gone."""

    url: str


@final
@attrs.frozen(slots=True)
class PathsForgotten:
    """The node of a domain has forgotten us: set all paths there again (STB-09)."""

    domain: str


@final
@attrs.frozen(slots=True)
class ObjectsClosed:
    """Delete every object that is reported here, leave every one that is observed.

    Attributes:
        done: Told when nothing is left; observers that do not answer hold it up.
    """

    done: Reply[None]


@final
@attrs.frozen(slots=True)
class ComponentLeft:
    """A component is gone for good: delete what it reports, leave what it observes.

    Attributes:
        component: Its address; nothing is said as it any more.
        done: Told when nothing of it is left; observers that do not answer hold it up.
    """

    component: str
    done: Reply[None]


SyncNews: TypeAlias = (
    ObjectReady | Decided | ObjectRemoved | ObserveDone | ObserverLeft | PathClosed
)
"""What the sync manager's own tasks tell it."""

SyncMessage: TypeAlias = Delivery | SyncNews | PathsForgotten | ObjectsClosed | ComponentLeft
"""What the sync manager is told."""

Tell: TypeAlias = Callable[[SyncNews], Awaitable[None]]
"""Tells the sync manager."""

Job: TypeAlias = Callable[[], Awaitable[None]]
"""Work for a task."""

Spawn: TypeAlias = Callable[[Job], None]
"""Runs work in a task of the sync manager."""


def observer_of(request: Message) -> str:
    """Return for whom a sync manager asks: itself, or one that lives in its runtime.

    Where another runtime's hyperties live its node knows, and has checked (MN-03); a
    part of a runtime is known by its address.

    Raises:
        BadMessageError: It asks for somebody else.
    """
    observer, asking = read_body(request, Subscription).source, request.from_
    is_manager = asking == f"{runtime_of(asking)}/{_MANAGER}"
    is_part = scheme_of(observer) == RUNTIME_SCHEME
    if observer == asking or (is_manager and not is_part):
        return observer
    if is_manager and is_below(observer, runtime_of(asking)):
        return observer
    raise BadMessageError(f"{asking} does not speak for {observer}", Code.FORBIDDEN)


def code_in_use(code: int) -> Code:
    """Return a code to pass on: one that is not in use counts as x00 of its class (RFC 9110)."""
    if code in _CODES:
        return Code(code)
    match code // 100:
        case 1:
            return Code.TRYING
        case 2:
            return Code.OK
        case 5:
            return Code.INTERNAL
        case _:
            return Code.MALFORMED
