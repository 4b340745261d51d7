"""Messages and trace of the sync manager, and the links to its peers (P2P-30)."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias

import attrs
import trio

from actors.kit.counters import Counters
from actors.kit.errors import ActorStoppedError
from actors.kit.trace import Tracer
from actors.runtime.bus.ports import CorePort
from actors.runtime.config import RuntimeConfig
from actors.runtime.registry.registry import Registry
from actors.runtime.store.runtime_store import StoreGate
from fsm.effects import RowChanged, is_p2p_part
from fsm.registry.resolve.topology import Topology
from specs.addresses import address
from specs.bodies.object import Subscription
from specs.errors import BadMessageError
from specs.identity import SenderIdentity
from specs.jsonvalue import Json, JsonObject
from specs.limits.sync import WITNESS_TIMEOUT
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code
from specs.trace import Fact
from transports.bodies import read_body

MANAGER: Final = "sm"
_CODES: Final = frozenset(Code)

NO_STORE: Final = "this runtime stores nothing: open it with a store"
NOTHING_STORED: Final = "nothing of that is stored"


Job: TypeAlias = Callable[[], Awaitable[object]]
"""Function to run in a task; its result is ignored."""

Spawn: TypeAlias = Callable[[Job], None]
"""Function that runs a job in a task of the sync manager."""


class SyncOutput:
    """Sends the messages of the sync manager, and writes its trace.

    A message about a stored object waits until the object is on disk.

    Args:
        config: Configuration of the runtime.
        bus: Port of the sync manager to the Message BUS.
        gate: Holds messages about stored objects until these are on disk.
        tracer: Takes the trace.
        counters: Counts of dropped messages.
        registry: Finds links to runtimes and entities.

    Attributes:
        spawn: Runs work in a task of the sync manager; the sync manager sets this attribute.
    """

    spawn: Spawn

    def __init__(
        self,
        config: RuntimeConfig,
        bus: CorePort,
        gate: StoreGate,
        tracer: Tracer,
        counters: Counters,
        registry: Registry,
    ) -> None:
        self.config, self.bus, self.gate, self.registry = config, bus, gate, registry
        self.tracer, self.counters, self.ids = tracer, counters, config.ids
        self.runtime, self.domain = config.runtime, config.domain

    def now(self) -> tuple[float, float]:
        """Return the time, and an unpredictable number between 0 and 1."""
        return trio.current_time(), self.config.entropy(1)[0] / 255

    def node_for(self, url: str) -> str:
        """Return the domain at whose node the route to an object is set (C-49).

        In the triangle the domain of the object, whose node fans out; in the trapezoid the own
        domain, whose node subscribes at the other.
        """
        is_triangle = self.config.topology is Topology.TRIANGLE
        return address.domain_of(url) if is_triangle else self.domain

    def request(
        self,
        kind: MessageType,
        to: str,
        body: JsonObject,
        from_: str | None = None,
        identity: SenderIdentity | None = None,
    ) -> Message:
        """Return a request of the sync manager itself or of an object.

        Args:
            kind: Type of the message.
            to: Address of the receiver.
            body: Body of the message.
            from_: Address of the sender.
            identity: Sender identity of the request that is passed on; None: none is passed on.
        """
        sender = from_ or self.bus.url
        return Message(self.ids.next(sender), kind, sender, to, body, identity)

    def answer(self, request: Message, code: int, **body: Json) -> None:
        """Answer a request; if its object is stored, once all changes are on disk."""
        self.post(reply_to(request, code, body), request)

    def refuse(self, request: Message, code: int, why: str) -> None:
        """Refuse a request; a refusal about a stored object waits for the disk as `answer` does."""
        self.post(refuse(request, code, why), request)

    def post(self, message: Message, about: Message | None = None) -> None:
        """Send a message; one about a stored object waits for the disk as `answer` does."""
        if self.gate.holds(about or message, message):
            self.gate.hold(lambda: self.bus.send(self._renumber(message)))
        else:
            self.bus.send(message)

    def publish(
        self, message: Message, runtimes: frozenset[str], direct: frozenset[str] = frozenset()
    ) -> None:
        """Send a message to all observers of an object; it waits for the disk as `answer` does.

        Args:
            message: The message.
            runtimes: Addresses of the runtimes.
            direct: Runtimes that receive it over a direct link.
        """
        if self.gate.holds(message):
            self.gate.hold(lambda: self.bus.publish(self._renumber(message), runtimes, direct))
        else:
            self.bus.publish(message, runtimes, direct)

    def _renumber(self, message: Message) -> Message:
        """Return a message that waited for the disk, with a new id; an answer keeps its id.

        Its sender may have sent other messages meanwhile, which did not wait (I-T7).
        """
        if message.is_response:
            return message
        self.ids.go_on(message.from_, message.id)
        return attrs.evolve(message, id=self.ids.next(message.from_))

    def when_stored(self, url: str, act: Callable[[], None]) -> None:
        """Call a function once all changes of an object are on disk; at once, if they are."""
        if url in self.gate.dirty:
            self.gate.hold(act)
        else:
            act()

    def trace(self, fact: Fact) -> None:
        """Trace a fact at once."""
        self.tracer.record(MANAGER, fact)

    def row(self, row: RowChanged) -> None:
        """Trace that an entry of a table changed."""
        if self.tracer.hops:
            self.tracer.row(MANAGER, row)


def observer_of(request: Message) -> str:
    """Return the observer for which a request is sent: the sender, or a hyperty of its runtime.

    The node has checked that the hyperty lives in the runtime of the sender (MN-03); a part of a
    runtime is recognised by its address.

    Raises:
        BadMessageError: The request is for a foreign hyperty.
    """
    observer, asking = read_body(request, Subscription).source, request.from_
    runtime = address.runtime_of(asking)
    is_manager = asking == f"{runtime}/{MANAGER}"
    is_part = address.scheme_of(observer) == address.RUNTIME_SCHEME
    if observer == asking or (is_manager and (not is_part or address.is_below(observer, runtime))):
        return observer
    raise BadMessageError(f"{asking} does not speak for {observer}", Code.FORBIDDEN)


def link_of(request: Message) -> str | None:
    """Return the address of the link that has brought a request; None: no link has."""
    by = request.via[-1] if request.via else ""
    return by if is_p2p_part(by) else None


def code_in_use(code: int) -> Code:
    """Return a known reply code for a received one; an unknown one counts as x00 (RFC 9110)."""
    if code in _CODES:
        return Code(code)
    classes = {1: Code.TRYING, 2: Code.OK, 5: Code.INTERNAL}
    return classes.get(code // 100, Code.MALFORMED)


_UNKNOWN: Final = ""
"""A value that is no link's address, so that any link differs from it."""


