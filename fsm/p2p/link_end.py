"""The common part of both ends of a P2P link: its states, its links, its dialling."""

import math
from collections.abc import Iterable
from typing import Final, assert_never, final

from fsm.engine import Entity, Step
from fsm.machines.p2p_connection import (
    LINK_DIALLING,
    P2P_CONNECTION,
    DialState,
    DialTrigger,
    State,
    Trigger,
)
from fsm.p2p.dialling import DialPlan, DialPolicy
from fsm.p2p.link_io import (
    Announce,
    Answered,
    AnswerInvitation,
    CandidatesReady,
    CloseLink,
    ConnectAsked,
    Dial,
    DisconnectAsked,
    Ended,
    HearIce,
    IceFound,
    InvitationAnswered,
    Invite,
    LinkLost,
    LinkOpened,
    LinkTerms,
    Listen,
    Loss,
    ObjectCreated,
    ObjectRefused,
    ObserveRefused,
    Offer,
    Opening,
    PeerInvited,
    PeerObjectDeleted,
    Pin,
    Plead,
    ReleaseLink,
    Renew,
    ResumeAsked,
    SideEffect,
    SideInput,
    Trickle,
    UseLink,
    Withdraw,
    YieldAsked,
)
from fsm.p2p.negotiation import FIRST, Role, beginning, plea
from fsm.p2p.peer_identity import Believed, Distrusted, Standing, Unsigned
from specs.bodies.sync import Candidate, IceCandidate
from specs.limits.protocol import DIAL_TIMEOUT, HANDSHAKE_TIMEOUT, SESSION_IDLE
from specs.limits.webrtc import MAX_ICE_CANDIDATES
from specs.reply_code import LAST_SUCCESS, Code

__all__ = ["LinkSide", "after_the_end"]

_GIVE_UP: Final = {
    State.CREATED: Trigger.REFUSED,
    State.IN_PROGRESS: Trigger.ESTABLISH_FAILED,
    State.YIELDING: Trigger.ESTABLISH_FAILED,
    State.LIVE: Trigger.CLOSED,
}
_SET_UP: Final = (State.CREATED, State.IN_PROGRESS, State.YIELDING)
_AWAITING: Final = (DialState.READY, DialState.PLEADED)
_DIALLING: Final = (DialState.DIALLING, DialState.DIALLING_LATE)
_CROSSING: Final = DIAL_TIMEOUT + HANDSHAKE_TIMEOUT
"""Seconds in which what the ends dialled before either had a link may still open."""


