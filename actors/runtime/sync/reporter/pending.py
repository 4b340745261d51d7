"""Requests to observe objects reported here, and invitations, until they are answered.

A decision of the reporter answers a request (M-38, M-39, M-47). The answer to an invitation goes
to the reporter, too (M-33, M-34). The functions read what it allows, and report its observers
(SYN-18, SYN-21, SYN-23, M-45, M-53).
"""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias, assert_never, final

import trio

from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.delivery import Delivery
from actors.runtime.sync.context import Spawn, SyncContext, code_in_use
from actors.runtime.sync.registration import CHANGES, SUBSCRIPTION
from fsm.effects import RowChanged
from fsm.engine import Step
from fsm.sync import reporter_io as core
from fsm.sync.invitations import InvitationsCore
from fsm.sync.reporter import PUBLIC, AllowedObservers, ReporterCore
from fsm.sync.reporter_io import (
    CutOff,
    Expired,
    ObserversNotified,
    ReporterAccepted,
    ReporterAsked,
    ReporterRefused,
    RuntimeNotified,
)
from specs.addresses.address import RUNTIME_SCHEME, runtime_of, scheme_of, subscription_manager
from specs.bodies.object import (
    CutPath,
    Forward,
    ObjectBack,
    ObserverExpelled,
    ObserverList,
    ObserversChange,
    Wrapped,
)
from specs.bodies.sync import CreateObject, DataObject, Invitation, InviteObservers
from specs.bodies.word import Operation
from specs.jsonvalue import JsonObject
from specs.limits.sync import MAX_REPEATED_ASKS
from specs.message import Message, MessageType, reason_in
from specs.reply_code import FIRST_FINAL, LAST_SUCCESS, Code
from specs.trace import Op
from transports.bodies import write_body

__all__ = [
    "OBSERVERS",
    "Decision",
    "Invitations",
    "ObserverLists",
    "PendingSubscriptions",
    "allowed_observers",
    "decision_in",
    "notification_in",
    "silence",
    "trace_allowed",
]

OBSERVERS: Final = "observers"

Decision: TypeAlias = ReporterAccepted | ReporterRefused
"""What a reporter says about an observer."""


def allowed_observers(wanted: CreateObject) -> AllowedObservers:
    """Return the allowed observers of a new object."""
    return AllowedObservers(wanted.allow or (), is_public=bool(wanted.public))


def trace_allowed(context: SyncContext, created: DataObject, allowed: AllowedObservers) -> None:
    """Trace the allowed observers of a new object (I-D9).

    Args:
        context: Context of the sync manager.
        created: The object.
        allowed: Allowed observers of the object.
    """
    for observer in (*allowed.allowed, *((PUBLIC,) if allowed.is_public else ())):
        context.allowed_observer(Op.ADD, created.url, observer, created.reporter)


