"""Data object in its reporter's runtime: its observers, and the changes to publish.

`ReportedObject` counts versions, adds an observer before it sends the snapshot (I-D6), and lets
only the reporter write (I-D1). Connection objects of P2P links are ordinary objects here.

Each subscription is an entity of the machine `object_subscription`. A subscription that was refused
or removed is forgotten: the next one of that observer is a new entity under the same key. A
subscription keeps the requests that are not answered yet, and a deadline: for the reporter's
decision, or for the next renewal of the lease.

Each invitation is an entity of the machine `invitation` (M-33, M-34). An observer with an open
invitation is not invited again: all of the reporter's requests get the same answers.

Some observers may subscribe without a decision of the reporter (SYN-04, SYN-11): invited and
allowed ones, and all observers of a public object. After an observer was expelled, the reporter
decides on each of its requests, even if the object is public (SYN-18, SYN-21).

If its reporter wants an object stored, everything that an observer could have seen, or relies on,
is stored before it is sent (SYN-25).
"""

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Final, Protocol

import attrs

from fsm.effects import Refused, RowChanged
from fsm.engine import Entity, Step
from fsm.limits.timers import Alarms
from fsm.machines.sync import invitation
from fsm.machines.sync.object_subscription import OBJECT_SUBSCRIPTION, State, Trigger
from fsm.sync import stored
from fsm.sync.leases import RENEWED_AFTER
from fsm.sync.value.value import apply_change, published_change
from specs.addresses.address import runtime_of
from specs.bodies.object import Change, ChangeObject, DataObject
from specs.jsonvalue import ABSENT, JsonObject, value_at
from specs.limits.sync import (
    LEASE_SLACK,
    MAX_ALLOWED_OBSERVERS,
    MAX_REPEATED_ASKS,
    MAX_UNDECIDED,
)
from specs.message import Message
from specs.reply_code import FIRST_FINAL, LAST_SUCCESS, Code
from specs.trace import Op

_ALLOWED: Final = "invited"
_PUBLIC: Final = "public"

_DELETED: Final = "the object is deleted"
_NOT_REPORTER: Final = "only the reporter may"
_LEFT: Final = "the observer left before the decision"
_EXPELLED: Final = "the reporter expelled the observer"
_CROWD: Final = "too many observe, or wait for the reporter to decide; ask again later"
_NO_ROOM: Final = f"{MAX_ALLOWED_OBSERVERS} observers are allowed already; expel one of them first"
_RESTORED: Final = "it observed before a restart"
_REPEATED: Final = "its requests wait for the reporter already"
_SILENT: Final = "the reporter did not answer"


class ReportPort(Protocol):
    """Callbacks of `ReportedObject` to its host; none of them may call the object."""

    def step(self, step: Step) -> None:
        """Trace a state machine transition of a subscription or an invitation."""

    def row(self, row: RowChanged) -> None:
        """Trace that an observer, or an allowed observer, was added or removed (I-D9)."""

    def keep(self, change: stored.Keep) -> None:
        """Store a change, if the object is a stored one; later messages are sent after that."""

    def written(self, snapshot: DataObject) -> None:
        """Record in the trace that the object has a new version."""

    def publish(self, change: Change) -> None:
        """Publish a change, with its version, to the observers (M-40)."""

    def ask(self, request: Message, observer: str, question: int) -> None:
        """Ask the reporter whether an observer may subscribe (M-39).

        Args:
            request: The request of the observer's sync manager.
            observer: Address of the observer.
            question: Number of the question, for `accept` and `refuse`.
        """

    def grant(
        self, requests: Sequence[Message], terms: JsonObject, *, is_whole: bool = True
    ) -> None:
        """Answer the subscription requests of one observer, which was added already.

        Args:
            requests: The requests.
            terms: Further fields of the answers, such as the duration of the lease.
            is_whole: Whether the answers contain the newest object; otherwise the observer has it
                already.
        """

    def deny(self, requests: Sequence[Message], code: Code, why: str) -> None:
        """Refuse the subscription requests of one observer."""

    def invite(self, request: Message, observer: str) -> None:
        """Send the reporter's invitation to a hyperty, which may then observe (M-34)."""

    def relay(self, requests: Sequence[Message], observer: str, code: int, why: str) -> None:
        """Answer the reporter's requests to invite with the answer of the invited hyperty (SYN-05).

        Args:
            requests: The requests of the reporter.
            observer: Address of the observer.
            code: Code of its answer; below 200: another answer follows.
            why: The description in the answer.
        """

    def cut_off(self, observer: str, manager: str, *, is_over: bool) -> None:
        """Stop sending messages to an observer, whether or not its runtime cooperates.

        Args:
            observer: Address of the observer.
            manager: The sync manager that subscribed it; empty: it was not subscribed, but may have
                read the object.
            is_over: Whether its lease is over, so that it may subscribe again; otherwise it was
                expelled.
        """

    def end(self, runtimes: tuple[str, ...]) -> None:
        """Send the deletion of the object to the observers' runtimes (M-47).

        The host calls `notified` for each answer, and when the time for answers is over.
        """

    def vacate(self) -> None:
        """Remove the deleted object for good, since no observer of it is left (SYN-22)."""


