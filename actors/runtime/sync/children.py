"""The children of the objects that this runtime reports (SYN-24, M-48..M-50).

A message of a creator comes here first. What counts is kept and passed on to the reporter,
which answers a new child; whatever the reporter itself creates is answered here. So a child
that was acknowledged is kept, and is in every snapshot from then on. The functions at the top
read bodies about children, and write them.
"""

from functools import partial
from typing import Final

import attrs
import trio

from actors.kit.supervision.actor import ActorRef, Delivery
from actors.runtime.sync.output import MANAGER, SyncOutput, link_of
from fsm.effects import Refused
from fsm.sync.children import ChildOp, ChildSet, Kept, children_in
from fsm.sync.leases import RepeatTimes
from fsm.sync.reporter import ReportedObject
from fsm.sync.routes import ReportRoutes
from fsm.sync.stored import ChildrenKept
from fsm.sync.value.json import NotJsonError, as_json
from fsm.sync.value.value import check_path
from specs.bodies import object as bodies
from specs.child import RESOURCES, children_addresses, split_name
from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject
from specs.limits.sync import REPEAT_LAST
from specs.message import Message, MessageType
from specs.reply_code import Code, DropReason
from specs.trace import Fact, Kind, Op
from transports.bodies import read_body, write_body

_ACTS: Final = frozenset({MessageType.CREATE, MessageType.UPDATE, MessageType.DELETE})


def read_op(message: Message) -> ChildOp:
    """Read what a message does to a child of its sender, which a router has checked.

    Raises:
        BadMessageError: It is none, or does something to the child of another (I-D10).
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
    """Read what the reporter's end says that a creator has done.

    Raises:
        BadMessageError: It is about no child.
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
        out: What the sync manager sends.
        reported: Core of the object.
        routes: The links by which observers hear of it, and no creator.
        signs: When the digest of the children of each object is published.

    Attributes:
        reporter: Local reporter of the object; None: the object is gone.
    """

    def __init__(
        self,
        out: SyncOutput,
        reported: ReportedObject,
        routes: ReportRoutes,
        signs: RepeatTimes,
    ) -> None:
        self.reporter: str | None = None
        self._out, self._bus, self._reported = out, out.bus, reported
        self._routes, self._signs = routes, signs
        self._url = reported.snapshot.url
        self._addresses = children_addresses(self._url)
        self._children = ChildSet()

    def open(self, created: bodies.DataObject, listener: ActorRef[Delivery]) -> None:
        """Keep the children of the object from now on, and those that it has already."""
        if created.children_objects is not None:
            shown = created.children_objects.get(RESOURCES)
            self._children.become(children_in(shown if isinstance(shown, dict) else None))
        # The reporter answers for new children.
        self.reporter = created.reporter
        for address in self._addresses:
            self._bus.open_address(address, listener)
            self._bus.grant(address, created.reporter)
            # It gets reports from here, of what counts only, whether it observes or not.
            self._bus.unfollow(address, created.reporter)

    def close(self, listener: ActorRef[Delivery]) -> None:
        """Forget the children: they die with their object. Idempotent."""
        before, self.reporter = self.reporter, None
        for address in self._addresses:
            if before is not None:
                self._bus.revoke(address, before)
            self._bus.close_address(address, listener)

    def with_children(self, snapshot: bodies.DataObject) -> bodies.DataObject:
        """Return the whole object with its children, if there is room.

        An observer that lacks them notices it by their digest, and reads again.
        """
        is_shown = self.reporter is not None and self._addresses
        if not is_shown or not self._children.fits_beside(snapshot.data):
            return snapshot
        return attrs.evolve(snapshot, children_objects={RESOURCES: self._children.shown()})

    def on_message(self, message: Message) -> None:
        """Take what came to the address of the children."""
        if message.from_ == self._url:
            # Its own sign, which it does not need.
            return
        try:
            op = read_op(message)
        except BadMessageError as exc:
            self._refuse(message, exc.code, exc.reason)
            return
        is_new = op.name not in self._children
        taken = self._take(op)
        if isinstance(taken, Refused):
            self._refuse(message, taken.code, taken.why)
            return
        is_by_node = link_of(message) is None
        if taken:
            done = Op.DEL if op.act is MessageType.DELETE else Op.UPD
            self._trace(Op.ADD if op.act is MessageType.CREATE and is_new else done, op)
            # Children of a stored object are written before they are sent.
            children: JsonObject = {RESOURCES: self._children.shown()}
            self._out.gate.keep(self._url, ChildrenKept(self._url, children))
            self._signs.begin(self._url, trio.current_time(), REPEAT_LAST)
            self._report(op, is_by_node=is_by_node)
        if is_by_node:
            self._pass_on(message)
        elif message.is_request:
            self._out.answer(message, Code.OK, source=self._out.runtime)

    def _take(self, op: ChildOp) -> Refused | bool:
        reported = self._reported
        if self.reporter is None or reported.is_deleted:
            return Refused(Code.NOT_FOUND, "no such object")
        if op.creator != reported.snapshot.reporter and not reported.is_observed_by(op.creator):
            return Refused(Code.FORBIDDEN, "only observers and the reporter write children")
        return self._children.take(op)

    def _trace(self, done: Op, op: ChildOp) -> None:
        """Trace a change of a child and its author (I-D10)."""
        key = f"{self._url}|{op.name}"
        self._out.trace(Fact(k=Kind.OBJ, op=done, key=key, version=op.version, by=op.creator))

    def _refuse(self, message: Message, code: Code, why: str) -> None:
        out, reason = self._out, DropReason.DENIED
        if message.is_request:
            out.answer(message, code, description=why, source=out.runtime)
            return
        out.counters.drop(reason, message, MANAGER)
        if out.tracer.hops:
            out.tracer.message(MANAGER, Op.DROP, message, reason=reason)

    def _report(self, op: ChildOp, *, is_by_node: bool) -> None:
        """Report what counts to the runtimes that do not hear the creator."""
        kept, direct = self._children.find(op.name), self._routes.direct
        if not is_by_node:
            self._out.when_stored(self._url, partial(self._report_to_all, op, kept))
        elif direct:
            # The node has spread it to all others.
            self._out.publish(self._report_of(op, kept), direct, direct)

    def _report_to_all(self, op: ChildOp, kept: Kept | None) -> None:
        """Report what a link has brought to all, the reporter included, in one message.

        It gets its id now: what goes meanwhile has smaller ones. The reporter gets no copy of it
        that the bus has not admitted.
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
            # It answers a new child at once: it must not hear of one that is not on disk.
            gate.hold(partial(self._bus.deliver, message, reporter))
        else:
            self._bus.deliver(message, reporter)

    def send_sign(self) -> None:
        """Send the digest of the children to the observers."""
        sign = write_body(self._children.sign)
        for address in self._addresses:
            self._out.post(self._out.request(MessageType.UPDATE, address, sign, self._url))
