"""Messages and trace of the sync manager, and the links by which its peers are reached (P2P-30)."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Final, TypeAlias, final

import attrs
import trio

from actors.kit.counters import Counters
from actors.kit.errors import ActorStoppedError
from actors.kit.trace import Tracer, value_digest
from actors.runtime.bus.ports import CorePort
from actors.runtime.config import RuntimeConfig
from actors.runtime.registry.registry import Registry
from actors.runtime.store.runtime_store import StoreGate
from fsm.effects import RowChanged
from fsm.engine import Step
from fsm.registry.resolve.link_entry import Topology
from specs.addresses.address import (
    RUNTIME_SCHEME,
    domain_of,
    is_below,
    runtime_of,
    scheme_of,
)
from specs.bodies.object import DataObject, Subscription
from specs.errors import BadMessageError
from specs.identity import SenderIdentity
from specs.jsonvalue import Json, JsonObject
from specs.limits.sync import WITNESS_TIMEOUT
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code, DropReason
from specs.trace import Fact, Kind, Op
from transports.bodies import read_body

_MANAGER: Final = "sm"
_CODES: Final = frozenset(Code)


@final
class SyncOutput:
    """What the sync manager sends and traces.

    A message about a stored object waits until the object is on disk.

    Args:
        config: Configuration of the runtime.
        bus: Port of the sync manager to the Message BUS.
        gate: Where messages about stored objects wait for the disk.
        tracer: Takes the trace.
        counters: Counts of messages that end here.
    """

    def __init__(
        self,
        config: RuntimeConfig,
        bus: CorePort,
        gate: StoreGate,
        tracer: Tracer,
        counters: Counters,
    ) -> None:
        self.config: Final = config
        self.runtime: Final = config.runtime
        self.domain: Final = config.domain
        self.bus: Final = bus
        self.gate: Final = gate
        self.ids: Final = config.ids
        self.tracer: Final = tracer
        self.counters: Final = counters

    def now(self) -> tuple[float, float]:
        """Return the time, and an unpredictable number between 0 and 1."""
        return trio.current_time(), self.config.entropy(1)[0] / 255

    def time_of_day(self) -> str:
        """Return the time of day in the form of RFC 3339, UTC."""
        now = datetime.fromtimestamp(trio.current_time() + self.config.clock_offset, UTC)
        return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def node_for(self, url: str) -> str:
        """Return the domain at whose node the path to an object is set (C-49).

        In the triangle that of the object's reporter, which fans out; in the trapezoid the
        own one, which subscribes onward.
        """
        return domain_of(url) if self.config.topology is Topology.TRIANGLE else self.domain

    def request(
        self,
        kind: MessageType,
        to: str,
        body: JsonObject,
        from_: str | None = None,
        identity: SenderIdentity | None = None,
    ) -> Message:
        """Write a request, from the sync manager itself or from an object.

        Args:
            kind: Type of the message.
            to: Address of the receiver.
            body: Body of the message.
            from_: Address of the sender.
            identity: Sender of the request that this one passes on to a hyperty; None: it passes
                none on.
        """
        sender = from_ or self.bus.url
        return Message(self.ids.next(sender), kind, sender, to, body, identity)

    def answer(self, request: Message, code: int, **body: Json) -> None:
        """Answer a request; if it is about a stored object, once all that is on disk.

        Args:
            request: The request.
            code: Reply code.
            **body: Further fields of the body.
        """
        self._send(request, reply_to(request, code, body))

    def refuse(self, request: Message, code: int, why: str) -> None:
        """Answer a request with a refusal; likewise.

        Args:
            request: The request.
            code: Reply code.
            why: The reason.
        """
        self._send(request, refuse(request, code, why))

    def post(self, message: Message) -> None:
        """Send a message; likewise."""
        self._send(message, message)

    def _send(self, about: Message, message: Message) -> None:
        if self.gate.holds(about, message):
            self.gate.hold(lambda: self.bus.send(self._renumbered(message)))
        else:
            self.bus.send(message)

    def _renumbered(self, message: Message) -> Message:
        """Return a message that waited for the disk with a newer id; an answer keeps its own.

        Its sender may have sent others meanwhile, that had not to wait (I-T7).
        """
        if message.is_response:
            return message
        self.ids.go_on(message.from_, message.id)
        return attrs.evolve(message, id=self.ids.next(message.from_))

    def publish(
        self, message: Message, runtimes: frozenset[str], direct: frozenset[str] = frozenset()
    ) -> None:
        """Send a message to all observers of an object; likewise.

        Args:
            message: The message.
            runtimes: Addresses of the runtimes.
            direct: Runtimes that receive it over a direct link.
        """
        if self.gate.holds(message):
            self.gate.hold(lambda: self.bus.publish(self._renumbered(message), runtimes, direct))
        else:
            self.bus.publish(message, runtimes, direct)

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

    def child(self, done: Op, url: str, name: str, version: int, by: str) -> None:
        """Trace a change of a child and its author (I-D10).

        Args:
            done: Operation on the child.
            url: Address of the object.
            name: Name of the child.
            version: Version of the child.
            by: Address of the author.
        """
        fact = Fact(k=Kind.OBJ, op=done, key=f"{url}|{name}", version=version, by=by)
        self.tracer.record(_MANAGER, fact)

    def trace_deletion(self, url: str, by: str) -> None:
        """Trace that an object is deleted, behind what waits for the disk before (I-D8).

        Args:
            url: Address of the object.
            by: Address of the deleting component.
        """
        fact = Fact(k=Kind.OBJ, op=Op.DEL, key=url, by=by)
        if self.gate.is_dirty(url):
            self.gate.hold(partial(self.tracer.record, _MANAGER, fact))
        else:
            self.tracer.record(_MANAGER, fact)

    def count_drop(self, message: Message, reason: DropReason) -> None:
        """Count, and trace, that a message ends here unanswered.

        Args:
            message: The message.
            reason: Reason of the drop.
        """
        self.counters.drop(reason, message, _MANAGER)
        if self.tracer.hops:
            self.tracer.message(_MANAGER, Op.DROP, message, reason=reason)

    def trace_version(self, written: DataObject) -> None:
        """Trace that an object has a new version; of a stored one, once it is on disk."""
        if self.gate.is_dirty(written.url):
            self.gate.hold(partial(self._trace_written, written))
        else:
            self._trace_written(written)

    def _trace_written(self, written: DataObject) -> None:
        fact = Fact(
            k=Kind.OBJ,
            op=Op.WRITE,
            key=written.url,
            version=written.version,
            by=written.reporter,
            digest=value_digest(written.data) if self.tracer.hops else None,
        )
        self.tracer.record(_MANAGER, fact)


Job: TypeAlias = Callable[[], Awaitable[object]]
"""Work for a task; what it returns is ignored."""

Spawn: TypeAlias = Callable[[Job], None]
"""Runs work in a task of the sync manager."""


def observer_of(request: Message) -> str:
    """Return the hyperty for which a sync manager asks: its own, or one of its runtime.

    Where another runtime's hyperties live its node knows, and has checked (MN-03); a
    part of a runtime is known by its address.

    Raises:
        BadMessageError: It asks for a foreign hyperty.
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