@attrs.define
class _Subscription:
    """Subscription of one observer that is requested or active.

    Attributes:
        manager: The sync manager that requested it last.
        lease: Its duration in seconds; None: no renewal is needed.
        question: Number of the question that was sent to the reporter about the observer.
        until: Deadline of the reporter's answer, or end of the lease.
        requests: Requests of the observer that are not answered yet.
    """

    entity: Entity
    manager: str
    lease: int | None
    question: int
    until: float = math.inf
    requests: list[Message] = attrs.field(factory=list)

    @property
    def is_active(self) -> bool:
        return self.entity.state is State.ACTIVE


@attrs.define
class _Invitation:
    """Open invitation of an observer, with the reporter's requests that wait for its answer."""

    entity: Entity
    until: float
    requests: list[Message]


class ReportedObject:
    """Data object in its reporter's runtime: value, observers, invitations.

    Args:
        created: The object.
        port: The host.
        allowed: Observers allowed from the beginning; at most `MAX_ALLOWED_OBSERVERS` are kept.
        expelled: Observers that are not allowed although the object is public; the same maximum
            applies.
        is_public: Whether all other observers are allowed.

    Attributes:
        snapshot: The newest object, with its version.
        is_public: True if all observers are allowed except those that were expelled.
        is_deleted: True if the object can no longer be observed, read or changed.
    """

    def __init__(
        self,
        created: DataObject,
        port: ReportPort,
        allowed: tuple[str, ...] = (),
        expelled: tuple[str, ...] = (),
        *,
        is_public: bool = False,
    ) -> None:
        self.snapshot = created
        self.is_public: Final = is_public
        self.is_deleted = False
        self._port = port
        self._allowed = dict.fromkeys(allowed[:MAX_ALLOWED_OBSERVERS])
        self._expelled = dict.fromkeys(expelled[-MAX_ALLOWED_OBSERVERS:] if is_public else ())
        # Expelled observers that may not know of it yet, and try to renew their subscriptions.
        self._shut_out = dict.fromkeys(expelled[-MAX_ALLOWED_OBSERVERS:])
        self._subscriptions: dict[str, _Subscription] = {}
        self._alarms: Final[Alarms[str]] = Alarms()
        # All invitations have the same time limit, so they are sorted by their deadlines.
        self._invitations: dict[str, _Invitation] = {}
        self._undecided = 0
        self._questions = 0

    # --- queries ------------------------------------------------------------------------------

    @property
    def observers(self) -> tuple[str, ...]:
        """The observers, in the order of their subscriptions."""
        return tuple(observer for observer, each in self._subscriptions.items() if each.is_active)

    @property
    def runtimes(self) -> tuple[str, ...]:
        """The runtimes of active observers, each once; each answers for its observers (C-81)."""
        all_ = self._subscriptions.values()
        return tuple(dict.fromkeys([runtime_of(each.manager) for each in all_ if each.is_active]))

    @property
    def asking(self) -> tuple[str, ...]:
        """The runtimes of observers that wait for a decision of the reporter, with duplicates."""
        all_ = self._subscriptions.values()
        return tuple(runtime_of(each.manager) for each in all_ if not each.is_active)

    def is_observed_by(self, observer: str) -> bool:
        """Return whether a hyperty observes the object."""
        subscription = self._subscriptions.get(observer)
        return subscription is not None and subscription.is_active

    def lease_of(self, observer: str) -> int | None:
        """Return the lease of an observer in seconds, or None if no renewal is needed."""
        return self._subscriptions[observer].lease if self.is_observed_by(observer) else None

    def may_read(self, reader: str) -> bool:
        """Return whether `reader` may read the object (SYN-18)."""
        is_welcome = self.is_observed_by(reader) or bool(self._welcome(reader))
        return is_welcome or reader == self.snapshot.reporter

    def _welcome(self, observer: str) -> str:
        """Return why an observer may subscribe unasked; empty: the reporter must decide."""
        if observer in self._allowed:
            return _ALLOWED
        return _PUBLIC if self.is_public and observer not in self._expelled else ""

    # --- begin --------------------------------------------------------------------------------

    def begin(self) -> None:
        """Store the new object, and write it and its allowed observers to the trace."""
        self._port.keep(stored.ObjectKept(self.snapshot.url, self.snapshot, self.is_public))
        for observer in self._allowed:
            self._port.keep(stored.GuestKept(self.snapshot.url, observer, may=True))
        self._port.written(self.snapshot)
        for observer in (*self._allowed, *((_PUBLIC,) if self.is_public else ())):
            self._trace_guest(Op.ADD, observer)

    def restore(self, observers: Iterable[stored.ObserverKept], now: float) -> None:
        """Restore the observers of an earlier process; each gets a new state machine entity."""
        for observer in observers:
            subscription = self._enter(observer.observer, observer.manager, observer.lease)
            self._port.step(subscription.entity.step(Trigger.REQUEST, _RESTORED))
            self._trace_observer(Op.ADD, observer.observer)
            self._port.step(subscription.entity.step(Trigger.ACCEPT, _RESTORED))
            self._begin_lease(observer.observer, now)

    # --- time ---------------------------------------------------------------------------------

    def deadline(self) -> float:
        """Return the time at which `time_over` must be called; infinity: never."""
        first = next(iter(self._invitations.values()), None)
        return min(self._alarms.deadline(), math.inf if first is None else first.until)

    def time_over(self, now: float) -> None:
        """End the subscriptions and invitations whose deadlines have passed.

        If the call comes much too late, the machine has slept, and renewals may wait to be read:
        then all leases are extended by the time of one renewal.
        """
        for observer in self._alarms.due(now):
            entry = self._subscriptions[observer]
            if entry.lease is not None and entry.is_active and now - entry.until > LEASE_SLACK:
                entry.until = now + entry.lease * RENEWED_AFTER
            if entry.until > now:
                self._alarms.set(observer, entry.until)
            elif entry.is_active:
                self._remove(observer, Trigger.EXPIRE)
                self._port.cut_off(observer, entry.manager, is_over=True)
                self._vacate()
            else:
                self._refuse(observer, Trigger.REFUSE, Code.FORBIDDEN, _SILENT)
        for observer in [name for name, each in self._invitations.items() if each.until <= now]:
            self._relay(observer, invitation.Trigger.SILENCE, Code.TIMEOUT, "no answer came")

    def _wait(self, observer: str, until: float) -> None:
        self._subscriptions[observer].until = until
        self._alarms.set(observer, until)

    def _begin_lease(self, observer: str, now: float) -> None:
        """Start or restart the lease of an observer, if its subscription has one."""
        lease = self._subscriptions[observer].lease
        self._wait(observer, math.inf if lease is None else now + lease)

    # --- observers ----------------------------------------------------------------------------

    def subscribe(
        self,
        request: Message,
        observer: str,
        lease: int | None,
        version: int | None,
        now: float,
    ) -> None:
        """Handle a request to subscribe: a first one, its repetition, or a renewal (M-38).

        Args:
            request: The request of the observer's sync manager.
            observer: The hyperty that observes, which is not the sender of the request.
            lease: Duration of the lease in seconds; None: no renewal is needed.
            version: Version of the observer's copy, if this renews its subscription.
            now: Seconds on the host's clock.
        """
        subscription = self._subscriptions.get(observer)
        if self.is_deleted:
            self._port.deny([request], Code.NOT_FOUND, _DELETED)
        elif subscription is not None and subscription.is_active:
            self._renew(subscription, request, observer, lease, version, now)
        elif subscription is not None and len(subscription.requests) >= MAX_REPEATED_ASKS:
            self._port.deny([request], Code.TOO_LARGE, _REPEATED)
        elif subscription is not None:
            subscription.manager, subscription.lease = request.from_, lease
            subscription.requests.append(request)
        elif version is not None and observer in self._shut_out:
            self._port.deny([request], Code.FORBIDDEN, _EXPELLED)
        else:
            self._shut_out.pop(observer, None)
            self._request(request, observer, lease, now)

    def _request(self, request: Message, observer: str, lease: int | None, now: float) -> None:
        reason = self._welcome(observer)
        is_answerable = bool(reason) or self._undecided < MAX_UNDECIDED
        if not is_answerable or len(self._subscriptions) >= MAX_ALLOWED_OBSERVERS:
            self._port.deny([request], Code.UNAVAILABLE, _CROWD)
            return
        self._undecided += 1
        self._questions += 1
        subscription = self._enter(observer, request.from_, lease)
        subscription.requests.append(request)
        self._port.step(subscription.entity.step(Trigger.REQUEST))
        if reason:
            self._accept(observer, now, reason)
        else:
            self._wait(observer, now + subscription.entity.patience)
            self._port.ask(request, observer, self._questions)

    def _enter(self, observer: str, manager: str, lease: int | None) -> _Subscription:
        entity = Entity(OBJECT_SUBSCRIPTION, f"{self.snapshot.url}|{observer}")
        subscription = _Subscription(entity, manager, lease, self._questions)
        self._subscriptions[observer] = subscription
        return subscription

    def _renew(
        self,
        subscription: _Subscription,
        request: Message,
        observer: str,
        lease: int | None,
        version: int | None,
        now: float,
    ) -> None:
        """Answer a repeated or renewing request of an active observer, and restart its lease.

        The answer contains the object unless the observer has this version, and manager and lease
        are unchanged.
        """
        manager = request.from_
        is_as_before = (subscription.manager, subscription.lease) == (manager, lease)
        subscription.manager, subscription.lease = manager, lease
        is_whole = not is_as_before or version != self.snapshot.version
        if is_whole:
            self._port.keep(stored.ObserverKept(self.snapshot.url, observer, manager, lease))
        if lease is not None:
            self._port.step(subscription.entity.step(Trigger.RENEW))
        self._begin_lease(observer, now)
        renewed: JsonObject = {} if version is None else {"renewed": True}
        self._port.grant([request], renewed | _terms(lease), is_whole=is_whole)

    def accept(self, observer: str, question: int, now: float) -> None:
        """Activate a subscription that the reporter has accepted (M-39 answered 200).

        An answer to an older question, from before an expulsion, is ignored.
        """
        if self._is_asked(observer, question):
            self._accept(observer, now)

    def refuse(self, observer: str, why: str, question: int) -> None:
        """Refuse a subscription that the reporter refused, or did not decide on."""
        if self._is_asked(observer, question):
            self._refuse(observer, Trigger.REFUSE, Code.FORBIDDEN, why)

    def _is_waiting(self, observer: str) -> bool:
        return observer in self._subscriptions and not self.is_observed_by(observer)

    def _is_asked(self, observer: str, question: int) -> bool:
        is_waiting = self._is_waiting(observer)
        return is_waiting and self._subscriptions[observer].question == question

    def _accept(self, observer: str, now: float, why: str = "") -> None:
        """Make a waiting observer active, and then send the object to it (I-D6)."""
        subscription = self._subscriptions[observer]
        requests, subscription.requests = subscription.requests, []
        key = self.snapshot.url, observer
        self._undecided -= 1
        self._port.keep(stored.ObserverKept(*key, subscription.manager, subscription.lease))
        self._trace_observer(Op.ADD, observer)
        self._port.step(subscription.entity.step(Trigger.ACCEPT, why))
        self._alarms.set(observer, math.inf)
        self._begin_lease(observer, now)
        self._port.grant(requests, _terms(subscription.lease))

    def _refuse(self, observer: str, trigger: Trigger, code: Code, why: str) -> None:
        """Remove a subscription that waits for a decision, and refuse its requests."""
        subscription = self._forget(observer, trigger, why)
        self._undecided -= 1
        self._port.deny(subscription.requests, code, why)

    def _remove(self, observer: str, trigger: Trigger, why: str = "") -> None:
        """Remove an active observer from the list, the store and the trace."""
        self._port.keep(stored.Forgotten(stored.ObserverKept, (self.snapshot.url, observer)))
        self._forget(observer, trigger, why)
        self._trace_observer(Op.DEL, observer)

    def _forget(self, observer: str, trigger: Trigger, why: str) -> _Subscription:
        subscription = self._subscriptions.pop(observer)
        self._alarms.set(observer, math.inf)
        self._port.step(subscription.entity.step(trigger, why))
        return subscription

    def unsubscribe(self, observer: str, manager: str) -> None:
        """Remove an observer that leaves (M-43), if its present sync manager requests this."""
        subscription = self._subscriptions.get(observer)
        if subscription is None or subscription.manager != manager:
            return
        if subscription.is_active:
            self._remove(observer, Trigger.UNSUBSCRIBE)
            self._vacate()
        else:
            self._refuse(observer, Trigger.UNSUBSCRIBE, Code.GONE, _LEFT)

    # --- requests of the reporter; a refusal is returned ---------------------------------------

    def allow(self, by: str, observer: str, now: float) -> Refused | None:
        """Allow an observer, which may then subscribe without the reporter's decision (SYN-04)."""
        refusal = self._refusal(by)
        if refusal is not None:
            return refusal
        if observer not in self._allowed and len(self._allowed) >= MAX_ALLOWED_OBSERVERS:
            return Refused(Code.TOO_LARGE, _NO_ROOM)
        self._shut_out.pop(observer, None)
        self._allowed[observer] = None
        self._expelled.pop(observer, None)
        self._trace_guest(Op.ADD, observer)
        self._port.keep(stored.GuestKept(self.snapshot.url, observer, may=True))
        if self._is_waiting(observer):
            self._accept(observer, now, _ALLOWED)
        return None

    def invite(self, request: Message, observer: str, now: float) -> Refused | None:
        """Allow a hyperty to observe and invite it; its answers are sent to the reporter (M-33)."""
        refusal = self.allow(request.from_, observer, now)
        if refusal is not None:
            return refusal
        if observer in self._invitations:
            self._invitations[observer].requests.append(request)
            return None
        entity = Entity(invitation.INVITATION, f"{self.snapshot.url}|{observer}")
        self._port.step(entity.step(invitation.Trigger.SEND))
        self._invitations[observer] = _Invitation(entity, now + entity.patience, [request])
        self._port.invite(request, observer)
        return None

    def take_answer(self, observer: str, code: int, why: str, now: float) -> None:
        """Pass on an answer to an invitation, from the observer or a router in its place (M-34).

        Args:
            observer: Address of the observer.
            code: Code of the answer; 408: no answer came.
            why: The description in the answer.
            now: Seconds on the host's clock.
        """
        waiting = self._invitations.get(observer)
        if waiting is not None:
            waiting.until = now + waiting.entity.patience
            self._relay(observer, _meaning(code), code, why)

    def _relay(self, observer: str, trigger: invitation.Trigger, code: int, why: str) -> None:
        waiting = self._invitations.pop(observer)
        self._port.step(waiting.entity.step(trigger, why))
        if not waiting.entity.may_end:
            self._invitations[observer] = waiting
        self._port.relay(waiting.requests, observer, code, why)

    def expel(self, by: str, observer: str) -> Refused | None:
        """End the permission and the subscription of an observer, which may ask again (SYN-21).

        At most `MAX_ALLOWED_OBSERVERS` expelled observers are remembered, the latest ones.
        """
        refusal = self._refusal(by)
        if refusal is not None:
            return refusal
        self._allowed.pop(observer, None)
        for expelled in (self._shut_out, *((self._expelled,) if self.is_public else ())):
            expelled[observer] = None
            if len(expelled) > MAX_ALLOWED_OBSERVERS:
                del expelled[next(iter(expelled))]
        self._trace_guest(Op.DEL, observer)
        key = self.snapshot.url, observer
        if self.is_public:
            self._port.keep(stored.GuestKept(*key, may=False))
        else:
            self._port.keep(stored.Forgotten(stored.GuestKept, key))
        entry = self._subscriptions.get(observer)
        if entry is not None and entry.is_active:
            self._remove(observer, Trigger.UNSUBSCRIBE, _EXPELLED)
        elif entry is not None:
            self._refuse(observer, Trigger.REFUSE, Code.FORBIDDEN, _EXPELLED)
        self._port.cut_off(observer, "" if entry is None else entry.manager, is_over=False)
        return None

    def change(self, by: str, change: ChangeObject) -> Refused | None:
        """Change the object by request of its reporter, and publish the change (I-D1)."""
        refusal = self._refusal(by)
        if refusal is None:
            self._change(by, change)
        return refusal

    def remove(self, by: str, attribute: str) -> Refused | None:
        """Delete the attribute at a dotted path; without such an attribute nothing changes."""
        refusal = self._refusal(by)
        if refusal is None and value_at(self.snapshot.data, attribute) is not ABSENT:
            self._change(by, ChangeObject(self.snapshot.url, attribute))
        return refusal

    def _change(self, by: str, change: ChangeObject) -> None:
        former, version = self.snapshot.data, self.snapshot.version + 1
        data = apply_change(former, change)
        self.snapshot = attrs.evolve(self.snapshot, version=version, data=data)
        self._port.keep(stored.ObjectKept(self.snapshot.url, self.snapshot, self.is_public))
        self._port.written(self.snapshot)
        self._port.publish(published_change(former, data, change, version, by))

    def _refusal(self, by: str) -> Refused | None:
        if self.is_deleted:
            return Refused(Code.NOT_FOUND, _DELETED)
        if by != self.snapshot.reporter:
            return Refused(Code.FORBIDDEN, _NOT_REPORTER)
        return None

    # --- end ----------------------------------------------------------------------------------

    def delete(self, by: str) -> Refused | None:
        """Delete the object by request of its reporter (M-46)."""
        refusal = self._refusal(by)
        if refusal is None:
            self.is_deleted = True
            self._port.keep(stored.Forgotten(stored.ObjectKept, (self.snapshot.url,)))
            for observer in [name for name in self._subscriptions if self._is_waiting(name)]:
                self._refuse(observer, Trigger.OBJECT_DELETED, Code.NOT_FOUND, _DELETED)
            reason = invitation.Trigger.OBJECT_DELETED
            for observer in tuple(self._invitations):
                self._relay(observer, reason, Code.NOT_FOUND, _DELETED)
            self._port.end(self.runtimes)
            self._vacate()
        return refusal

    def notified(self, runtimes: Collection[str] | None = None) -> None:
        """Remove the observers in runtimes that have confirmed the deletion of the object (SYN-22).

        Args:
            runtimes: Addresses of the runtimes; None: all, since the time to answer is over.
        """
        if self.is_deleted and self._subscriptions:
            for observer, each in list(self._subscriptions.items()):
                if runtimes is None or runtime_of(each.manager) in runtimes:
                    self._remove(observer, Trigger.OBJECT_DELETED)
            self._vacate()

    def _vacate(self) -> None:
        if self.is_deleted and not self._subscriptions:
            self._port.vacate()

    def end_all(self) -> None:
        """End all subscriptions and invitations without messages, since the runtime stops."""
        waiting = [who for who in self._subscriptions if self._is_waiting(who)]
        for observer in (*waiting, *self.observers):
            self._forget(observer, Trigger.OBJECT_DELETED, _DELETED if observer in waiting else "")
        for each in self._invitations.values():
            self._port.step(each.entity.step(invitation.Trigger.OBJECT_DELETED))
        self._invitations.clear()

    # --- traces -------------------------------------------------------------------------------

    def _trace_observer(self, op: Op, observer: str) -> None:
        self._port.row(RowChanged(op, "observers", self.snapshot.url, observer, "sm"))

    def _trace_guest(self, op: Op, observer: str) -> None:
        writer = self.snapshot.reporter
        self._port.row(RowChanged(op, "guests", self.snapshot.url, observer, writer))


def _terms(lease: int | None) -> JsonObject:
    return {} if lease is None else {"lease": lease}


def _meaning(code: int) -> invitation.Trigger:
    """Return the trigger of the invitation's state machine for the code of an answer."""
    if code < FIRST_FINAL:
        return invitation.Trigger.PROVISIONAL
    if code <= LAST_SUCCESS:
        return invitation.Trigger.ACCEPT
    return invitation.Trigger.SILENCE if code == Code.TIMEOUT else invitation.Trigger.REFUSE
