"""Messages from node to node of a domain: one hop, once for all receivers at a node."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import attrs
import trio

from actors.kit.supervision.actor import ActorRef
from actors.node.group.link import HeldLinks, LeftBehind
from actors.node.group.messages import (
    Carry,
    HandedOver,
    Head,
    Outgoing,
    Withdrawal,
    pairs,
    read_head,
    write_head,
)
from actors.node.group.trace import GroupTrace
from actors.node.session.exchange import Exchange
from fsm.effects import Refused
from fsm.group.homes import Homes
from fsm.group.kinds import Holder
from fsm.group.membership import MembershipCore
from fsm.limits.shares import Share, UserQueue, user_of
from fsm.session.node_session_io import OutboundMessage
from fsm.sync.subscriptions import HEEDED
from specs.addresses.address import domain_of
from specs.identity import READ
from specs.limits.node import CARRIED_HOPS, CARRIED_MESSAGES, CARRIED_WAITING
from specs.message import Message
from specs.reply_code import Code, DropReason
from specs.trace import Op
from transports.codec import BadLine, decode_line

if TYPE_CHECKING:
    from specs.dialects.dialect import Dialect


_HOMELESS: Final = "no node has the session of the receiver now"
_NOT_CARRIED: Final = "the engine of the domain cannot be reached now"
_OVERTAKEN: Final = "its sender or receiver has moved, and a later message came first"
_NOBODY: Final = "no session owns address"
_NOT_SUBSCRIBED: Final = "it has no subscriber any more"


def _outbox() -> UserQueue[Outgoing]:
    return UserQueue("messages that wait for a node", Share(CARRIED_MESSAGES, CARRIED_WAITING))


class Carrier:
    """Gives messages to other nodes, and takes in theirs; part of the bus's task.

    Args:
        exchange: The sessions of this node.
        homes: The sessions of other nodes.
        membership: The membership of this node.
        trace: Of what comes from other nodes and goes to them.
        held: The links that wait for rows.

    Attributes:
        left_behind: The links that wait for what other nodes hand over.
    """

    def __init__(
        self,
        exchange: Exchange,
        homes: Homes,
        membership: MembershipCore,
        trace: GroupTrace,
        held: HeldLinks,
    ) -> None:
        self.left_behind: Final = LeftBehind(held)
        self._exchange: Final = exchange
        self._tables: Final = exchange.tables
        self._homes: Final = homes
        self._membership: Final = membership
        self._order: Final = homes.order
        self._node: Final = trace.node
        self._domain: Final = exchange.tables.addresses.domain
        self._trace: Final = trace
        self._counters: Final = trace.component.counters
        self._outboxes: Final = defaultdict[str, UserQueue[Outgoing]](_outbox)

    # ---- messages to other nodes

    def carried(
        self,
        entry: OutboundMessage,
        by: str | None,
        runtimes: Sequence[str],
        nodes: Collection[str],
    ) -> Sequence[str]:
        """Give a message to other nodes; return those of its receivers that are not elsewhere.

        Args:
            entry: The message.
            by: Runtime whose session brought it; None: this node itself made it.
            runtimes: The runtimes that are to get it.
            nodes: The nodes whose subscribers are to get it.
        """
        sessions = self._exchange.sessions
        home = 0
        if by is not None:
            home = self._order.home(by)
            if self._order.is_late(by, entry.message, home):
                self._answer(entry.message, _OVERTAKEN, is_alone=True)
                return ()
        if not nodes and all(one in sessions for one in runtimes):
            return runtimes
        if nodes and entry.message.is_request and self._exchange.objection() is not None:
            # Of the runtimes that are to have the same, some would get it and others not.
            self._answer(entry.message, _NOT_CARRIED, is_alone=True)
            return ()
        away = [one for one in runtimes if one not in sessions and self._homes.row(one) is not None]
        is_alone = len(nodes) + len(runtimes) == 1
        if is_alone and not nodes and not away and domain_of(entry.message.to) == self._domain:
            # It has an owner, whose session is not known.
            if not self._exchange.look_up(entry.message, by):
                self._nobody(entry.message, _NOBODY)
            return ()
        for runtime in away:
            self.carry(runtime, entry, self._head(runtime, by, home, is_alone=is_alone))
        for node in nodes:
            self._send(node, self._head(None, by, home, is_alone=is_alone), entry)
        return [one for one in runtimes if one not in away]

    def carry(self, runtime: str, entry: OutboundMessage, head: Head | None = None) -> None:
        """Give a message to the node of a runtime; answer or count it if there is none.

        Args:
            runtime: The runtime, which has no session here.
            entry: The message.
            head: Its head; None: this node made it, and nobody else gets it.
        """
        if head is None:
            head = self._head(runtime, None, 0, is_alone=True)
        node = self._homes.node_of(runtime)
        if node is None or node == self._node:
            self._answer(entry.message, _HOMELESS, is_alone=head.is_alone)
        else:
            self._send(node, head, entry)

    def lapsed(self, entity: str, runtime: str, observer: str, *, is_expired: bool) -> None:
        """Have the node of a runtime end the consent to an observer there.

        Args:
            entity: Address of the object.
            runtime: Address of the runtime, which has its session elsewhere.
            observer: Address of the observer.
            is_expired: Whether its lease is over; False: its owner shuts it out.
        """
        node = self._homes.node_of(runtime)
        if node is None:
            return
        said = Withdrawal(entity, runtime, observer, is_expired)
        if self._put(node, Outgoing(write_head(said))) is not None:
            self._counters.drop(DropReason.OVERFLOW)

    def hand_over(self, runtime: str) -> None:
        """Tell the node of a runtime that all that waited here was sent."""
        node = self._homes.node_of(runtime)
        # If there is no room, the node waits for a while, and not for ever.
        if node is not None:
            self._put(node, Outgoing(write_head(HandedOver(runtime))))

    def _put(self, node: str, one: Outgoing) -> Refused | None:
        user = "" if one.entry is None else user_of(one.entry.message, self._domain)
        return self._outboxes[node].put(one, user, one.size)

    def _head(self, to: str | None, by: str | None, home: int, *, is_alone: bool) -> Head:
        return Head(self._node, self._membership.boot, to, by, home, is_alone=is_alone)

    def _send(self, node: str, head: Head, entry: OutboundMessage) -> None:
        refused = self._put(node, Outgoing(write_head(head), entry, head.is_alone))
        if refused is None:
            self._trace.hop(Op.XMIT, entry.message, f"{self._node}>{node}", head.to)
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
        """Answer a request that nobody gets; if others get it, one of these answers."""
        if is_alone:
            self._exchange.undeliverable(message, Code.UNAVAILABLE, why, reason)
        else:
            self._trace.component.drop(message, reason)

    def _answer_all(self, messages: Iterable[Outgoing], why: str) -> None:
        for one in messages:
            if one.entry is not None:
                self._answer(one.entry.message, why, is_alone=one.is_alone)

    # ---- turns of the bus

    @property
    def waiting(self) -> int:
        """Number of messages that wait for other nodes."""
        return sum(map(len, self._outboxes.values()))

    @property
    def is_settled(self) -> bool:
        """True if nothing waits."""
        return not any(self._outboxes.values())

    def settle(self, link: ActorRef[Carry]) -> None:
        """Publish what waits, in one for each node.

        Args:
            link: Publishes it.
        """
        self._trace.losses()
        for node, outbox in self._outboxes.items():
            if outbox and link.try_tell((node, outbox.items)):
                outbox.take()

    def lose(self, node: str) -> None:
        """Answer what waits for a node that is gone."""
        self.left_behind.lose(node)
        outbox = self._outboxes.pop(node, None)
        self._answer_all(() if outbox is None else outbox.items, _HOMELESS)

    def lose_all(self) -> None:
        """Count what waits for any node: this one is no member any more."""
        for node in tuple(self._outboxes):
            self.lose(node)
        self._order.forget()

    # ---- news

    def take_messages(self, payloads: Sequence[bytes]) -> None:
        """Take in what other nodes sent, in order."""
        self._trace.losses()
        for payload in payloads:
            for head, line in pairs(payload):
                self._came(head, line)

    def return_unsent(self, messages: Sequence[Outgoing]) -> None:
        """Answer what the engine did not take."""
        self._trace.losses()
        self._answer_all(messages, _NOT_CARRIED)

    def _came(self, head: bytes, line: bytes) -> None:
        about = read_head(head)
        match about:
            case Head():
                message = decode_line(line, READ)
                if isinstance(message, BadLine):
                    self._counters.drop(DropReason.MALFORMED)
                elif self._membership.takes_in(Holder(about.node, about.boot)):
                    self._taken_in(about, message, line)
                else:
                    link = f"{about.node}>{self._node}"
                    self._trace.component.drop(message, DropReason.SESSION_GONE, link=link)
            case Withdrawal(entity, runtime, observer, is_expired):
                self._withdrawn(entity, runtime, observer, is_expired=is_expired)
            case HandedOver(runtime):
                self.left_behind.over(runtime)
            case None:
                self._counters.drop(DropReason.MALFORMED)

    def _withdrawn(self, entity: str, runtime: str, observer: str, *, is_expired: bool) -> None:
        if is_expired:
            self._tables.lapse(entity, runtime, observer)
        else:
            self._tables.subscriptions.withdraw(entity, runtime, observer)

    def _taken_in(self, head: Head, message: Message, line: bytes) -> None:
        """Give a message to local sessions; its sender was admitted at the node that sent it."""
        self._trace.hop(Op.RCV, message, f"{head.node}>{self._node}", head.to)
        if head.by is not None:
            is_passed_on = head.hops > 1
            if self._order.is_late(head.by, message, head.home, is_passed_on=is_passed_on):
                self._answer(message, _OVERTAKEN, is_alone=head.is_alone)
                return
            if message.type in HEEDED:
                self._tables.heed(message, head.by, trio.current_time())
        if head.to is None:
            self._published(head, message, line)
        else:
            self._addressed(head.to, head, message, line)

    def _addressed(self, runtime: str, head: Head, message: Message, line: bytes) -> None:
        """Give a message to a runtime, or pass it on to the node that has its session now."""
        if runtime in self._exchange.sessions:
            self._give(runtime, head.node, OutboundMessage(message, line))
        elif head.hops < CARRIED_HOPS and self._homes.node_of(runtime) is not None:
            here, hops = self._membership.holder, head.hops + 1
            passed = attrs.evolve(head, node=here.node, boot=here.boot, to=runtime, hops=hops)
            self.carry(runtime, OutboundMessage(message, line), passed)
        elif head.is_alone:
            self._nobody(message, _NOBODY)
        else:
            self._trace.component.drop(message, DropReason.NO_TARGET)

    def _give(self, runtime: str, node: str, entry: OutboundMessage) -> None:
        """Give a message to a session; what the runtime left at another node comes first."""
        port = self._exchange.sessions[runtime].port
        if port is not None and self.left_behind.is_from(runtime, node):
            self._exchange.trace.hop(Op.XMIT, entry.message, link=port.name)
            port.refill((entry,))
        else:
            self._exchange.hand_out_to((runtime,), entry)

    def _published(self, head: Head, message: Message, line: bytes) -> None:
        runtimes = tuple(self._tables.subscriptions.subscribers(message.to))
        if runtimes:
            self._exchange.trace.hop(Op.PUBLISH, message, targets=len(runtimes))
            spelt: dict[Dialect, bytes] | None = {} if len(runtimes) > 1 else None
            self._exchange.hand_out_to(runtimes, OutboundMessage(message, line, spelt))
        elif not head.is_alone:
            return
        elif (owner := self._tables.routing.unsubscribed(message, head.by)) is not None:
            self._addressed(owner, head, message, line)  # it has moved, and sets its paths anew
        else:
            self._nobody(message, _NOT_SUBSCRIBED)

    def _nobody(self, message: Message, why: str) -> None:
        self._exchange.undeliverable(message, Code.NOT_FOUND, why, DropReason.NO_TARGET)
