"""The children of the objects that this runtime reports (SYN-24, M-48..M-50).

A message of a creator comes here first. A valid change is kept and passed on to the reporter, which
answers a new child; a child of the reporter itself is answered here. So an acknowledged child is
kept, and is in each later snapshot. The functions at the top read and write bodies about children.

Children that leave the window of the object, and those that its reporter deletes, are removed here.
"""

import math
from functools import partial
from typing import Final

import attrs
import trio

from actors.kit.supervision.actor import ActorRef, Delivery
from actors.runtime.sync.output import MANAGER, SyncOutput, link_of
from fsm.effects import Refused
from fsm.limits.timers import Alarms
from fsm.sync.child_history import ChildHistory
from fsm.sync.children import ChildOp, Kept
from fsm.sync.leases import RepeatTimes
from fsm.sync.reporter import ReportedObject
from fsm.sync.routes import ReportRoutes
from fsm.sync.stored import ChildrenKept
from fsm.sync.value.json import NotJsonError, as_json
from fsm.sync.value.value import check_path
from specs.bodies import object as bodies
from specs.child import children_addresses, split_name
from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject
from specs.limits.sync import CHILDREN_OF_OBJECT, REPEAT_LAST
from specs.message import Message, MessageType
from specs.reply_code import Code, DropReason
from specs.trace import Fact, Kind, Op
from transports.bodies import read_body, write_body

_ACTS: Final = frozenset({MessageType.CREATE, MessageType.UPDATE, MessageType.DELETE})


def read_op(message: Message) -> ChildOp:
    """Return the operation of a message on a child of its sender, which a router has checked.

    Raises:
        BadMessageError: It is no operation, or one on the child of another creator (I-D10).
    """
    act, value, removes, base = message.type, None, None, 0
    if act is MessageType.DELETE and "attribute" in message.body:
        removal = read_body(message, bodies.ChildAttribute)
        check_path(removal.attribute)
        act, name = MessageType.UPDATE, removal.resource
        removes, base = removal.attribute, removal.version
    elif act is MessageType.DELETE:
        name = read_body(message, bodies.ChildName).resource
    else:
        child = read_body(message, bodies.Child)
        name, value = child.resource, as_child_value(child.value)
    creator, number = split_name(name) or ("", 0)
    if creator != message.from_ or act not in _ACTS:
        raise BadMessageError("not the child reporter: only its creator writes", Code.FORBIDDEN)
    return ChildOp(act, name, creator, number, message.id, value, removes, base)


def read_report(message: Message) -> ChildOp:
    """Return the operation of a creator that the sync manager of the reporter has reported.

    Raises:
        BadMessageError: The report is about no child.
    """
    body: bodies.ChildReport | bodies.ChildEnd
    if message.type is MessageType.DELETE:
        act, value, body = MessageType.DELETE, None, read_body(message, bodies.ChildEnd)
    else:
        act, body = MessageType.UPDATE, read_body(message, bodies.ChildReport)
        value = as_child_value(body.value)
    child = split_name(body.resource)
    if child is None or (value is None) != (act is MessageType.DELETE):
        raise BadMessageError("no child is reported")
    return ChildOp(act, body.resource, *child, body.version, value)


def as_child_value(value: object) -> Json:
    """Return a copy of the value of a child, as JSON.

    Raises:
        BadMessageError: The value is no JSON, or is nested too deep.
    """
    try:
        return as_json(value, (), lambda part: part)
    except NotJsonError as exc:
        raise BadMessageError(f"the value of a child: {exc}") from exc


def child_message(op: ChildOp, to: str) -> Message:
    """Return the message for an operation on a child, from its creator.

    Args:
        op: The operation.
        to: Address of the children.
    """
    verb = op.act
    if op.removes is not None:
        verb, body = (
            MessageType.DELETE,
            write_body(bodies.ChildAttribute(op.name, op.removes, op.base)),
        )
    elif op.act is MessageType.DELETE:
        body = write_body(bodies.ChildName(op.name))
    else:
        body = write_body(bodies.Child(op.name, op.value))
    return Message(op.version, verb, op.creator, to, body)


