"""The children of the objects that this runtime reports (SYN-24, M-48..M-50).

A message of a creator comes here first. What counts is kept and passed on to the reporter,
which answers a new child; whatever the reporter itself creates is answered here. So a child
that was acknowledged is kept, and is in every snapshot from then on. The functions at the top
read bodies about children, and write them.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias, final

import attrs
import trio

from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.delivery import Delivery
from actors.runtime.sync.context import SyncContext
from actors.runtime.sync.reporter.links import link_of
from fsm.effects import Refused
from fsm.sync.children import Act, ChildOp, ChildSet, Kept, children_in, op_in, op_of
from fsm.sync.leases import IsObserved, RepeatTimes
from fsm.sync.reporter import ReportedObject
from fsm.sync.value.json import NotJsonError, as_json
from fsm.sync.value.value import check_path
from specs.bodies.object import (
    Child,
    ChildAttribute,
    ChildEnd,
    ChildName,
    ChildReport,
)
from specs.bodies.sync import DataObject
from specs.child import RESOURCES, children_addresses
from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject
from specs.limits.sync import REPEAT_LAST
from specs.message import Message, MessageType
from specs.reply_code import Code, DropReason
from specs.trace import Op
from transports.bodies import read_body, write_body

_VERBS: Final = {
    Act.CREATE: MessageType.CREATE,
    Act.UPDATE: MessageType.UPDATE,
    Act.DELETE: MessageType.DELETE,
}
"""The verb by which each thing is said."""


def read_op(message: Message) -> ChildOp:
    """Read what a message does to a child of its sender.

    Raises:
        BadMessageError: It is none, or does something to the child of another.
    """
    if message.type is MessageType.DELETE and "attribute" in message.body:
        check_path(read_body(message, ChildAttribute).attribute)
    elif message.type is MessageType.DELETE:
        read_body(message, ChildName)
    else:
        as_child_value(read_body(message, Child).value)
    op = op_in(message)
    if op is None:
        raise BadMessageError("not the child reporter: only its creator writes", Code.FORBIDDEN)
    return op


def read_report(message: Message) -> ChildOp:
    """Read what the reporter's end says that a creator has done.

    Raises:
        BadMessageError: It is about no child.
    """
    value: Json = None
    body: ChildReport | ChildEnd
    if message.type is MessageType.DELETE:
        body = read_body(message, ChildEnd)
    else:
        body = read_body(message, ChildReport)
        value = as_child_value(body.value)
    op = op_of(body.resource, body.version, value)
    if op is None or (value is None) != (message.type is MessageType.DELETE):
        raise BadMessageError("no child is reported")
    return op


def as_child_value(value: object) -> Json:
    """Return a copy of a value as every peer would read it.

    Raises:
        BadMessageError: It is no JSON, or is nested too deep.
    """
    try:
        return as_json(value, (), lambda part: part)
    except NotJsonError as exc:
        raise BadMessageError(f"the value of a child: {exc}") from exc


def child_message(op: ChildOp, to: str) -> Message:
    """Write what its creator does to a child.

    Args:
        op: The operation.
        to: Address of the children.
    """
    verb = _VERBS[op.act]
    if op.removes is not None:
        verb, body = MessageType.DELETE, write_body(ChildAttribute(op.name, op.removes, op.base))
    elif op.act is Act.DELETE:
        body = write_body(ChildName(op.name))
    else:
        body = write_body(Child(op.name, op.value))
    return Message(op.version, verb, op.creator, to, body)


_TRACED: Final = {Act.CREATE: Op.UPD, Act.UPDATE: Op.UPD, Act.DELETE: Op.DEL}

Observes: TypeAlias = Callable[[str, str], bool]
"""Says whether a component observes an object."""

Direct: TypeAlias = Callable[[str], frozenset[str]]
"""Returns the runtimes that hear of an object by links."""

_NOT_OBSERVER = Refused(Code.FORBIDDEN, "only observers and the reporter write children")
_GONE = Refused(Code.NOT_FOUND, "no such object")


@final
class ReportedChildren:
    """The children of every object reported here.

    Args:
        context: Context of the sync manager.
        direct: The runtimes that do not hear creators themselves.

    Attributes:
        observes: Who that has to do with an object reported here observes it, too.
    """

    def __init__(self, context: SyncContext, direct: Direct) -> None:
        self.observes: Observes = lambda _url, _who: False
        self._context = context
        self._direct = direct
        self._sets: dict[str, ChildSet] = {}
        self._answering: dict[str, str] = {}
        self._signs = RepeatTimes()

    # --- objects come and go --------------------------------------------------------------

    def open(self, created: DataObject, listener: ActorRef[Delivery]) -> None:
        """Keep the children of a new object, and those that it has already.

        Args:
            created: The object.
            listener: Receiver of the messages.
        """
        children = self._sets[created.url] = ChildSet()
        if created.children_objects is not None:
            children.become(children_in(_of_resource(created.children_objects)))
        for address in children_addresses(created.url):
            self._context.bus.open_address(address, listener)
        # The reporter answers for new children.
        self._answering[created.url] = created.reporter
        for address in children_addresses(created.url):
            self._context.bus.grant(address, created.reporter)
            # It gets reports from here, of what counts only, whether it observes or not.
            self._context.bus.unfollow(address, created.reporter)

    def _answers_no_more(self, url: str) -> None:
        """Deliver children to a former reporter that observes like to all observers."""
        before = self._answering.pop(url, None)
        if before is None:
            return
        for address in children_addresses(url):
            self._context.bus.revoke(address, before)
            if self.observes(url, before):
                self._context.bus.follow(address, before)

    def answering(self, url: str) -> str | None:
        """Return the local reporter of an object; None: there is none."""
        return self._answering.get(url)

    def close(self, gone: DataObject, listener: ActorRef[Delivery]) -> None:
        """Forget the children: they die with their object; repeated is fine.

        Args:
            gone: The deleted object.
            listener: Receiver of the messages.
        """
        self._sets.pop(gone.url, None)
        self._signs.forget(gone.url)
        self._answers_no_more(gone.url)
        for address in children_addresses(gone.url):
            self._context.bus.close_address(address, listener)

    def with_children(self, snapshot: DataObject) -> DataObject:
        """Return the whole object with its children, if there is room.

        An observer that lacks them notices it by their digest, and reads again.
        """
        children = self._sets.get(snapshot.url)
        if children is None or not children_addresses(snapshot.url):
            return snapshot
        if not children.fits_beside(snapshot.data):
            return snapshot
        return attrs.evolve(snapshot, children_objects={RESOURCES: children.shown()})

    def shown_to_observer(self, snapshot: DataObject) -> DataObject:
        """Return the whole object for an observer that is let in: it knows the children now."""
        self._signs.observed(snapshot.url, trio.current_time())
        return self.with_children(snapshot)

    # --- what is said of children ---------------------------------------------------------

    def on_message(self, reported: ReportedObject, message: Message) -> None:
        """Take what came to the address of an object's children.

        Args:
            reported: Core of the object.
            message: The message.
        """
        of = reported.snapshot
        if message.from_ == of.url:
            # Its own sign, which it does not need.
            return
        try:
            op = read_op(message)
        except BadMessageError as exc:
            self._refuse(message, Refused(exc.code, exc.reason))
            return
        is_there = op.name in self._sets.get(of.url, ())
        taken = self._take(reported, op)
        if isinstance(taken, Refused):
            self._refuse(message, taken)
            return
        if taken:
            self._trace(of.url, op, is_there=is_there)
            self._keep(of.url)
            self._signs.begin(of.url, trio.current_time(), REPEAT_LAST)
        is_by_node = link_of(message) is None
        if taken:
            self._report(of, op, is_by_node=is_by_node)
        if is_by_node:
            self._pass_on(of.reporter, message)
        elif message.is_request:
            self._context.answer(message, Code.OK, source=self._context.runtime)

    def _take(self, reported: ReportedObject, op: ChildOp) -> Refused | bool:
        children = self._sets.get(reported.snapshot.url)
        if children is None or reported.is_deleted:
            return _GONE
        if op.creator != reported.snapshot.reporter and not reported.is_observed_by(op.creator):
            return _NOT_OBSERVER
        return children.take(op)

    def _keep(self, url: str) -> None:
        """Have the children of a stored object written, before they are sent."""
        self._context.gate.keep_children(url, {RESOURCES: self._sets[url].shown()})

    def _refuse(self, message: Message, refusal: Refused) -> None:
        if message.is_request:
            refused: JsonObject = {"description": refusal.why, "source": self._context.runtime}
            self._context.answer(message, refusal.code, **refused)
        else:
            self._context.dropped(message, DropReason.DENIED)

    def _report(self, of: DataObject, op: ChildOp, *, is_by_node: bool) -> None:
        """Report what counts to the runtimes that do not hear the creator."""
        kept, direct = self._sets[of.url].find(op.name), self._direct(of.url)
        if not is_by_node:
            spread = partial(self._report_to_all, of, op, kept)
            if self._context.gate.is_dirty(of.url):
                self._context.gate.hold(spread)
            else:
                spread()
        elif direct:
            # The node has spread it to all others.
            self._context.publish(self._report_of(of.url, op, kept), direct, direct)

    def _report_to_all(self, of: DataObject, op: ChildOp, kept: Kept | None) -> None:
        """Report what a link has brought to all, the reporter included, in one message.

        It gets its id now: what goes meanwhile has smaller ones. The reporter gets no copy of it
        that the bus has not admitted.
        """
        report = self._report_of(of.url, op, kept)
        self._context.bus.send(report)
        if op.creator != of.reporter:
            self._context.bus.deliver(report, of.reporter)

    def _report_of(self, url: str, op: ChildOp, kept: Kept | None) -> Message:
        (address,) = children_addresses(url)
        if kept is None:
            body = write_body(ChildEnd(op.name, op.version))
            return self._context.request(MessageType.DELETE, address, body, url)
        body = write_body(ChildReport(op.name, kept.value, op.version))
        return self._context.request(MessageType.UPDATE, address, body, url)

    def _pass_on(self, reporter: str, message: Message) -> None:
        gate, bus = self._context.gate, self._context.bus
        if message.from_ != reporter and gate.holds(message):
            # It answers a new child at once: it must not hear of one that is not on disk.
            gate.hold(partial(bus.deliver, message, reporter))
        elif message.from_ != reporter:
            bus.deliver(message, reporter)
        elif message.is_request:
            self._context.answer(message, Code.OK, source=self._context.runtime)

    def _trace(self, url: str, op: ChildOp, *, is_there: bool) -> None:
        done = Op.ADD if op.act is Act.CREATE and not is_there else _TRACED[op.act]
        self._context.child(done, url, op.name, op.version, op.creator)

    # --- signs ----------------------------------------------------------------------------

    def deadline(self) -> float:
        """Return when `time_over` is due."""
        return self._signs.deadline()

    def time_over(self, is_observed: IsObserved) -> None:
        """Send the digest that is due, if there are observers."""
        url = self._signs.due(trio.current_time(), is_observed)
        if url is not None:
            sign = write_body(self._sets[url].sign)
            for address in children_addresses(url):
                event = self._context.request(MessageType.UPDATE, address, sign, url)
                self._context.post(event)


def _of_resource(shown: JsonObject) -> JsonObject | None:
    children = shown.get(RESOURCES)
    return children if isinstance(children, dict) else None
