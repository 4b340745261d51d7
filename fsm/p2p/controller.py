"""The handler's end of one P2P link (SC-16, 17, 24..27): reporter of the answer C2.

It is made when a requester invites it, observes the offer C1, creates C2, invites
the requester and waits to be dialled. It dials itself only when C1 says that the
requester could not reach it. When C1 offers anew, so does C2. What it does is an entity
of `handler_controller`, whose guards say whether the invitation stands; how far its link
is, one of `p2p_connection`.
"""

import math
from typing import assert_never, final

from fsm.engine import Entity, Step
from fsm.machines import handler_controller as controller
from fsm.machines.p2p_connection import State
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.effects import (
    Answered,
    AnswerInvitation,
    AskRow,
    CreateObject,
    Invite,
    Listen,
    Observe,
    SideEffect,
)
from fsm.p2p.inputs import (
    CandidatesReady,
    Command,
    ConnectAsked,
    DialFailed,
    DisconnectAsked,
    InvitationAnswered,
    LinkInput,
    LinkLost,
    LinkOpened,
    LinkTerms,
    ObjectCreated,
    ObjectRefused,
    ObserveRefused,
    OwnObjectInput,
    PeerInvited,
    PeerObjectDeleted,
    PeerObjectInput,
    PeerObjectSeen,
    ResumeAsked,
    RowTold,
    SideInput,
    Started,
    TimePassed,
    YieldAsked,
)
from fsm.p2p.link_end import LinkSide, after_the_end
from fsm.p2p.negotiation import Role, is_plea, negotiation_of, own_is_smaller
from specs.bodies.sync import ConnectionData
from specs.reply_code import LAST_SUCCESS, Code

__all__ = ["P2PControllerCore"]


