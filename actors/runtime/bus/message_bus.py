"""The Message BUS: router of one runtime, between its sandboxes and its stubs.

It is called directly and never waits. Its task serves timers only.
"""

import math
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Final, Never

import trio
from typing_extensions import override

from actors.kit.counters import Counters
from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.actor import Actor, DeadLetters, Delivery, OpenReplies, Purpose
from actors.kit.trace import Tracer
from actors.runtime.bus import messages
from actors.runtime.bus.forwarding import Forwarding
from actors.runtime.bus.pipeline import NO_INTERCEPTORS, Interceptor
from actors.runtime.hop_trace import HopTrace
from actors.runtime.own_sender import OwnSender
from actors.runtime.policy import Judge
from fsm.bus.forward_rules import ForwardRefusedError
from fsm.effects import Intent
from specs.reply_code import Code, DropReason


class DeadMail(DeadLetters):
    """Counts messages of actors that are gone; requests among them are answered 503 (OBS-06)."""

    def __init__(self, bus: "MessageBus", counters: Counters) -> None:
        self._bus: Final = bus
        self._counters: Final = counters

    @override
    def lost(self, actor: str, message: object) -> None:
        if isinstance(message, messages.Turn):
            return  # the task that it was for ends with the actor
        self._counters.dead_letter(actor)
        if isinstance(message, Delivery):
            lost = messages.Lost(message, Code.UNAVAILABLE, "the receiver is gone")
            if not self._bus.try_report(lost):
                self._counters.drop(DropReason.NO_TARGET, message.message, actor)


_NAME: Final = "bus"

_LOOK: Final = 0.05
"""Seconds from one look for what is due next to another, while messages come: to look for each
message takes as long as to route it, or longer where many wait. All waits but turns last seconds.
"""


