"""What a Message BUS does with each message, step by step (BUS-03, 06, 07, 11..14).

The pipelines, then: an answer goes to who asked, any other message to the listeners of
its `to`, or, if there are none, outward. Nothing here waits: mailboxes are given what they
have room for.
"""

from typing import final

import trio

from actors.runtime.admission import Admission
from actors.runtime.answers import Answers
from actors.runtime.bus_messages import Origin, Submitted
from actors.runtime.handing import Handing
from actors.runtime.hops import Hops
from actors.runtime.interceptor import NO_INTERCEPTORS, Interceptor
from actors.runtime.outward import Outward
from actors.runtime.pipelines import Pipelines
from actors.runtime.policy import Policy
from actors.runtime.refusal import Refusal
from actors.runtime.sender_proofs import SenderProofs
from actors.runtime.waiter import Waiter
from fsm.cores.intent import Intent, intent_of
from fsm.cores.pair_path import Forward
from fsm.cores.resolve_effects import NoRoute, Route
from specs.address import is_below
from specs.child import parent_of
from specs.message import Message, refuse
from specs.reply_code import Code, DropReason
from specs.routing import Direction

__all__ = ["Forwarding"]


@final
class Forwarding:
    """The messages of one runtime on their way.

    Attributes:
        routing: Who listens to what.
        admission: Who may send as what.
        outward: The ways out.
        proofs: Who may send over links.
    """

    def __init__(
        self,
        runtime: str,
        policy: Policy,
        hops: Hops,
        interceptors: tuple[Interceptor, ...] = NO_INTERCEPTORS,
    ) -> None:
        self._runtime = runtime
        self._hops = hops
        self._handing = Handing(hops)
        self._answers = Answers(self._handing, hops)
        self.routing = self._handing.routing
        self.admission = Admission(runtime, policy, hops, self._handing.listens)
        self.outward = Outward(self._handing, hops, self.refuse)
        self.proofs = SenderProofs(self.admission, self.outward, hops, self._admit, self._deny)
        self._pipelines = Pipelines(self.admission, self._repeated, interceptors)

    # ---- in

    def submit(self, submitted: Submitted, now: float) -> None:
        """Take a message from a component."""
        is_by_peer = self.admission.is_by_peer(submitted.message, submitted.by)
        if not (is_by_peer and self.proofs.waits(submitted, now)):
            self._admit(submitted, now)

    def _admit(self, submitted: Submitted, now: float) -> None:
        by = submitted.by
        origin = self.admission.origin(by) or Origin.LOCAL
        direction = self.admission.direction(submitted.message, origin)
        passed = self._pipelines.passed(submitted.message, by, direction)
        if isinstance(passed, Refusal):
            self._deny(submitted, passed, now)
            is_unknown = passed.reason is DropReason.UNKNOWN_SOURCE
            if is_unknown and self.admission.is_by_peer(submitted.message, by):
                self.proofs.forged(by, now)
            return
        self._hops.submitted(passed, by)
        if passed.is_response:
            self._answer(passed, now)
            return
        if not passed.is_event and not self._is_only_told(passed, direction):
            if self._answers.is_crowding(passed) and self.routing.find(passed.to):
                why = "too many requests to this receiver are open; wait for answers"
                self._answers.reject(submitted, Code.TOO_LARGE, why)
                return
            session = by if origin is Origin.NODE_STUB else None
            is_ours = direction is Direction.OUTGOING
            intent = submitted.intent or _intent(passed, direction, origin)
            waiter = Waiter(is_ours, intent, session, submitted.reply)
            self._answers.open(passed, waiter, now, submitted.terms)
        self._forward(passed, direction, now, submitted.intent)
        if self.routing.find(passed.to) and self._is_for_others(submitted, passed, direction):
            # Those who are told here are not all (BUS-09).
            self.outward.go(passed, submitted.intent or intent_of(passed), now)

    def _is_for_others(self, by: Submitted, passed: Message, direction: Direction) -> bool:
        """Say whether a message that has listeners here is for others elsewhere, too."""
        terms = by.terms
        if terms.awaited:
            return not terms.awaited <= {self._runtime, *terms.direct}
        return direction is Direction.OUTGOING and parent_of(passed.to) is not None

    def _is_only_told(self, request: Message, direction: Direction) -> bool:
        """Say whether nobody here answers it: a child is acknowledged by the reporter's end."""
        is_told = direction is Direction.INCOMING and parent_of(request.to) is not None
        return is_told and not self.admission.is_granted(request.to)

    def _repeated(self, message: Message, by: str) -> Refusal | None:
        # The transaction of an answer knows better; what is forwarded for others is looked at.
        if message.is_response and self.admission.origin(by) is Origin.LOCAL:
            return None
        return self._answers.repeated(message, trio.current_time())

    def _deny(self, submitted: Submitted, refusal: Refusal, now: float) -> None:
        message, by = submitted.message, submitted.by
        if refusal.reason is DropReason.DUPLICATE:
            # It is the message that was let in before, and shares its name in the trace.
            self._hops.submitted(message, by)
        else:
            self._hops.denied(message, by, int(refusal.code or 0), refusal.why)
        self._hops.dropped(message, refusal.reason)
        again = self._answers.again(message) if refusal.reason is DropReason.DUPLICATE else None
        if message.is_response:
            self._deny_answer(message, refusal, now)
        elif again is not None and refusal.code is None:
            # The answer was lost on its way, or the request came by two.
            self._give(*again, now)
        elif message.is_request and refusal.code is not None:
            self._answers.reject(submitted, refusal.code, refusal.why)
        elif submitted.reply is not None:
            submitted.reply.send(refuse(message, refusal.in_place, refusal.why))
        elif refusal.code is not None and parent_of(message.to) and self._is_of_component(by):
            # Who changes a child that is not its own is told so (SC-36).
            self._answers.reject(submitted, refusal.code, refusal.why)

    def _is_of_component(self, by: str) -> bool:
        return self.admission.origin(by) is Origin.LOCAL

    def _deny_answer(self, response: Message, refusal: Refusal, now: float) -> None:
        """Tell who asked that a stage of the application's own kept the answer."""
        if refusal.reason not in {DropReason.DENIED, DropReason.CRASHED} or not response.is_final:
            return
        request = self._answers.asked_of(response)
        if request is not None:
            code = refusal.code or Code.FORBIDDEN
            self.refuse(request, code, refusal.why, now)

    # ---- answers

    def _answer(self, response: Message, now: float) -> None:
        answer = self._answers.taken(response, now)
        if answer.transaction is None:
            return
        if answer.is_last:
            self.outward.settled(answer.transaction.request, now)
        self._give(response, answer.transaction.waiter, now)

    def _give(self, response: Message, waiter: Waiter, now: float) -> None:
        if waiter.reply is not None or waiter.is_ours:
            self._answers.give(response, waiter)
        elif waiter.session and self.routing.find(waiter.session):
            # An answer returns over the session that brought the request (MN-18).
            self.outward.send(Forward(response, waiter.session), now)
        else:
            self.outward.go(response, waiter.way_back(response), now)

    def refuse(self, message: Message, code: Code, why: str, now: float) -> None:
        """End a message here: a request is answered, anything else counted."""
        self.outward.settled(message, now)
        ended = self._answers.give_up(message, f"{int(code)} {why}") if message.is_request else None
        if ended is None:
            is_full = code is Code.TOO_LARGE
            self._hops.dropped(message, DropReason.OVERFLOW if is_full else DropReason.NO_TARGET)
            return
        response = refuse(message, code, why)
        self._hops.synthesised(response, message)
        self._give(response, ended.waiter, now)

    def _refuse_full(self, message: Message, now: float) -> None:
        if self._handing.is_there(message.to):
            self.refuse(message, Code.TOO_LARGE, "the receiver's mailbox is full", now)
        else:
            self.refuse(message, Code.UNAVAILABLE, "the receiver is gone", now)

    # ---- out

    def _forward(
        self, message: Message, direction: Direction, now: float, intent: Intent | None = None
    ) -> None:
        if self.routing.find(message.to):
            is_foreign = direction is Direction.INCOMING
            if not self._handing.give(message, message.to, is_foreign=is_foreign):
                self._refuse_full(message, now)
        elif direction is Direction.INCOMING or is_below(message.to, self._runtime):
            # What came from outside goes nowhere else: a runtime is no relay.
            self.refuse(message, Code.NOT_FOUND, "target not found", now)
        else:
            self.outward.go(message, intent or intent_of(message), now)

    def routed(self, route: Route, now: float) -> None:
        """Take a route from the registry: those who waited for it go."""
        messages, following = self.outward.routes.told(route)
        for message in messages:
            if self._is_wanted(message, now):
                self.outward.go_by(message, route.url, now)
        if following is not None:
            self.outward.ask(route.to, following, now)

    def no_route(self, refused: NoRoute, now: float) -> None:
        """Take it from the registry that there is no way."""
        self.outward.no_route(refused, now)

    def _is_wanted(self, message: Message, now: float) -> bool:
        """Say whether a message that waited still matters; a 408 may have come first.

        A new child, whoever has answered it, is for all who observe.
        """
        is_for_all = not message.is_request or parent_of(message.to) is not None
        if is_for_all or self._answers.is_open(message):
            return True
        self._hops.dropped(message, DropReason.NO_TARGET)
        self.outward.settled(message, now)
        return False

    # ---- back, and time

    def hand_back(self, messages: tuple[Message, ...], by: str, now: float) -> None:
        """Route again what a stub could not deliver (I-R9, I-P22)."""
        is_link = self.admission.origin(by) is Origin.P2P_STUB
        self.outward.returned(messages, by)
        for message in messages:
            if is_link and message.is_event and is_below(message.to, message.from_):
                # Said to those who follow something here, and one does not by this link: it
                # begins anew with all there is.
                self.refuse(message, Code.NOT_FOUND, "target not found", now)
            elif self._answers.is_direct(message):
                self.refuse(message, Code.UNAVAILABLE, "the link is gone", now)
            elif self._is_wanted(message, now):
                is_published = is_below(message.to, message.from_)
                way = Intent.NODE if is_published else intent_of(message)
                self.outward.go(message, way, now)

    def hand_on(self, message: Message, component: str, now: float) -> None:
        """Give a component what came to another part of this runtime."""
        if not self._handing.give(message, component):
            self.refuse(message, Code.UNAVAILABLE, "the receiver takes no more", now)

    def deadline(self) -> float:
        """Return when `tick` is due."""
        waits = min(self._answers.deadline(), self.proofs.deadline())
        return min(waits, self.outward.deadline())

    def tick(self, now: float) -> None:
        """Answer 408 for those who waited too long, release what was held (MSG-06)."""
        for request in self._answers.repeated_now(now):
            # Who has it here, is at it; what went out may be lost.
            if not self.routing.find(request.to) or parent_of(request.to) is not None:
                self._hops.submitted(request, request.from_)
                self.outward.settled(request, now)
                self.outward.go(request, intent_of(request), now)
        for ended in self._answers.overdue(now):
            self.outward.settled(ended.request, now)
            if ended.waiter.is_ours:
                response = refuse(ended.request, Code.TIMEOUT, "Request Timeout")
                self._hops.synthesised(response, ended.request)
                self._give(response, ended.waiter, now)
        self.proofs.tick(now)
        self.outward.tick(now)

    def leave(self) -> None:
        """End what is open: the bus stops, and whoever waits here is told so by that."""
        self._answers.leave()


def _intent(request: Message, direction: Direction, origin: Origin) -> Intent:
    """Return what may be done for a request, or for the answer to one that came from outside."""
    if direction is Direction.OUTGOING:
        return Intent.REACH
    # Whoever asks by a link is answered by it, if it is there still.
    return Intent.KNOWN if origin is Origin.P2P_STUB else intent_of(request)