@final
class ObserverLists:
    """The observers resources of the objects reported here; and how observers are cut off.

    What is said at `O/observers` stays in the runtime: it is for the reporter, and read by
    nobody else.
    """

    def __init__(self, context: SyncContext) -> None:
        self._context = context
        self._versions: dict[str, int] = {}

    def open(self, created: DataObject, listener: ActorRef[Delivery]) -> None:
        """Report observers to the object's reporter, unless it is a part of a runtime.

        Args:
            created: The object.
            listener: Receiver of the messages.
        """
        if scheme_of(created.reporter) == RUNTIME_SCHEME:
            return
        self._versions[created.url] = 0
        address = f"{created.url}/{OBSERVERS}"
        # The sync manager listens, too: so nothing of it ever leaves.
        self._context.bus.open_address(address, listener)
        self._context.bus.follow(address, created.reporter)

    def close(self, url: str, listener: ActorRef[Delivery]) -> None:
        """Close that address again. Idempotent.

        Args:
            url: Address of the object.
            listener: Receiver of the messages.
        """
        if self._versions.pop(url, None) is not None:
            address = f"{url}/{OBSERVERS}"
            self._context.bus.close_address(address, listener)
            self._context.bus.unfollow_all(address)

    def on_row(self, url: str, row: RowChanged) -> None:
        """Notify the reporter that an observer has joined or left (M-53).

        Args:
            url: Address of the object.
            row: The changed row.
        """
        if url not in self._versions:
            return
        self._versions[url] += 1
        operation = Operation.ADD if row.op is Op.ADD else Operation.REMOVE
        change = ObserversChange((row.val,), operation.value, self._versions[url])
        to = f"{url}/{OBSERVERS}"
        event = self._context.request(MessageType.UPDATE, to, write_body(change), url)
        self._context.bus.publish(event, frozenset({self._context.runtime}))

    def on_request(self, url: str, reported: ReporterCore, request: Message) -> None:
        """Return the observers, to the reporter only.

        Args:
            url: Address of the object.
            reported: Core of the object.
            request: The request.
        """
        if request.type is not MessageType.READ:
            self._context.refuse(request, Code.MALFORMED, "observers are read, and no more")
        elif request.from_ != reported.snapshot.reporter:
            self._context.refuse(request, Code.UNAUTHENTICATED, "only the reporter may")
        else:
            listed = ObserverList(self._versions.get(url, 0), reported.observers)
            self._context.answer(request, Code.OK, value=write_body(listed))

    def cut_off(self, url: str, cut: CutOff | Expired) -> None:
        """Stop delivery to an observer, without its cooperation (SYN-21).

        The node stops first what goes to its runtime, unless others observe there; then
        the sync manager there is notified, which serves the others on. One whose lease is over
        may be there all the same: it is asked to subscribe again (M-52).

        Args:
            url: Address of the object.
            cut: Reason of the end.
        """
        is_over = isinstance(cut, Expired)
        runtime = runtime_of(cut.manager) if cut.manager else None
        if runtime != self._context.runtime:
            path = CutPath((f"{url}/{CHANGES}",), cut.observer, runtime, is_over or None)
            to = subscription_manager(self._context.domain)
            request = self._context.request(MessageType.UNSUBSCRIBE, to, write_body(path))
            self._context.bus.send(request)
        if cut.manager:
            body = write_body(ObjectBack(url) if is_over else ObserverExpelled(url, cut.observer))
            kind = MessageType.SUBSCRIBE if is_over else MessageType.UNSUBSCRIBE
            sender = f"{url}/{SUBSCRIPTION}"
            self._context.bus.send(self._context.request(kind, cut.manager, body, sender))


@final
class Invitations:
    """Hosts the core; invitations are posted, not awaited, so that each 1xx is seen."""

    def __init__(self, context: SyncContext) -> None:
        self._context = context
        self._core = InvitationsCore(self)
        self._requests: dict[tuple[str, str], list[tuple[Message, InviteObservers]]] = {}

    def deadline(self) -> float:
        """Return when `time_over` is due."""
        return self._core.deadline()

    def time_over(self) -> None:
        """Notify the reporters whose invitations were not answered."""
        self._core.time_over(trio.current_time())

    def invite(self, request: Message, body: InviteObservers) -> None:
        """Invite one observer for its reporter; both were checked.

        Args:
            request: The request.
            body: Body of the request.
        """
        (observer,) = body.authorise
        self._requests.setdefault((body.resource, observer), []).append((request, body))
        self._core.invite(body.resource, observer, trio.current_time())

    def take_answer(self, url: str, answer: Message) -> None:
        """Take an answer, provisional ones and the bus's own included.

        Args:
            url: Address of the object.
            answer: The answer.
        """
        why = reason_in(answer)
        self._core.take_answer(url, answer.from_, answer.code, why, trio.current_time())

    def withdraw(self, url: str) -> None:
        """End the open requests of an object that is deleted."""
        self._core.withdraw(url)

    def end_all(self, url: str) -> None:
        """End the invitations of an object without messages: all components are leaving."""
        for key in [key for key in self._requests if key[0] == url]:
            del self._requests[key]
        self._core.withdraw(url)

    # --- the port of the core

    def step(self, step: Step) -> None:
        """Trace a step."""
        self._context.step(step)

    def send_invitation(self, url: str, observer: str) -> None:
        """Pass the invitation on to the observer."""
        request, body = self._requests[url, observer][0]
        invitation = write_body(Invitation(request.from_, body.schema, body.value))
        sender, identity = f"{url}/{SUBSCRIPTION}", request.identity
        self._context.bus.send(
            self._context.request(MessageType.CREATE, observer, invitation, sender, identity)
        )

    def relay(self, url: str, observer: str, code: int, why: str) -> None:
        """Answer all requests to invite the observer."""
        requests = self._requests.get((url, observer), [])
        if code >= FIRST_FINAL:
            self._requests.pop((url, observer), None)
        more = {"description": why} if why else {}
        for request, _ in requests:
            self._context.answer(request, code_in_use(code), source=observer, **more)