class LinkWatches:
    """Watches the links to entities; one question for each of them waits at the registry.

    Args:
        out: The output of the sync manager.
        changed: Called with an entity and its new link; None: there is no link.

    Attributes:
        watched: The task of each watched entity.
    """

    def __init__(self, out: SyncOutput, changed: Callable[[str, str | None], None]) -> None:
        self._registry, self._out, self._changed = out.registry, out, changed
        self.watched: Final[dict[str, trio.CancelScope]] = {}

    async def link_to(self, entity: str) -> str | None:
        """Return the live link to an entity; None: there is none."""
        return await self._registry.find_link(entity, _UNKNOWN, is_wanted=False)

    async def speaks_for(self, link: str, part: str, entity: str) -> bool:
        """Return whether a component at a link's other end may send for an entity.

        False if the registry does not answer in time.

        Args:
            link: Name of the link.
            part: Address of the sending part.
            entity: Address of the entity.
        """
        with trio.move_on_after(WITNESS_TIMEOUT):
            return await self._registry.speaks_for(link, part, entity)
        return False

    def watch(self, entity: str, known: str | None, *, is_wanted: bool = False) -> None:
        """Report each change of the link to an entity from now on. Idempotent.

        Args:
            entity: Address of a runtime, hyperty or object.
            known: The present link as far as known.
            is_wanted: Whether a link may be set up.
        """
        if entity not in self.watched:
            scope = self.watched[entity] = trio.CancelScope()
            self._out.spawn(partial(self._watch, entity, known, scope, is_wanted=is_wanted))

    def unwatch(self, entity: str) -> None:
        """Stop to watch the link to an entity. Idempotent."""
        scope = self.watched.pop(entity, None)
        if scope is not None:
            scope.cancel()

    async def _watch(
        self, entity: str, known: str | None, scope: trio.CancelScope, *, is_wanted: bool
    ) -> None:
        with scope, suppress(ActorStoppedError):
            while True:
                known = await self._registry.find_link(entity, known, is_wanted=is_wanted)
                self._changed(entity, known)