class MessageBus(Actor[Never]):
    """Routes the messages of one runtime.

    Each call is made in `with bus as forwarding`, which raises ActorStoppedError if the runtime has
    closed. An error in it is not the caller's: it ends the runtime, as that of any core part.

    Attributes:
        hops: Takes the records of its deliveries; a MiniBUS writes them for it.
        replies: The waits for what the bus answers; they end with ActorStoppedError if the runtime
            closes before.
    """

    def __init__(
        self,
        own: OwnSender,
        policy: Judge,
        tracer: Tracer,
        counters: Counters,
        interceptors: tuple[Interceptor, ...] = NO_INTERCEPTORS,
    ) -> None:
        self.hops = HopTrace(tracer, _NAME, counters)
        self._turns = messages.FairQueue()
        self._forwarding = Forwarding(own, policy, self.hops, self._turns, interceptors)
        self._admission = self._forwarding.admission
        self._next_timer = math.inf
        self._look_at = -math.inf
        self._is_to_look = False
        self._is_closed = False
        self._crash: Exception | None = None
        self.replies: Final = OpenReplies()

    # ---- messages

    def submit(self, flight: messages.InFlight) -> None:
        """Take a message from a component."""
        if self._is_closed:
            if flight.permit is not None:
                flight.permit.give_back()
            raise ActorStoppedError(_NAME)
        try:  # as `with self`, for each message
            now = trio.current_time()
            self._forwarding.submit(flight, now)
            is_watched = self._is_to_look and now < self._look_at
            if not is_watched or self._turns.held or self._admission.after is not None:
                self._settle(now)
        except Exception as error:  # noqa: BLE001 - see `_fail`
            self._fail(error)

    def overflow(self, deliveries: Iterable[Delivery]) -> None:
        """Refuse what the mailbox of a component in a sandbox has no room for."""
        for one in deliveries:
            if not self.try_report(
                messages.Lost(
                    one, Code.UNAVAILABLE, messages.RECEIVER_FULL.why, messages.RECEIVER_FULL
                )
            ):
                self.hops.dropped(one.message, DropReason.OVERFLOW)

    def try_report(self, lost: messages.Lost) -> bool:
        """Take a delivery that was not handled; return whether the bus is open."""
        with suppress(ActorStoppedError), self:
            if lost.delivery.purpose is not Purpose.ANNOUNCE:
                self._forwarding.lost(lost, trio.current_time())
        return not self._is_closed

    # ---- answers of the registry

    def take_route(self, to: str, intent: Intent, url: str, until: float) -> None:
        """Take a route, which may be remembered until then; what waited for it goes."""
        with self:
            self._forwarding.take_route(to, intent, url, until, trio.current_time())

    def no_route(
        self, to: str, intent: Intent, code: Code, why: str, retry_after: float | None = None
    ) -> None:
        """Refuse the messages that wait for a route: there is none."""
        with self:
            now = trio.current_time()
            self._forwarding.outbound.no_route(to, intent, now, code, why, retry_after)

    def forget_routes(self) -> None:
        """Forget every route: the registry's tables have changed."""
        with self:
            self._forwarding.outbound.routes.forget()

    def add_peer(self, link: str, remote: str) -> None:
        """Take messages of a runtime over a link (I-B10)."""
        with self:
            self._forwarding.proofs.add_peer(link, remote)

    def remove_peer(self, link: str) -> None:
        """Take no more messages over a link."""
        with self:
            self._forwarding.proofs.remove_peer(link)

    def set_owner(self, entity: str, owner: str | None) -> None:
        """Take the owner of an address; None: no registry names one."""
        with self:
            self._forwarding.proofs.set_owner(entity, owner, trio.current_time())

    def forget_owner(self, entity: str) -> None:
        """Forget the owner of an address: it may have changed."""
        with self:
            self._forwarding.proofs.forget_owner(entity)

    # ---- the tables

    def grant(self, owner: str, address: str, origin: messages.Origin) -> None:
        """Let a component send from an address and from those below it."""
        with self:
            self._admission.grant(owner, address, origin)

    def set_name(self, component: str, name: str | None) -> None:
        """Set the name of a hyperty, for policies; None: it has ended."""
        with self:
            self._admission.name(component, name)

    def join(self, registry: messages.RouteSearch) -> None:
        """Set the registry that resolves routes."""
        with self:
            self._forwarding.outbound.registry = registry

    def release(self, stub: str, domain: str) -> bool:
        """Forget the routes by a stub, unless a request or a subscription depends on it."""
        is_free = False
        with self:
            is_free = not self._forwarding.answers.depends_on(stub, domain)
            if is_free:
                self._forwarding.outbound.routes.forget_stub(stub)
        return is_free

    # ---- time and end

    def __enter__(self) -> Forwarding:
        if self._is_closed:
            raise ActorStoppedError(_NAME)
        return self._forwarding

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if error is None:
            try:
                self._settle(trio.current_time())
            except Exception as failure:  # noqa: BLE001 - see `_fail`
                error = failure
        if not isinstance(error, Exception) or isinstance(error, ForwardRefusedError):
            return False
        self._fail(error)
        return True

    def _fail(self, error: Exception) -> None:
        """Let this actor crash, and so the runtime: the error is a bug, and not of the caller."""
        self._crash = self._crash or error
        self.wake()

    def _settle(self, now: float) -> None:
        if self._admission.after is not None:
            self._admission.settle()
        due = self._turns.deadline() if self._turns.held else math.inf
        if now >= self._look_at:
            self._look_at = now + _LOOK
            due = min(due, self._forwarding.deadline())
        else:
            self._is_to_look = True
            due = min(due, self._look_at)
        if due < self._next_timer:
            self._next_timer = due
            self.wake()

    @override
    async def handle(self, message: Never) -> None:
        """This actor receives no messages."""

    @override
    def deadline(self) -> float:
        due = min(self._forwarding.deadline(), self._turns.deadline())
        if self._is_to_look:
            due = min(due, self._look_at)
        self._next_timer = due if self._crash is None else -math.inf
        return self._next_timer

    @override
    async def timed_out(self) -> None:
        if self._crash is not None:
            raise self._crash
        now = trio.current_time()
        self._is_to_look = self._is_to_look and now < self._look_at
        self._turns.tick(now)
        self._forwarding.tick(now)
        self._admission.settle()

    @override
    async def stop(self) -> None:
        self._forwarding.answers.leave()
        if self._crash is None:
            self.close()
        # Else the other parts are being stopped, and have no error of their own until then.

    def close(self) -> None:
        """Take no more calls, and end the waits for answers. Idempotent."""
        self._is_closed = True
        self.replies.lose(ActorStoppedError(_NAME))
