"""Exchange of messages between the nodes of a domain; each node gets a message at most once."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import attrs
import trio

from actors.kit.supervision.actor import ActorRef
from actors.node.group.messages import (
    Carry,
    HandedOver,
    Head,
    Outgoing,
    pairs,
    read_head,
    write_head,
)
from actors.node.tables import ConsentEnded
from fsm.effects import Refused
from fsm.group.kinds import Holder, Kind
from fsm.limits.shares import Share, UserQueue, user_of
from fsm.session.node_session_io import OutboundMessage
from fsm.sync.subscriptions import HEEDED
from specs.addresses.address import domain_of
from specs.identity import READ
from specs.limits.group import GROUP_TERM
from specs.limits.node import CARRIED_HOPS, CARRIED_MESSAGES, CARRIED_WAITING, HAND_OVER_TIMEOUT
from specs.message import Message
from specs.reply_code import Code, DropReason
from specs.trace import Op
from transports.codec import BadLine, decode_line

if TYPE_CHECKING:
    from actors.node.group.group import Group
    from specs.dialects.dialect import Dialect


class PendingHandOvers:
    """Links of runtimes that have moved here from another node, which still sends older messages.

    Such a link gets new messages only after the older ones.

    Args:
        release: Ends the suspension of writes to a link.
    """

    def __init__(self, release: Callable[[int | None], None]) -> None:
        self._release: Final = release
        self._awaited: dict[str, tuple[str, int | None, float]] = {}

    def begin(self, runtime: str, node: str, link: int | None, now: float) -> None:
        """Suspend writes to a link until another node has sent the messages that waited there.

        Args:
            runtime: Address of the runtime.
            node: The node that had the session of the runtime.
            link: Number of the link; None: there is none.
            now: Seconds on the host's clock.
        """
        self.end(runtime)
        # Within a lease term, the other node learns of the move, or this node loses its membership.
        self._awaited[runtime] = node, link, now + GROUP_TERM

    def note_written(self, key: str, now: float) -> None:
        """Shorten the wait for another node, if the written row shows that node the move.

        Args:
            key: Key of the row.
            now: Seconds on the host's clock.
        """
        kind, _, runtime = key.partition("/")
        awaited = self._awaited.get(runtime) if kind == Kind.SESSION else None
        if awaited is not None:
            node_id, link, until = awaited
            self._awaited[runtime] = node_id, link, min(until, now + HAND_OVER_TIMEOUT)

    def is_from(self, runtime: str, node: str) -> bool:
        """Return whether a node is the one that still has to send older messages of a runtime.

        Args:
            runtime: Address of the runtime.
            node: The sending node.
        """
        awaited = self._awaited.get(runtime)
        return awaited is not None and awaited[0] == node

    def end(self, runtime: str) -> None:
        """Resume writes to the link of a runtime, with or without the older messages."""
        awaited = self._awaited.pop(runtime, None)
        if awaited is not None:
            self._release(awaited[1])

    def lose(self, node: str) -> None:
        """Resume writes to the links that wait for messages of a node that has gone."""
        for runtime, (by, _, _) in tuple(self._awaited.items()):
            if by == node:
                self.end(runtime)

    def deadline(self) -> float:
        """Return when to call `tick`; infinity if no link waits."""
        return min((until for _, _, until in self._awaited.values()), default=math.inf)

    def tick(self, now: float) -> None:
        """Resume writes to links that have waited too long for another node.

        Args:
            now: Seconds on the host's clock.
        """
        for runtime, (_, _, until) in tuple(self._awaited.items()):
            if until <= now:
                self.end(runtime)


_HOMELESS: Final = "no node has the session of the receiver now"
_NOT_CARRIED: Final = "the engine of the domain cannot be reached now"
_OVERTAKEN: Final = "its sender or receiver has moved, and a later message came first"
_NOBODY: Final = "no session owns address"
_NOT_SUBSCRIBED: Final = "it has no subscriber any more"


def _outbox() -> UserQueue[Outgoing]:
    return UserQueue("messages that wait for a node", Share(CARRIED_MESSAGES, CARRIED_WAITING))


class Carrier:
    """Send messages to the other nodes of the domain, and deliver those that they send.

    Args:
        group: The node in its group.

    Attributes:
        hand_overs: Links that wait for older messages from other nodes.
    """

    def __init__(self, group: "Group") -> None:
        self.hand_overs: Final = PendingHandOvers(group.release)
        self._group: Final = group
        self._exchange: Final = group.exchange
        self._tables: Final = group.exchange.tables
        self._homes: Final = group.homes
        self._node: Final = group.membership.node
        self._domain: Final = group.exchange.tables.addresses.domain
        self._trace: Final = group.trace
        self._counters: Final = group.trace.counters
        self._outboxes: Final = defaultdict[str, UserQueue[Outgoing]](_outbox)

    # ---- messages to other nodes

    def send(
        self,
        entry: OutboundMessage,
        by: str | None,
        runtimes: Sequence[str],
        nodes: Collection[str],
    ) -> Sequence[str]:
        """Send a message to other nodes; see `OtherNodes.send`."""
        sessions = self._exchange.sessions
        home = 0
        if by is not None:
            home = self._homes.home_of(by)
            if self._homes.is_late(by, entry.message, home):
                self._answer(entry.message, _OVERTAKEN, is_alone=True)
                return ()
        if not nodes and all(each in sessions for each in runtimes):
            return runtimes
        if nodes and entry.message.is_request and self._group.objection() is not None:
            # Without the engine, only the receivers at this node would get the request.
            self._answer(entry.message, _NOT_CARRIED, is_alone=True)
            return ()
        away = [
            each for each in runtimes if each not in sessions and self._homes.row(each) is not None
        ]
        is_alone = len(nodes) + len(runtimes) == 1
        if is_alone and not nodes and not away and domain_of(entry.message.to) == self._domain:
            # The address has an owner whose session is not known here.
            if not self._group.look_up(entry.message, by):
                self._answer_not_found(entry.message, _NOBODY)
            return ()
        for runtime in away:
            self._carry(runtime, entry, self._head(runtime, by, home, is_alone=is_alone))
        for node in nodes:
            self._send(node, self._head(None, by, home, is_alone=is_alone), entry)
        return [each for each in runtimes if each not in away]

    def _carry(self, runtime: str, entry: OutboundMessage, head: Head) -> None:
        """Send a message to the node that has a runtime's session; without such a node, refuse it.

        Args:
            runtime: The runtime, which has no session here.
            entry: The message.
            head: Head of the message.
        """
        node = self._homes.node_of(runtime)
        if node is None or node == self._node:
            self._answer(entry.message, _HOMELESS, is_alone=head.is_alone)
        else:
            self._send(node, head, entry)

    def end_consent(self, ended: ConsentEnded) -> None:
        """Tell the node of a runtime that the consent to an observer has ended."""
        node = self._homes.node_of(ended.runtime)
        if node is not None and self._put(node, Outgoing(write_head(ended))) is not None:
            self._counters.drop(DropReason.OVERFLOW)

    def hand_over(self, runtime: str) -> None:
        """Tell the node of a runtime that all messages that waited here for it were sent."""
        node = self._homes.node_of(runtime)
        # If the queue is full, the other node resumes its writes after a timeout.
        if node is not None:
            self._put(node, Outgoing(write_head(HandedOver(runtime))))

    def _put(self, node: str, message: Outgoing) -> Refused | None:
        user = "" if message.entry is None else user_of(message.entry.message, self._domain)
        return self._outboxes[node].put(message, user, message.size)

    def _head(self, to: str | None, by: str | None, home: int, *, is_alone: bool) -> Head:
        return Head(self._node, self._group.membership.boot, to, by, home, is_alone=is_alone)

    def _send(self, node: str, head: Head, entry: OutboundMessage) -> None:
        refused = self._put(node, Outgoing(write_head(head), entry, head.is_alone))
        if refused is None:
            self._trace.record_carried(Op.XMIT, entry.message, f"{self._node}>{node}", head.to)
        else:
            reason = DropReason.OVERFLOW
            self._answer(entry.message, refused.why, reason, is_alone=head.is_alone)

    def _answer(
        self,
        message: Message,
        why: str,
        reason: DropReason = DropReason.SESSION_GONE,
        *,
        is_alone: bool,
    ) -> None:
        """Refuse a message that has no receiver; only count a drop if other nodes got it, too."""
        if is_alone:
            self._exchange.undeliverable(message, Code.UNAVAILABLE, why, reason)
        else:
            self._trace.drop(message, reason)

    def _answer_all(self, messages: Iterable[Outgoing], why: str) -> None:
        for message in messages:
            if message.entry is not None:
                self._answer(message.entry.message, why, is_alone=message.is_alone)

    # ---- calls of the bus after each batch of messages

    @property
    def waiting(self) -> int:
        """Number of messages in the queues to other nodes."""
        return sum(map(len, self._outboxes.values()))

    @property
    def is_settled(self) -> bool:
        """True if the queues to other nodes are empty."""
        return not any(self._outboxes.values())

    def settle(self, link: ActorRef[Carry]) -> None:
        """Publish the queued messages by the engine, those for the same node together.

        Args:
            link: Publishes the messages.
        """
        self._trace.record_losses()
        for node, outbox in self._outboxes.items():
            if outbox and link.try_tell((node, outbox.items)):
                outbox.take()

    def lose(self, node: str) -> None:
        """Remove the queue to a node that has gone, and refuse its messages."""
        self.hand_overs.lose(node)
        outbox = self._outboxes.pop(node, None)
        self._answer_all(() if outbox is None else outbox.items, _HOMELESS)

    def lose_all(self) -> None:
        """Refuse the messages for all nodes, because this node has lost its membership."""
        for node in tuple(self._outboxes):
            self.lose(node)
        self._homes.forget_order()

    # ---- messages from other nodes

    def take_messages(self, payloads: Sequence[bytes]) -> None:
        """Handle messages that other nodes have sent, in order."""
        self._trace.record_losses()
        for payload in payloads:
            for head, line in pairs(payload):
                self._take_pair(head, line)

    def return_unsent(self, messages: Sequence[Outgoing]) -> None:
        """Refuse messages that the engine has not published."""
        self._trace.record_losses()
        self._answer_all(messages, _NOT_CARRIED)

    def _take_pair(self, head: bytes, line: bytes) -> None:
        parsed = read_head(head)
        match parsed:
            case Head():
                message = decode_line(line, READ)
                if isinstance(message, BadLine):
                    self._counters.drop(DropReason.MALFORMED)
                elif self._group.membership.takes_in(Holder(parsed.node, parsed.boot)):
                    self._deliver_carried(parsed, message, line)
                else:
                    link = f"{parsed.node}>{self._node}"
                    self._trace.drop(message, DropReason.SESSION_GONE, link=link)
            case ConsentEnded():
                self._tables.end_consent_here(parsed)
            case HandedOver(runtime):
                self.hand_overs.end(runtime)
            case None:
                self._counters.drop(DropReason.MALFORMED)

    def _deliver_carried(self, head: Head, message: Message, line: bytes) -> None:
        """Deliver a message from another node, which has checked the sender, to local sessions."""
        self._trace.record_carried(Op.RCV, message, f"{head.node}>{self._node}", head.to)
        if head.by is not None:
            is_passed_on = head.hops > 1
            if self._homes.is_late(head.by, message, head.home, is_passed_on=is_passed_on):
                self._answer(message, _OVERTAKEN, is_alone=head.is_alone)
                return
            if message.type in HEEDED:
                self._tables.heed(message, head.by, trio.current_time())
        if head.to is None:
            self._deliver_published(head, message, line)
        else:
            self._deliver_to(head.to, head, message, line)

    def _deliver_to(self, runtime: str, head: Head, message: Message, line: bytes) -> None:
        """Deliver a message to a runtime, or forward it to the node that has the session now."""
        if runtime in self._exchange.sessions:
            self._deliver_to_session(runtime, head.node, OutboundMessage(message, line))
        elif head.hops < CARRIED_HOPS and self._homes.node_of(runtime) is not None:
            own, hops = self._group.membership.holder, head.hops + 1
            forwarded = attrs.evolve(head, node=own.node, boot=own.boot, to=runtime, hops=hops)
            self._carry(runtime, OutboundMessage(message, line), forwarded)
        elif head.is_alone:
            self._answer_not_found(message, _NOBODY)
        else:
            self._trace.drop(message, DropReason.NO_TARGET)

    def _deliver_to_session(self, runtime: str, node: str, entry: OutboundMessage) -> None:
        """Deliver a message to a session; messages that waited at its former node come first."""
        port = self._exchange.sessions[runtime].port
        if port is not None and self.hand_overs.is_from(runtime, node):
            self._exchange.trace.hop(Op.XMIT, entry.message, link=port.name)
            port.refill((entry,))
        else:
            self._exchange.deliver_to((runtime,), entry)

    def _deliver_published(self, head: Head, message: Message, line: bytes) -> None:
        runtimes = tuple(self._tables.subscriptions.subscribers(message.to))
        if runtimes:
            self._exchange.trace.hop(Op.PUBLISH, message, targets=len(runtimes))
            spelt: dict[Dialect, bytes] | None = {} if len(runtimes) > 1 else None
            self._exchange.deliver_to(runtimes, OutboundMessage(message, line, spelt))
        elif not head.is_alone:
            return
        elif (owner := self._tables.routing.find_late_receiver(message, head.by)) is not None:
            self._deliver_to(owner, head, message, line)  # it will subscribe again
        else:
            self._answer_not_found(message, _NOT_SUBSCRIBED)

    def _answer_not_found(self, message: Message, why: str) -> None:
        self._exchange.undeliverable(message, Code.NOT_FOUND, why, DropReason.NO_TARGET)