class ReportedChildren:
    """The children of one object that is reported here.

    Args:
        out: The output of the sync manager.
        reported: Core of the object.
        routes: The links to observers of the object.
        signs: When the digest of the children of each object is published.
        alarms: When children of each object leave, or their removal is reported.

    Attributes:
        reporter: Local reporter of the object; None: the object is gone.
    """

    def __init__(
        self,
        out: SyncOutput,
        reported: ReportedObject,
        routes: ReportRoutes,
        signs: RepeatTimes,
        alarms: Alarms[str],
    ) -> None:
        self.reporter: str | None = None
        self._out, self._bus, self._reported = out, out.bus, reported
        self._routes, self._signs, self._alarms = routes, signs, alarms
        self._url = reported.snapshot.url
        self._addresses = children_addresses(self._url)
        window = reported.snapshot.children_window
        self._history = ChildHistory(window, out.config.clock_offset)
        self._children = self._history.children

    def open(self, created: bodies.DataObject, listener: ActorRef[Delivery]) -> None:
        """Start to maintain the children of the object, beginning with its present ones."""
        if created.children_objects is not None:
            self._history.restore(created.children_objects, trio.current_time())
            self._set_alarm(self._history.deadline())
        # The reporter answers for new children.
        self.reporter = created.reporter
        for address in self._addresses:
            self._bus.open_address(address, listener)
            self._bus.grant(address, created.reporter)
            # The reporter gets valid changes only, from here, whether it observes or not.
            self._bus.unfollow(address, created.reporter)

    def close(self, listener: ActorRef[Delivery]) -> None:
        """Stop to maintain the children, as the object was deleted. Idempotent."""
        reporter, self.reporter = self.reporter, None
        self._set_alarm(math.inf)
        for address in self._addresses:
            if reporter is not None:
                self._bus.revoke(address, reporter)
            self._bus.close_address(address, listener)

    def with_children(self, snapshot: bodies.DataObject) -> bodies.DataObject:
        """Return the whole object with its children, if a message has space for them.

        An observer without them detects the difference by their digest, and reads the object again.
        """
        is_shown = self.reporter is not None and self._addresses
        fits = self._children.fits_beside(snapshot.data)
        if not is_shown or not fits or len(self._children) > CHILDREN_OF_OBJECT:
            return snapshot
        return attrs.evolve(snapshot, children_objects=self._history.snapshot())

    def page(self, after: int) -> JsonObject | None:
        """Return a page of the children; None: the object has no window, and shows all.

        Args:
            after: Number of the last child before the page.
        """
        return None if self._children.window is None else self._history.page(after)

    def on_message(self, message: Message) -> None:
        """Handle a message to the address of the children."""
        if message.from_ == self._url:
            # The own digest of the object.
            return
        try:
            op = read_op(message)
        except BadMessageError as exc:
            self._refuse(message, exc.code, exc.reason)
            return
        is_new = op.name not in self._children
        result = self._take(op)
        if isinstance(result, Refused):
            self._refuse(message, result.code, result.why)
            return
        is_by_node = link_of(message) is None
        if result:
            change = Op.DEL if op.act is MessageType.DELETE else Op.UPD
            self._trace(Op.ADD if op.act is MessageType.CREATE and is_new else change, op)
            self._trace_end(self._history.trim(trio.current_time()))
            self._keep()
            self._signs.begin(self._url, trio.current_time(), REPEAT_LAST)
            self._report(op, is_by_node=is_by_node)
        if is_by_node:
            self._pass_on(message)
        elif message.is_request:
            self._out.answer(message, Code.OK, source=self._out.runtime)
        self._report_ended()

    def _keep(self) -> None:
        """Write the children of a stored object, before they are sent."""
        self._out.gate.keep_children(self._url, self._list_kept)

    def _list_kept(self) -> ChildrenKept | None:
        is_here = self.reporter is not None
        return ChildrenKept(self._url, self._history.for_store()) if is_here else None

    # --- removal ------------------------------------------------------------------------------

    def end(self, name: str) -> Refused | None:
        """Delete a child of any creator for the reporter, and report it at once."""
        version = kept.version if (kept := self._children.find(name)) else None
        if not self._history.end(name, trio.current_time()):
            return Refused(Code.NOT_FOUND, "no such child")
        self._trace_end([name], version)
        self._keep()
        self.send_sign()
        return None

    def time_over(self) -> None:
        """Remove the children that are too old, and report the removed ones if that is due."""
        ended = self._history.trim(trio.current_time())
        if ended:
            self._trace_end(ended)
            self._keep()
        self._report_ended()

    def _report_ended(self) -> None:
        while self._history.is_report_due(trio.current_time()):
            self.send_sign()
        self._set_alarm(self._history.deadline())

    def _set_alarm(self, when: float) -> None:
        for address in self._addresses:
            self._alarms.set(address, when)

    def _trace_end(self, names: list[str], version: int | None = None) -> None:
        """Trace that the object itself has removed children (I-D10)."""
        for name in names:
            key = f"{self._url}|{name}"
            self._out.trace(Fact(k=Kind.OBJ, op=Op.DEL, key=key, version=version, by=self._url))

    def _take(self, op: ChildOp) -> Refused | bool:
        reported = self._reported
        if self.reporter is None or reported.is_deleted:
            return Refused(Code.NOT_FOUND, "no such object")
        if op.creator != reported.snapshot.reporter and not reported.is_observed_by(op.creator):
            return Refused(Code.FORBIDDEN, "only observers and the reporter write children")
        return self._history.take(op, trio.current_time())

    def _trace(self, change: Op, op: ChildOp) -> None:
        """Trace a change of a child and its author (I-D10)."""
        key = f"{self._url}|{op.name}"
        self._out.trace(Fact(k=Kind.OBJ, op=change, key=key, version=op.version, by=op.creator))

    def _refuse(self, message: Message, code: Code, why: str) -> None:
        out, reason = self._out, DropReason.DENIED
        if message.is_request:
            out.answer(message, code, description=why, source=out.runtime)
            return
        out.counters.drop(reason, message, MANAGER)
        if out.tracer.hops:
            out.tracer.message(MANAGER, Op.DROP, message, reason=reason)

    def _report(self, op: ChildOp, *, is_by_node: bool) -> None:
        """Report a valid change to the runtimes that do not get the creator's message."""
        kept, direct = self._children.find(op.name), self._routes.direct
        if not is_by_node:
            self._out.when_stored(self._url, partial(self._report_to_all, op, kept))
        elif direct:
            # The node has sent the creator's message to all others.
            self._out.publish(self._report_of(op, kept), direct, direct)

    def _report_to_all(self, op: ChildOp, kept: Kept | None) -> None:
        """Report a change that a link has brought to all, the reporter included, in one message.

        The message gets its id now, as ids must rise. The reporter gets its copy after the bus has
        admitted the message.
        """
        report, reporter = self._report_of(op, kept), self._reported.snapshot.reporter
        self._bus.send(report)
        if op.creator != reporter:
            self._bus.deliver(report, reporter)

    def _report_of(self, op: ChildOp, kept: Kept | None) -> Message:
        (address,) = self._addresses
        if kept is None:
            body = write_body(bodies.ChildEnd(op.name, op.version))
            return self._out.request(MessageType.DELETE, address, body, self._url)
        body = write_body(bodies.ChildReport(op.name, kept.value, op.version))
        return self._out.request(MessageType.UPDATE, address, body, self._url)

    def _pass_on(self, message: Message) -> None:
        gate, reporter = self._out.gate, self._reported.snapshot.reporter
        if message.from_ == reporter:
            if message.is_request:
                self._out.answer(message, Code.OK, source=self._out.runtime)
        elif gate.holds(message):
            # The reporter answers a new child at once, so the child must be on disk before.
            gate.hold(partial(self._bus.deliver, message, reporter))
        else:
            self._bus.deliver(message, reporter)

    def send_sign(self) -> None:
        """Send the observers a checksum of the children, by which they notice lost changes.

        With the names of removed children it goes to the reporter, too, who does not observe.
        """
        report = self._history.report()
        for address in self._addresses:
            if isinstance(report, bodies.ChildrenEnded):
                self._out.when_stored(self._url, partial(self._send_ended, address, report))
            else:
                body = write_body(report)
                self._out.post(self._out.request(MessageType.UPDATE, address, body, self._url))

    def _send_ended(self, address: str, report: bodies.ChildrenEnded) -> None:
        """Send the report once it is true on disk, with an id of now, as ids must rise."""
        message = self._out.request(MessageType.UPDATE, address, write_body(report), self._url)
        self._bus.send(message)
        self._bus.deliver(message, self._reported.snapshot.reporter)