_UNKNOWN: Final = ""
"""No link's address: any link that leads there is another one."""


@final
class LinkWatches:
    """Asks the registry about links; one question per watched entity waits at the registry.

    Args:
        registry: The registry.
        spawn: Runs a task.
        changed: Takes each entity to which another link leads now; None: none does.
    """

    def __init__(
        self,
        registry: Registry,
        spawn: Spawn,
        changed: Callable[[str, str | None], None],
    ) -> None:
        self._registry = registry
        self._spawn = spawn
        self._changed = changed
        self._watched: dict[str, trio.CancelScope] = {}

    def watched(self) -> tuple[str, ...]:
        """Return whose links are watched."""
        return tuple(self._watched)

    async def link_to(self, entity: str) -> str | None:
        """Return the live link that leads to an entity now; None: none does."""
        return await self._registry.find_link(entity, _UNKNOWN, is_wanted=False)

    async def speaks_for(self, link: str, part: str, entity: str) -> bool:
        """Return whether a part of the runtime at a link's other end speaks for an entity.

        It does not if that cannot be found out in time.

        Args:
            link: Name of the link.
            part: Address of the sending part.
            entity: Address of the entity.
        """
        with trio.move_on_after(WITNESS_TIMEOUT):
            return await self._registry.speaks_for(link, part, entity)
        return False

    def watch(self, entity: str, known: str | None, *, is_wanted: bool = False) -> None:
        """Report each other link that leads to an entity from now on. Idempotent.

        Args:
            entity: A runtime, or what lives in one.
            known: The link that is known to lead there.
            is_wanted: Whether a link may be set up for that.
        """
        if entity not in self._watched:
            scope = self._watched[entity] = trio.CancelScope()
            self._spawn(partial(self._watch, entity, known, scope, is_wanted=is_wanted))

    def unwatch(self, entity: str) -> None:
        """End it; repeated is fine."""
        scope = self._watched.pop(entity, None)
        if scope is not None:
            scope.cancel()

    async def _watch(
        self, entity: str, known: str | None, scope: trio.CancelScope, *, is_wanted: bool
    ) -> None:
        with scope, suppress(ActorStoppedError):
            while True:
                known = await self._registry.find_link(entity, known, is_wanted=is_wanted)
                self._changed(entity, known)