@final
class P2PControllerCore:
    """Decides for one link of a handler stub.

    Attributes:
        terms: Between whom the link is.
        offer: Address of the requester's object C1.
    """

    def __init__(self, terms: LinkTerms, offer: str, policy: DialPolicy) -> None:
        self.terms = terms
        self.offer = offer
        self._side = LinkSide(terms, Role.HANDLER, policy)
        self._life = Entity(controller.HANDLER_CONTROLLER, terms.name)
        self._until = math.inf
        self._is_answered = False
        self._offer_status = ""

    @property
    def state(self) -> State | None:
        """The state of the connection; None: not begun."""
        return self._side.state

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self._side.ended

    def deadline(self) -> float:
        """Return when it must be fed `TimePassed`."""
        return min(self._side.deadline(), self._until)

    def feed(self, happened: SideInput, now: float) -> list[SideEffect]:
        """Take an input; return the effects, in order.

        Args:
            happened: The input.
            now: Seconds on the host's clock.
        """
        if self._side.ended:
            return after_the_end(happened)
        return [*self._taken(happened, now), *self._closed(now)]

    def _closed(self, now: float) -> list[Step]:
        """Close, once its end of the link is over, unless it has closed of itself."""
        is_closing = self._side.ended and not self._life.may_end
        return [self._move(controller.Trigger.OVER, now)] if is_closing else []

    def _move(self, trigger: controller.Trigger, now: float) -> Step:
        step = self._life.step(trigger)
        until = now + self._life.patience
        # The time for a set-up counts from its beginning: it is never prolonged.
        self._until = until if until == math.inf else min(until, self._until)
        return step

    def _taken(self, happened: SideInput, now: float) -> list[SideEffect]:
        if isinstance(happened, Command):
            return self._commanded(happened, now)
        if isinstance(happened, LinkInput):
            return self._link_changed(happened, now)
        if isinstance(happened, PeerObjectInput):
            return self._peer_changed(happened, now)
        return self._set_up(happened, now)

    def _commanded(self, command: Command, now: float) -> list[SideEffect]:
        match command:
            case ConnectAsked():
                return [Answered(Code.FORBIDDEN, "only the requester's end reconnects")]
            case DisconnectAsked(why):
                return [*self._refuse(why), *self._side.give_up(why), Answered(Code.OK)]
            case YieldAsked() | ResumeAsked():
                return [Answered(Code.FORBIDDEN, "only the requester's end yields")]
            case TimePassed():
                return self._late(now)
            case _:
                assert_never(command)

    def _late(self, now: float) -> list[SideEffect]:
        if now >= self._until:
            return [*self._refuse("timeout"), *self._side.give_up("timeout")]
        return self._side.time_passed(now)

    def _link_changed(self, happened: LinkInput, now: float) -> list[SideEffect]:
        match happened:
            case LinkOpened():
                return self._opened(happened, now)
            case LinkLost():
                return self._side.lost(happened, now)
            case DialFailed(attempt):
                return self._side.dial_failed(attempt)
            case _:
                assert_never(happened)

    def _opened(self, event: LinkOpened, now: float) -> list[SideEffect]:
        effects = self._side.opened(event, now)
        if self.state is State.LIVE and self._life.state is controller.State.ANSWERING:
            return [*effects, self._move(controller.Trigger.LINK_OPEN, now)]
        return effects

    def _set_up(self, happened: OwnObjectInput, now: float) -> list[SideEffect]:
        match happened:
            case Started():
                step = self._move(controller.Trigger.INVITED, now)
                return [*self._side.begin(now), step, AskRow()]
            case RowTold(has_own_request):
                return self._decide(has_own_request)
            case ObjectCreated():
                return [*self._side.object_returned(now), Listen(), Invite()]
            case ObjectRefused(why):
                return self._side.give_up(why)
            case InvitationAnswered(code, why):
                refused = f"refused {code}" if code > LAST_SUCCESS else ""
                return self._side.refused(refused and (why or refused))
            case CandidatesReady():
                return self._side.offer(happened)
            case _:
                assert_never(happened)

    def _peer_changed(self, happened: PeerObjectInput, now: float) -> list[SideEffect]:
        match happened:
            case PeerInvited(url):
                return [AnswerInvitation(url, Code.CONFLICT, "the invitation came before")]
            case PeerObjectSeen(data):
                return self._offer_seen(data, now)
            case ObserveRefused(why):
                return self._side.refused(why)
            case PeerObjectDeleted():
                return self._side.give_up("the peer deleted its object")
            case _:
                assert_never(happened)

    def _decide(self, has_own_request: bool) -> list[SideEffect]:  # noqa: FBT001 - told, not chosen
        if self._is_answered:
            return []
        facts = {
            controller.Condition.OWN_REQUEST: has_own_request,
            controller.Condition.OWN_SMALLER: own_is_smaller(self.terms.own, self.terms.remote),
        }
        given = {fact for fact, is_true in facts.items() if is_true}
        step = self._life.step(controller.Trigger.ROW_TOLD, given=given)
        if step.new == controller.State.CLOSED:
            why = f"glare: link requested by {self.terms.own} wins"
            return [step, *self._refuse(why), *self._side.give_up(why)]
        self._is_answered = True
        return [step, AnswerInvitation(self.offer, Code.OK), Observe(self.offer)]

    def _refuse(self, why: str) -> list[SideEffect]:
        """Answer the invitation, if that was not done yet."""
        if self._is_answered:
            return []
        self._is_answered = True
        return [AnswerInvitation(self.offer, Code.CONFLICT, why)]

    def _offer_seen(self, data: ConnectionData, now: float) -> list[SideEffect]:
        effects: list[SideEffect] = []
        if negotiation_of(data.status) > self._side.negotiation:
            if self.state is State.CREATED:
                return self._side.give_up("the offer was void before it was answered")
            renewed = negotiation_of(data.status)
            effects = self._side.renew(renewed, "the requester offers anew", now)
        self._side.learn(data.ice_candidates)
        if self._life.state is controller.State.OBSERVING:
            effects = [self._move(controller.Trigger.ANSWER, now), CreateObject()]
        pleads = is_plea(data.status) and data.status != self._offer_status
        self._offer_status = data.status
        if pleads and self.state is not State.LIVE:
            effects = [*effects, *self._side.new_round()]
        return [*effects, *self._side.dial_on()]
