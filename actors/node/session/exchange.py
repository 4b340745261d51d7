"""Sessions of a node, and the delivery of messages to them.

`Exchange` holds sessions and links. `Overload` closes links whose peers read too slowly
(RELIABILITY L1, L2). `Departure` shuts the node down in order. `UserNames` stores which runtime
names belong to which users. `resume` restores sessions and names of an earlier process. Only the
task of the bus calls this module.
"""

import math
from collections import defaultdict, deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, TypeAlias

import attrs
import trio

from actors.kit.ids import IdSource
from actors.kit.log import get_logger
from actors.node.components import Components
from actors.node.links.bounds import Bounds
from actors.node.links.connection import Connection, TurnWrites
from actors.node.messages import Component, RuntimeLeft
from actors.node.policy_hook import Asker
from actors.node.session.fan_out import FanOuts
from actors.node.session.foreign_routes import ForeignRoutes
from actors.node.session.other_nodes import OtherNodes
from actors.node.session.session import Session
from actors.node.state import file
from actors.node.tables import NodeAddresses, TableRules, Tables
from actors.node.trace import ComponentTrace, ground_of
from fsm.effects import Refused
from fsm.limits.shares import Share, UserShares
from fsm.limits.timers import Alarms
from fsm.machines import registration
from fsm.machines.session import State
from fsm.registry.records import Row
from fsm.session.node_session import LiveStatuses, ReturnTime, waiting_shares
from fsm.session.node_session_io import (
    Credentials,
    OutboundMessage,
    PeerForm,
)
from fsm.session.runtime_names import Change, NameForgotten, NameKept, Owner, RuntimeNames
from specs.addresses.address import is_node
from specs.identity import Identity
from specs.limits.group import GROUP_HANDOVER, GROUP_LINGER
from specs.limits.node import MAILBOX_RETRY, READ_OUT
from specs.limits.protocol import FAN_OUT_AT_ONCE, MAILBOX, MAX_ID
from specs.message import Message, position_of, refuse
from specs.reply_code import Code, DropReason, LinkEnd
from specs.trace import Op
from transports.codec import encode
from transports.errors import CloseReason

_log = get_logger("actors.node")

_SLOW: Final = "slow consumer"
_TOO_MUCH: Final = "too many messages wait in the node"