@final
class LinkSide:
    """One end of one link: an entity of `p2p_connection`, and one of `link_dialling`.

    Attributes:
        negotiation: Which offer and answer its candidates are of.
        offer: The session description that the peer offers; None: none, or this end offers.
    """

    def __init__(self, terms: LinkTerms, role: Role, policy: DialPolicy) -> None:
        key = f"{terms.own}|{terms.remote}|{role.value}|{terms.name}"
        self._entity = Entity(P2P_CONNECTION, key)
        self._dialling = Entity(LINK_DIALLING, key)
        self._plan = DialPlan(policy, terms.remote)
        self._role = role
        self._since = -math.inf
        self._link: str | None = None
        self._peer: Believed | None = None
        self._attempt = 0
        self._pleas = 0
        self._deadline = math.inf
        self._policy = policy
        self._remote = terms.remote
        self._trickled: set[str] = set()
        self._heard: set[str] = set()
        self._offers_nothing = False
        self.offer: str | None = None
        self.negotiation = FIRST

    @property
    def state(self) -> State | None:
        """The state of the connection; None: not begun."""
        state = self._entity.state
        return None if state is None else State(state)

    @property
    def ended(self) -> bool:
        """True if nothing more will come of it."""
        return self._dialling.state is DialState.ENDED

    @property
    def is_setting_up(self) -> bool:
        """True if it is opening a link by its offer and answer."""
        return self.state in _SET_UP and not self.ended

    @property
    def is_lost(self) -> bool:
        """True if the link is gone and may come back in place."""
        return self.state is State.DISCONNECTED and not self.ended

    @property
    def is_hopeless(self) -> bool:
        """True if neither end offers anything that could be dialled."""
        return self._offers_nothing and self._plan.is_blank and self.is_setting_up

    @property
    def is_dialling(self) -> bool:
        """True if a dial is under way."""
        return self._dialling.state in _DIALLING

    def deadline(self) -> float:
        """Return when this end must be fed `TimePassed`."""
        return self._deadline

    def begin(self, now: float) -> list[SideEffect]:
        """Begin at `created`: a requester may dial, a handler waits to be dialled."""
        effects = self._move(Trigger.STARTED)
        self._deadline = now + self._entity.patience
        trigger = DialTrigger.ROUND if self._role is Role.REQUESTER else DialTrigger.STOP
        return [*effects, self._dialling.step(trigger)]

    def own_object(
        self,
        happened: ObjectCreated | ObjectRefused | InvitationAnswered | CandidatesReady | IceFound,
        now: float,
    ) -> list[SideEffect]:
        """Take a step of the own object's set-up, which is alike at both ends.

        Args:
            happened: The step.
            now: Seconds on the host's clock.
        """
        match happened:
            case ObjectCreated():
                effects = self._move(Trigger.OBJECT_RETURNED)
                # The state `in-progress` does not prolong the time for the set-up.
                self._deadline = min(self._deadline, now + self._entity.patience)
                return [*effects, Listen(self.offer), Invite()]
            case ObjectRefused(why):
                return self.give_up(why)
            case InvitationAnswered(code, why):
                return self._refused(why or f"refused {code}") if code > LAST_SUCCESS else []
            case CandidatesReady(candidates, negotiation, sdp):
                # The listeners of an older negotiation are closed by now.
                # Also without a candidate: the peer must know the certificate of a dialler.
                if negotiation != self.negotiation:
                    return []
                self._offers_nothing = not candidates and sdp is None
                return [Offer(candidates, sdp)]
            case IceFound(candidate, negotiation):
                return self._trickle(candidate) if negotiation == self.negotiation else []
            case _:
                assert_never(happened)

    def _trickle(self, candidate: str) -> list[SideEffect]:
        if not self._policy.offers_ice(candidate, self._remote):
            return []
        if candidate in self._trickled or len(self._trickled) == MAX_ICE_CANDIDATES:
            return []
        self._trickled.add(candidate)
        return [Trickle(candidate, self._policy.ice_proof(candidate))]

    def hear_ice(self, candidates: Iterable[IceCandidate]) -> list[SideEffect]:
        """Try the peer's candidates of ICE, each once, that may be tried."""
        effects: list[SideEffect] = []
        for one in candidates:
            is_new = one.candidate not in self._heard and len(self._heard) < MAX_ICE_CANDIDATES
            if is_new and self._policy.allows_ice(one, self._remote):
                self._heard.add(one.candidate)
                effects.append(HearIce(one.candidate))
        return effects

    def peer_object_gone(self, happened: ObserveRefused | PeerObjectDeleted) -> list[SideEffect]:
        """Give up without the peer's object; a link stands if it is only not to be observed."""
        if isinstance(happened, ObserveRefused):
            return self._refused(happened.why)
        return self.give_up("the peer deleted its object")

    def believe(self, standing: Standing) -> list[SideEffect]:
        """Take the proven identity of the peer; a set-up with any other peer is given up.

        The first certificate counts for the whole link: a peer that comes back has it still.

        Args:
            standing: Whether the peer's object is believed.
        """
        match standing:
            case Unsigned():
                return []
            case Distrusted(why):
                return self._refused(why)
            case Believed():
                if self._peer is not None and not self._peer.is_same_end(standing):
                    return self._refused("the peer offers another certificate than before")
                if self._peer == standing:
                    return []
                self._peer = standing
                if self.state is State.LIVE:
                    self._deadline = standing.until
                return [Pin(standing)]
            case _:
                assert_never(standing)

    def is_of_peer(self, standing: Standing) -> bool:
        """Return whether it is of the peer that has been believed."""
        if self._peer is None or not isinstance(standing, Believed):
            return False
        return self._peer.is_same_end(standing)

    @property
    def knows_peer(self) -> bool:
        """True if the peer has proven its identity."""
        return self._peer is not None

    def _move(self, trigger: Trigger, why: str = "") -> list[SideEffect]:
        step = self._entity.step(trigger, why)
        return [step, Announce(State(step.new), why)]

    # --- links --------------------------------------------------------------------------

    def opened(self, event: LinkOpened, now: float) -> list[SideEffect]:
        """Use a link, or close it: there is at most one.

        A link by a void candidate is closed, and one to a peer that is not known.

        Args:
            event: The link.
            now: Seconds on the host's clock.
        """
        effects: list[SideEffect] = []
        if event.negotiation != self.negotiation or self._peer is None:
            return [CloseLink(event.link)]
        if self.state is State.LIVE and self._replaces(event.opening, now):
            effects += self.lost(LinkLost(self._link or "", Loss.BROKEN, "replaced"), now)
        if self.is_setting_up and self.state is State.IN_PROGRESS:
            trigger = Trigger.ESTABLISHED
        elif self.is_lost:
            trigger = Trigger.REESTABLISHED
        else:
            return [*effects, CloseLink(event.link)]
        self._link = event.link
        self._since = now
        self._deadline = self._peer.until
        return [*effects, UseLink(event.link), *self._move(trigger), *self._stop_dialling()]

    def _replaces(self, opening: Opening, now: float) -> bool:
        """Return whether a link takes the place of the live one.

        Both ends may dial at once. Then both have two links, perhaps in another order, and
        keep the one that the requester dialled. Later than that, the peer dials only while
        it has none: one that it opened replaces the one that we still believe in.
        """
        is_requesters = (opening is Opening.DIALLED) is (self._role is Role.REQUESTER)
        is_crossing = now - self._since <= _CROSSING
        return is_requesters if is_crossing else opening is Opening.ACCEPTED

    def lost(self, event: LinkLost, now: float) -> list[SideEffect]:
        """Leave `live` if the link in use is lost.

        Args:
            event: The lost link.
            now: Seconds on the host's clock.
        """
        if event.link != self._link:
            return []
        self._link = None
        self._deadline = now + SESSION_IDLE
        self._plan.restart()
        effects = [*self._move(Trigger.CLOSED, event.why), ReleaseLink(event.link)]
        return effects if event.loss is Loss.BROKEN else [*effects, *self._end()]

    # --- simultaneous open --------------------------------------------------------------

    @property
    def is_yielding(self) -> bool:
        """True if it waits for the link that the peer asks for."""
        return self.state is State.YIELDING and not self.ended

    def yields(self, order: YieldAsked, why: str) -> list[SideEffect]:
        """Wait for the peer's link; a link without an object is closed instead (t3).

        Meanwhile nothing is dialled, and a link that opens all the same is closed. The deadline
        stays. A stale order changes nothing: the link has been live.

        Args:
            order: The order to yield.
            why: Reason, for the trace.
        """
        if self.state is State.CREATED:
            return [*self.give_up(why), Answered(Code.OK)]
        if self.is_yielding:
            return [Answered(Code.OK)]
        if self.state is not State.IN_PROGRESS or order.negotiation != self.negotiation:
            return [Answered(Code.CONFLICT, "the link is not being set up")]
        self._plan.restart()
        yielded = self._move(Trigger.YIELDED, why)
        return [*yielded, *self._stop_dialling(), Answered(Code.OK)]

    def resumes(self, order: ResumeAsked) -> list[SideEffect]:
        """Go on with the set-up after the peer's link has failed: dial what is offered by now.

        A stale order changes nothing.
        """
        if not self.is_yielding or order.negotiation != self.negotiation:
            return [Answered(Code.CONFLICT, "the link does not yield")]
        resumed = self._move(Trigger.RESUMED, "the peer's link has failed")
        return [*resumed, Answered(Code.OK), *self._begin_round(), *self.dial_on()]

    # --- offer and answer ---------------------------------------------------------------

    def renew(self, negotiation: int, why: str, now: float) -> list[SideEffect]:
        """Begin a new negotiation in place (t8): a link that is still open is given up.

        An end that was not live since its last negotiation takes the new number; the deadline
        stays.

        Args:
            negotiation: Number of the negotiation.
            why: Reason, for the trace.
            now: Seconds on the host's clock.
        """
        effects: list[SideEffect] = []
        if self._link is not None:
            effects += self.lost(LinkLost(self._link, Loss.BROKEN, why), now)
        if self.is_lost:
            effects += self._move(Trigger.RENEGOTIATED, why)
            self._deadline = now + self._entity.patience
        self.negotiation = negotiation
        self._plan.forget()
        self._trickled.clear()
        self._heard.clear()
        self.offer = None
        effects += [*self._stop_dialling(), Renew(negotiation, beginning(negotiation))]
        if self._role is Role.HANDLER:
            return effects  # it answers what the requester will offer
        return [*effects, *self._begin_round(), Listen()]

    # --- dialling -----------------------------------------------------------------------

    def learn(self, candidates: tuple[Candidate, ...], answer: str | None = None) -> None:
        """Take note of the peer's candidates, and of its answer to the own data channel.

        Args:
            candidates: The candidates.
            answer: The session description that answers; None: there is none.
        """
        self._plan.learn(candidates)
        if answer is not None:
            self._plan.learn_answer(answer)

    @property
    def is_repeatable(self) -> bool:
        """True if the link may come back by what both ends know."""
        return self._plan.is_repeatable

    def new_round(self) -> list[SideEffect]:
        """Let every candidate be tried again."""
        self._plan.restart()
        return self._begin_round()

    def _begin_round(self) -> list[SideEffect]:
        return [self._dialling.step(DialTrigger.ROUND)]

    def dial_on(self) -> list[SideEffect]:
        """Dial the best candidate left of this round, if none is being dialled.

        If the peer has offered some and none is left, plead to be dialled: a requester once
        in each round, a handler at the end of the round that the requester pleaded for.
        """
        state = self._dialling.state
        candidate = self._plan.next() if state in _AWAITING else None
        if candidate is not None:
            self._attempt += 1
            return [self._dialling.step(DialTrigger.DIAL), Dial(candidate, self._attempt)]
        if state is not DialState.READY or self._plan.is_blank:
            return []
        trigger = DialTrigger.PLEAD if self._role is Role.REQUESTER else DialTrigger.STOP
        self._pleas += 1
        return [self._dialling.step(trigger), Plead(plea(self.negotiation, self._pleas))]

    def dial_failed(self, attempt: int) -> list[SideEffect]:
        """Dial the next candidate, if it was the dial under way that failed."""
        if not self.is_dialling or attempt != self._attempt:
            return []
        return [self._dialling.step(DialTrigger.DIAL_FAILED), *self.dial_on()]

    def _stop_dialling(self) -> list[Step]:
        is_idle = self._dialling.state is DialState.IDLE
        return [] if is_idle else [self._dialling.step(DialTrigger.STOP)]

    # --- the end ------------------------------------------------------------------------

    def time_passed(self, now: float) -> list[SideEffect]:
        """Give up if the deadline is over."""
        if now < self._deadline:
            return []
        if self.state is State.LIVE:
            return self.give_up("nobody vouches for the peer any more")
        return self.give_up(self.late if self.is_setting_up else "the link did not come back")

    @property
    def late(self) -> str:
        """The reason of the end of a set-up that takes too long."""
        return "timeout" if self.knows_peer else "timeout: the peer has signed nothing"

    def _refused(self, why: str) -> list[SideEffect]:
        """Give up a set-up that was refused; a link stands without it."""
        return self.give_up(why) if self.is_setting_up else []

    def give_up(self, why: str) -> list[SideEffect]:
        """End for good, from any state: failed if never live, else disconnected."""
        if self.ended:
            return []
        effects: list[SideEffect] = []
        trigger = None if self.state is None else _GIVE_UP.get(self.state)
        if trigger is not None:
            effects += self._move(trigger, why)
        if self._link is not None:
            effects.append(CloseLink(self._link))
            self._link = None
        return [*effects, *self._end()]

    def _end(self) -> list[SideEffect]:
        self._deadline = math.inf
        return [self._dialling.step(DialTrigger.END), Withdraw(), Ended()]


def after_the_end(happened: SideInput) -> list[SideEffect]:
    """Clean up what arrives at an end that is done."""
    match happened:
        case ConnectAsked() | ResumeAsked():
            return [Answered(Code.GONE, "the link has ended")]
        case DisconnectAsked() | YieldAsked():
            return [Answered(Code.OK)]
        case ObjectCreated():
            return [Withdraw()]
        case LinkOpened(link):
            return [CloseLink(link)]
        case PeerInvited(url):
            return [AnswerInvitation(url, Code.GONE, "the link has ended")]
        case _:
            return []