def decision_in(asked: ReporterAsked, answer: Message) -> Decision:
    """Say what the reporter decided about an observer.

    Args:
        asked: Question to the reporter.
        answer: The answer.
    """
    if answer.code <= LAST_SUCCESS:
        return ReporterAccepted(asked.observer, asked.question)
    if answer.code == Code.TIMEOUT:
        return silence(asked)
    why = reason_in(answer)
    if answer.code == Code.FORBIDDEN:
        return _refused(asked, why or "the reporter refuses")
    return _refused(asked, f"the reporter did not decide: {answer.code} {why}".rstrip())


def silence(asked: ReporterAsked) -> Decision:
    """Say what it is if the reporter decides nothing in time."""
    return _refused(asked, "the reporter did not answer")


def _refused(asked: ReporterAsked, why: str) -> ReporterRefused:
    return ReporterRefused(asked.observer, why, asked.question)


def notification_in(answer: Message) -> RuntimeNotified | ObserversNotified:
    """Say which observers know that an object is gone.

    A runtime speaks for its own; a router, which names none, for all that remain.
    """
    source = answer.body.get("source")
    return RuntimeNotified(source) if isinstance(source, str) else ObserversNotified()


@final
class PendingSubscriptions:
    """Keeps the requests, asks reporters about them, and answers them all."""

    def __init__(
        self, context: SyncContext, spawn: Spawn, decided: Callable[[str, Decision], None]
    ) -> None:
        self._context = context
        self._spawn = spawn
        self._decided = decided
        self._waiting: dict[tuple[str, str], list[Message]] = {}

    def add(self, url: str, observer: str, request: Message) -> bool:
        """Keep a request until it is decided on; False: too many wait for that already.

        Args:
            url: Address of the object.
            observer: Address of the observer.
            request: The request.
        """
        waiting = self._waiting.setdefault((url, observer), [])
        if len(waiting) >= MAX_REPEATED_ASKS:
            return False
        waiting.append(request)
        return True

    def ask(self, of: DataObject, asked: core.ReporterAsked) -> None:
        """Have the reporter of an object asked.

        Args:
            of: The object.
            asked: Question to the reporter.
        """
        request = self._waiting[of.url, asked.observer][0]
        self._spawn(partial(self._ask, of, asked, request))

    async def _ask(self, of: DataObject, asked: core.ReporterAsked, waiting: Message) -> None:
        """Ask the reporter as if the observer had asked it itself (M-39)."""
        observer, identity = asked.observer, waiting.identity
        wrapped = Wrapped(waiting.id, MessageType.SUBSCRIBE, observer, of.url)
        question = write_body(Forward(wrapped))
        bus, decision = self._context.bus, silence(asked)
        # It has its id when it leaves: which of two tasks comes first is chance (I-T7).
        request = self._context.request(
            MessageType.FORWARD, of.reporter, question, of.url, identity
        )
        with trio.move_on_after(asked.patience):
            decision = decision_in(asked, await bus.request(request))
        self._decided(of.url, decision)

    def answer(self, url: str, effect: core.Granted | core.Renewed | core.Denied) -> None:
        """Answer all that an observer asked.

        Args:
            url: Address of the object.
            effect: The effect.
        """
        for request in self._waiting.pop((url, effect.observer), ()):
            match effect:
                case core.Granted():
                    value, extra = write_body(effect.snapshot), _lease(effect.lease)
                    if effect.is_renewal and "version" in request.body:
                        extra |= {"renewed": True}
                    self._context.answer(request, Code.OK, value=value, **extra)
                case core.Renewed():
                    extra = {"renewed": True, **_lease(effect.lease)}
                    self._context.answer(request, Code.OK, **extra)
                case core.Denied():
                    self._context.refuse(request, effect.code, effect.why)
                case _:
                    assert_never(effect)


def _lease(lease: int | None) -> JsonObject:
    return {} if lease is None else {"lease": lease}