class Overload:
    """Free memory of the node by closing links, or dropping queues, of peers that do not read."""

    def __init__(self, exchange: "Exchange") -> None:
        self._exchange: Final = exchange
        self._is_shedding = False

    def overrun(self, session: Session, port: Connection, entry: OutboundMessage) -> None:
        """Close a link whose queue is full; its messages wait for the session's next link.

        Args:
            session: The session.
            port: Write end of the link.
            entry: The message.
        """
        _log.warning("slow consumer", runtime=session.core.runtime, link=port.name)
        unsent = port.cut(CloseReason.SLOW_CONSUMER)
        session.lose_link(port.number, _SLOW)
        self.keep(session, [*unsent, entry])

    def session_entries(self, unsent: Iterable[OutboundMessage]) -> list[OutboundMessage]:
        """Return the unwritten messages of a link that may be sent over the session's next link.

        Answers of session control are left out, since they make sense over their own link only. So
        are messages of the durable log, which are read from the log again.
        """
        manager = self._exchange.tables.addresses.session
        unsent = [entry for entry in unsent if position_of(entry.message) is None]
        kept = [entry for entry in unsent if entry.message.from_ != manager]
        for _ in range(len(unsent) - len(kept)):
            self._exchange.trace.counters.drop(DropReason.SESSION_GONE)
        return kept

    def keep(self, session: Session, entries: Sequence[OutboundMessage]) -> None:
        """Queue unwritten messages for a session's next link, in order, as far as room permits.

        Args:
            session: The session.
            entries: Messages in order.
        """
        exchange, runtime = self._exchange, session.core.runtime
        for entry in self.session_entries(entries):
            if exchange.sessions.get(runtime) is session:
                session.wait(entry)
            else:
                exchange.trace.not_written(entry.message, runtime)
                exchange.send_elsewhere(runtime, entry)

    def check(self) -> None:
        """Free an eighth of the node's memory budget if it is exceeded, largest users first.

        Requests that are dropped are answered, other messages counted. Answers can fill other
        queues, so the loop runs until there is room; a nested call does nothing.
        """
        budget = self._exchange.budget
        if self._is_shedding or not budget.is_exceeded:
            return
        self._is_shedding = True
        while budget.is_exceeded:
            used_before = budget.used
            for holder in budget.largest_first(self._holders()):
                self._shed_holder(holder)
            if budget.used >= used_before:
                break
        self._is_shedding = False

    def _holders(self) -> "Iterator[tuple[float, Connection | Session]]":
        """Yield each link or session that holds messages, with the total of its user.

        The user with the most messages comes first, with the largest holder first. Holders that
        share a message are adjacent, because its memory is freed only when all of them have dropped
        it.
        """
        exchange = self._exchange
        holders: list[tuple[Iterable[OutboundMessage], int, str, Connection | Session]] = [
            *(
                (port.held, port.framed, port.runtime or port.name, port)
                for port in exchange.ports.values()
            ),
            *(
                (session.core.waiting, 0, runtime, session)
                for runtime, session in exchange.sessions.items()
            ),
        ]
        groups: dict[int, list[tuple[float, str, Connection | Session]]] = {}
        users = defaultdict[str, float](float)
        for entries, framed, runtime, holder in holders:
            first_entry = next(iter(entries), None)
            if first_entry is not None:
                share = framed + exchange.budget.share(entries)
                user = exchange.names.user_of(runtime)
                users[user] += share
                groups.setdefault(id(first_entry), []).append((share, user, holder))
        largest = sorted(chain.from_iterable(groups.values()), key=lambda share: -share[0])
        return ((users[user], holder) for _, user, holder in largest)

    def _shed_holder(self, holder: Connection | Session) -> None:
        exchange = self._exchange
        if isinstance(holder, Session):
            _log.warning("queue shed", runtime=holder.core.runtime)
            holder.drop_waiting()
            return
        _log.warning("link shed", runtime=holder.runtime, link=holder.name)
        session = exchange.session_of(holder.number)
        cut = holder.cut(CloseReason.SLOW_CONSUMER, LinkEnd.SHED)
        unsent = [entry for entry in cut if position_of(entry.message) is None]
        exchange.ports.pop(holder.number, None)
        if session is not None:
            session.core.miss(len(unsent))
            session.lose_link(holder.number, _SLOW)
        for entry in unsent:
            exchange.undeliverable(entry.message, Code.UNAVAILABLE, _TOO_MUCH, DropReason.OVERFLOW)


class Exchange:
    """Sessions and links of a node: deliver messages to them without waiting; the bus calls it.

    Attributes:
        sessions: Sessions by runtime; a session is removed when it closes or expires.
        runtimes: Runtimes by the number of the link that has the runtime's session.
        ports: Links that may still be written, by number.
        turn: Links that have messages to be written soon.
        components: The components of the node, by address.
        notices: Notices that a runtime has left, each with the component to notify.
        foreign: The routes to other domains.
        budget: Memory of the messages that wait, for links and for detached sessions.
        fan_out: Number of sessions that one message may reach (S12).
        pace_of: Returns the message rate of one session of a peer.
        note: Stores a change of the stored sessions; the link, if any, is written when the
            change is stored.
        names: The names of runtimes that belong to users.
        requests_at_parts: Counts requests that components have not answered yet, so that one user
            does not fill their mailboxes.
        statuses: Runtimes whose last published status is live.
        departure: Shuts the node down.
        has_login: Whether runtimes can log in.
        returning: The time in which runtimes of an earlier process may reconnect.
        others: The other nodes of the domain.
        route: Routes a message that has passed all checks.
    """

    route: Callable[[Message, str | None], None]
    note: Callable[[file.Change, Connection | None], None]

    def __init__(
        self,
        addresses: NodeAddresses,
        rules: TableRules,
        trace: ComponentTrace,
        ids: IdSource,
        bounds: Bounds,
    ) -> None:
        self.sessions: dict[str, Session] = {}
        self.ports: dict[int, Connection] = {}
        self.components = Components(addresses.parts, trace)
        self.notices = deque[tuple[Component, RuntimeLeft]]()
        self.tables = Tables(
            addresses, rules, self.components, trace, self._identity_of, self._user_of
        )
        self.foreign = ForeignRoutes(addresses.domain, rules.rights.abroad)
        self.trace = trace
        self.budget = bounds.fresh_budget()
        self.waiting: Final = waiting_shares(self._user_of)
        self.requests_at_parts = self.fresh_request_shares()
        self.fan_outs = FanOuts(self.sessions, self.budget, trace, self.put)
        self.turn = TurnWrites(bounds.work_clock, self.fan_outs)
        self.fan_out = bounds.limits.fan_out
        self.pace_of = bounds.pace_of
        self.warn = bounds.warn
        self._failures = bounds.failures
        self.has_login = False
        self.returning = ReturnTime(trio.current_time())
        self.note = lambda *_: None
        self.others = OtherNodes(self)
        self.names = UserNames(self.others.publish, trio.current_time)
        self.statuses = LiveStatuses()
        self._ended = 0
        self.overload: Final = Overload(self)
        self.departure = Departure(self)
        self._ids = ids
        self.runtimes: dict[int, str] = {}
        self.alarms = Alarms[str]()

    def fresh_request_shares(self) -> UserShares:
        """Make a counter of each user's requests that components have not answered yet."""
        each, together = Share(MAILBOX // 2, MAX_ID), Share(MAX_ID, MAX_ID)
        kind = "requests open at the node"
        return UserShares(kind, each, together, self._user_of, Code.UNAVAILABLE)

    def _identity_of(self, runtime: str) -> Identity | None:
        session = self.sessions.get(runtime)
        return None if session is None else session.identity

    def _user_of(self, runtime: str) -> str:
        return self.names.user_of(runtime)

    def session_of(self, number: int) -> Session | None:
        """Return the session that a link has, or None."""
        runtime = self.runtimes.get(number)
        return None if runtime is None else self.sessions.get(runtime)

    def deadline(self) -> float:
        """Return when to call `tick`; infinity if there is nothing to do."""
        if not self.turn.is_settled:
            return trio.current_time()
        if self.notices:
            return trio.current_time() + MAILBOX_RETRY
        return self.alarms.deadline()

    def tick(self) -> None:
        """Handle the timeouts of all sessions whose deadline has passed."""
        for runtime in self.alarms.due(trio.current_time()):
            session = self.sessions.get(runtime)
            if session is not None:
                session.tick()

    def note_life(self, number: int, now: float) -> Session | None:
        """Record that a link is alive; return the session of the link, or None.

        Args:
            number: Number of the link.
            now: Current time, in seconds.
        """
        session = self.session_of(number)
        if session is not None:
            if session.core.note_life(now):
                self.others.publish(session)
            if session.port is not None:
                session.port.set_asker(session.asker)
        return session

    def lose_link(self, number: int, why: str, *, is_misled: bool = False) -> None:
        """Remove a link that has ended, detach its session, and keep the unwritten messages.

        Args:
            number: Number of the link.
            why: The reason.
            is_misled: Whether unwritten answers of components are outdated and must be dropped.
        """
        port, session = self.ports.pop(number, None), self.session_of(number)
        reason = CloseReason.REFUSED if is_misled else CloseReason.DONE
        unsent = [] if port is None else port.cut(reason)
        if is_misled:
            unsent = [entry for entry in unsent if entry.message.from_ not in self.components]
        if session is not None:
            session.detach(number)
            if self.departure.is_last:
                session.leave()
            else:
                session.lose_link(number, why)
            self.overload.keep(session, unsent)

    # ---- sessions that outlive the node

    def begin(self, stub: str, asker: Asker, runtime: str) -> Session:
        """Add the session of a runtime, in its state before the opening.

        Args:
            stub: Address of the stub that requests the session.
            asker: Known facts about the runtime.
            runtime: The runtime.
        """
        key = f"{self.tables.addresses.node}|{runtime}"
        if self._ended:
            # With the number of ended sessions, a second session of a runtime gets a new key.
            key = f"{key}|{self._ended + 1}"
        session = self.sessions[runtime] = Session(self, key, stub, asker, runtime)
        return session

    def record_failed_open(self, port: Connection) -> None:
        """Count a wrong token or proof; close the link if its host sent too many of them."""
        if self._failures.try_spend(port.host, trio.current_time()):
            return
        session = self.session_of(port.number)
        self.fan_outs.settle(port.runtime)
        self.ports.pop(port.number, None)
        if session is not None:
            session.lose_link(port.number, "too many wrong tokens")
        port.finish(CloseReason.REFUSED)

    def next_id(self, from_: str) -> int:
        """Return an id for a message that the node itself makes."""
        return self._ids.next(from_)

    def drain(self) -> None:
        """Close every session at the end of the node, when no link brings messages any more."""
        for session in list(self.sessions.values()):
            session.leave()
        self.ports.clear()

    def rest(self) -> None:
        """End every session after a crash of the bus; no runtime can resume its session."""
        for runtime, session in self.sessions.items():
            session.core.rest()
            self.tables.release(runtime, "the bus of the node crashed")

    # ---- messages to runtimes

    def send(self, runtime: str, message: Message) -> None:
        """Deliver a message to the session of a runtime.

        Args:
            runtime: Address of the runtime.
            message: The message.
        """
        self.deliver_to((runtime,), OutboundMessage(message, encode(message)))

    def deliver_to(self, runtimes: Sequence[str], entry: OutboundMessage) -> None:
        """Deliver a message to the sessions of several runtimes; then check the memory budget.

        Args:
            runtimes: Addresses of the runtimes, each once.
            entry: The message.
        """
        if len(runtimes) > FAN_OUT_AT_ONCE:
            self.fan_outs.add(runtimes, entry)
        else:
            for runtime in runtimes:
                self.fan_outs.settle(runtime)
                self.put(runtime, entry)
        if self.budget.is_exceeded:
            self.overload.check()

    def put(self, runtime: str, entry: OutboundMessage) -> None:
        """Put a message into the queue of the runtime's link; without a link, queue or reroute it.

        A message to another domain's node may go over the stub for that domain.

        Args:
            runtime: Address of the runtime.
            entry: The message.
        """
        session, message = self.sessions.get(runtime), entry.message
        if is_node(runtime):
            if (why := self.foreign.objection(runtime, message)) is not None:
                self.undeliverable(message, Code.FORBIDDEN, why, DropReason.UNKNOWN_SOURCE)
                return
            if self.foreign.is_for_stub(runtime, message, has_session=session is not None):
                self._send_foreign(runtime, entry)
                return
        if session is None:
            self.send_elsewhere(runtime, entry)
        elif (port := session.port) is None or session.core.state is not State.OPEN:
            session.wait(entry)
        elif port.put(entry):
            self.trace.record_pass(Op.XMIT, message, port.name)
        else:
            self.overload.overrun(session, port, entry)

    def send_elsewhere(self, runtime: str, entry: OutboundMessage) -> None:
        """Send a message to the domain's node that has the runtime's session, or count a drop.

        Args:
            runtime: Address of the runtime, which has no session here.
            entry: The message.
        """
        is_elsewhere = runtime in self.tables.away
        if not is_elsewhere or self.others.send(entry, None, (runtime,)):
            self.trace.drop(entry.message, DropReason.SESSION_GONE)

    def _send_foreign(self, peer: str, entry: OutboundMessage) -> None:
        """Give a message to the stub that connects to another domain's node (MN-19)."""
        if self.foreign.send(peer, entry):
            self.trace.hop(Op.DELIVER, entry.message, listener="foreign")
        else:
            why = f"too much waits for {peer}"
            self.undeliverable(entry.message, Code.UNAVAILABLE, why, DropReason.OVERFLOW)

    def send_to_link(self, port: Connection, message: Message) -> None:
        """Send a message that concerns the link itself, not its session.

        Args:
            port: Write end of the link.
            message: The message.
        """
        self.fan_outs.settle(port.runtime)
        if not port.put(OutboundMessage(message, encode(message))):
            self.lose_link(port.number, _SLOW)

    def write_opening(
        self, port: Connection, answer: Message, waiting: tuple[OutboundMessage, ...]
    ) -> None:
        """Write the answer to an open request, then the messages that waited, in order.

        Args:
            port: Write end of the link.
            answer: The answer.
            waiting: Messages that waited for the session.
        """
        port.refill([OutboundMessage(answer, encode(answer)), *waiting])
        for entry in waiting:
            self.trace.hop(Op.FLUSH, entry.message)
            self.trace.record_pass(Op.XMIT, entry.message, port.name)
        if (session := self.session_of(port.number)) is not None:
            self.others.follow(session)

    def undeliverable(self, message: Message, code: Code, why: str, reason: DropReason) -> None:
        """Answer a request without a receiver; count any other message as dropped (MN-25, I-B12).

        Args:
            message: The message.
            code: Reply code.
            why: The reason.
            reason: Reason of the drop.
        """
        requester = self.tables.routing.owner_of(message.from_) if message.is_request else None
        if requester is None:
            self.trace.drop(message, reason)
            return
        answer = refuse(message, code, why)
        self.trace.hop(Op.SYNTH, answer)
        self.trace.record_refusal(message, requester, code, why, ground_of(reason))
        self.send(requester, answer)

    def forget(self, runtime: str) -> None:
        """Remove the session of a runtime, which has ended or moved to another node."""
        del self.sessions[runtime]
        self.requests_at_parts.give_back(runtime)
        self._ended += 1

    def notify_left(self, notice: RuntimeLeft) -> None:
        """Queue a notice for each component of the node that a runtime has left."""
        self.notices.extend((component, notice) for component in self.components.values())

    def settle_notices(self) -> None:
        """Deliver queued notices, in order, until the mailbox of a component is full."""
        while self.notices:
            component, notice = self.notices[0]
            if not component.try_tell(notice):
                return
            self.notices.popleft()


# ---- the shutdown of a node


class Departure:
    """Shutdown of a node: closes all links, waits for the peers, and then closes all sessions.

    Messages that peers sent before they read the close reason are still handled. If other nodes
    take the sessions, messages for these wait and then follow.

    Attributes:
        has_begun: Whether the node is shutting down.
        is_last: Whether no session can move any more, so that a session without a link ends.
        is_over: Whether all sessions have ended.

    Args:
        exchange: The sessions of this node, and its links.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange: Final = exchange
        self._moving: list[str] = []
        self.is_last = False
        self._until = math.inf
        self.has_begun = False
        self.is_over = False

    def begin(self, now: float, *, is_possible: bool) -> None:
        """Close all links in order.

        Args:
            now: Seconds on the host's clock.
            is_possible: Whether another node can take the sessions.
        """
        if is_possible:
            self._moving += [
                runtime
                for runtime, session in self._exchange.sessions.items()
                if session.port is not None and session.core.kept is not None
            ]
        self.has_begun, self.is_last = True, not self._moving
        self._until = now + (READ_OUT if self.is_last else GROUP_HANDOVER)
        for port in self._exchange.ports.values():
            port.go_away()

    def settle(self, now: float) -> None:
        """Close the remaining sessions when the time is over, or when all links have ended.

        Args:
            now: Seconds on the host's clock.
        """
        if self.is_last and not self._exchange.ports:
            self._until = now
        while self._moving and self._moving[-1] not in self._exchange.sessions:
            self._moving.pop()
            if not self._moving:
                # Other nodes may have sent messages before they knew where the last session is.
                self._until = min(self._until, now + GROUP_LINGER)
        if not self.is_over and now >= self._until:
            self.is_over = True
            for port in self._exchange.ports.values():
                port.stop_reading()
            self._exchange.drain()

    def deadline(self) -> float:
        """Return when to call `settle`; infinity when the shutdown is complete."""
        return math.inf if self.is_over else self._until


# ---- names of runtimes that belong to users


KeepName: TypeAlias = Callable[[Change, Connection | None], None]
"""Stores a change of a runtime name; the link, if any, is answered when the change is stored."""


class UserNames:
    """Names of runtimes that belong to users: decide who may use a name, and store changes.

    A node of another domain is no user: the identity provider binds tokens to its address.

    Args:
        keep: Stores a change of a name.
        wall: Returns the seconds since the epoch by which logins end.
    """

    def __init__(self, keep: KeepName, wall: Callable[[], float]) -> None:
        self.wall: Final = wall
        self._keep: Final = keep
        self._core = RuntimeNames()

    def __len__(self) -> int:
        return len(self._core)

    def restore(self, kept: Iterable[NameKept], in_use: Container[str]) -> None:
        """Restore the names that an earlier process has stored.

        Args:
            kept: The stored names.
            in_use: Runtimes whose sessions are restored, too.
        """
        self._store(self._core.restore(kept, in_use, self.wall()))

    def mirror(self, change: Change) -> None:
        """Apply a change of a name that another node of the domain has decided."""
        self._core.mirror(change)

    def refusal(self, runtime: str, identity: Identity | None) -> Refused | None:
        """Return why a user may open no session under a name; None: the user may.

        Args:
            runtime: The name.
            identity: Identity of the user; None: no login.
        """
        if is_node(runtime):
            return None
        owner = None if identity is None else _owner(identity)
        return self._core.refusal(runtime, owner, self.wall())

    def note_opened(self, runtime: str, identity: Identity, port: Connection) -> None:
        """Record that a user has opened a session by a name; store this, then answer the link.

        Args:
            runtime: The name.
            identity: Identity of the user.
            port: Write end of the link.
        """
        if not is_node(runtime):
            self._store(self._core.open_session(runtime, _owner(identity), self.wall()), port)

    def user_of(self, runtime: str) -> str:
        """Return the user to whom a runtime name belongs; the name itself if to none."""
        owner = self._core.owner_of(runtime)
        return runtime if owner is None else f"{owner.issuer} {owner.user}"

    def note_ended(self, runtime: str) -> bool:
        """Record that a name's session has ended; return whether the user has released the name."""
        changes = self._core.end_session(runtime, self.wall())
        self._store(changes)
        return NameForgotten(runtime) in changes

    def release(self, runtime: str, identity: Identity, port: Connection) -> Code:
        """Release a name of a user; return the code of the answer.

        Args:
            runtime: The name.
            identity: Identity of the user.
            port: The requesting link; its answer is sent when the release is stored.
        """
        code, changes = self._core.release(runtime, _owner(identity))
        self._store(changes, port)
        return code

    def _store(self, changes: Iterable[Change], port: Connection | None = None) -> None:
        for change in changes:
            self._keep(change, port)


def _owner(identity: Identity) -> Owner:
    return Owner(identity.issuer, identity.user)


# ---- sessions and names of an earlier process


_IN_USE: Final = frozenset({registration.State.LIVE, registration.State.LASTING})


def resume(exchange: Exchange, stored: file.Stored, records: Sequence[Row]) -> None:
    """Restore stored sessions, without links, and the names that belong to users.

    Each runtime owns its registered addresses again: requests for them wait for the runtime.

    Args:
        exchange: The sessions of the node, which must be empty.
        stored: Stored sessions and names.
        records: The stored records of hyperties and data objects.
    """
    now, wall = trio.current_time(), exchange.names.wall()
    in_use = {row.runtime for row in stored.sessions if row.identity is not None}
    exchange.names.restore(stored.names, in_use)
    for row in stored.sessions:
        identity, kept = row.identity, row.session
        if identity is not None:
            until = now + identity.until - wall
            kept = attrs.evolve(
                kept, credentials=Credentials(identity.user, identity.issuer, until)
            )
        session = exchange.begin(row.stub, Asker(row.runtime, identity), row.runtime)
        session.tell(lambda core, now: core.restore(kept, now))  # noqa: B023 - called at once
        exchange.tables.came(row.runtime, PeerForm.OWN)
        exchange.returning.miss()
    for record in records:
        if record.runtime in exchange.sessions and record.status in _IN_USE:
            tables = exchange.tables
            tables.allocation.claim(record.runtime, (record.url,))
