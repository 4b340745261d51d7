"""One end of a P2P link: that of a requester, or that of a handler (SC-16, 17, 23..26).

The requester writes the offer C1, invites the remote handler, observes the answer C2 and dials its
candidates. The handler answers the invitation, observes C1, writes C2 and waits to be dialled; it
dials itself only if C1 says that the requester cannot reach it. If no candidate opens, the end
writes into its object that it wants to be dialled.

A link that is lost comes back in place, by the same objects, with one attempt each time the
registry orders the requester: first by the known candidates, then by a new offer and answer, which
is the last attempt.

If both runtimes have requested a link at once and the peer's request wins, the registry orders the
requester to yield: it ends when the other link is live, and is resumed if that link fails (P2P-27).
"""

import math
import re
from collections.abc import Collection, Iterable
from enum import Enum
from typing import Final, Protocol

import attrs

from fsm.engine import Entity, Step
from fsm.limits.rates import Rate, TokenBuckets
from fsm.machines import handler_controller as controller
from fsm.machines.p2p_connection import (
    LINK_DIALLING,
    P2P_CONNECTION,
    DialState,
    DialTrigger,
    State,
    Trigger,
)
from fsm.p2p.dialling import (
    UNSIGNED,
    Believed,
    ChannelAnswer,
    DialPlan,
    DialPolicy,
    Distrusted,
    Standing,
)
from specs.addresses.address import domain_of
from specs.bodies.object import Candidate, ConnectionData, IceCandidate
from specs.limits.p2p import HANDLED_LINKS, HANDLED_OF_DOMAIN, INVITATION_BURST, INVITATION_RATE
from specs.limits.protocol import DIAL_TIMEOUT, HANDSHAKE_TIMEOUT, IN_PLACE_TRIES, SESSION_IDLE
from specs.limits.webrtc import MAX_ICE_CANDIDATES
from specs.reply_code import LAST_SUCCESS, Code

# The status of a Connection object: the number of its negotiation, and requests to be dialled.


class Role(Enum):
    """The role of this runtime at a link."""

    REQUESTER = "requester"
    HANDLER = "handler"


def own_is_smaller(own_runtime: str, remote_runtime: str) -> bool:
    """Return whether the own runtime's address is the smaller one, in byte order.

    When two runtimes request a link to each other at once, both ends decide alike by this; the
    guards of the tables define the consequences.

    Args:
        own_runtime: Address of the own runtime.
        remote_runtime: Address of the other runtime.
    """
    return own_runtime.encode() < remote_runtime.encode()


FIRST: Final = 1
"""The number of a link's first negotiation."""

UNREACHABLE: Final = "unreachable"
"""Prefix of a status, or of its last part, by which an object's reporter requests to be dialled."""

_LATER: Final = re.compile(r"negotiation-([1-9][0-9]{0,8})(?:-|\Z)")


def negotiation_of(status: str) -> int:
    """Return the number of the negotiation in the status of an object."""
    match = _LATER.match(status)
    return FIRST if match is None else int(match[1])


def is_plea(status: str) -> bool:
    """Return whether the reporter requests to be dialled."""
    match = _LATER.match(status)
    return status[0 if match is None else match.end() :].startswith(UNREACHABLE)


def beginning(negotiation: int) -> str:
    """Return the status at the beginning of a negotiation."""
    return "" if negotiation == FIRST else f"negotiation-{negotiation}"


def plea(negotiation: int, count: int) -> str:
    """Return the status by which the reporter requests to be dialled.

    Args:
        negotiation: Number of the negotiation.
        count: A number that differs in each request.
    """
    start = beginning(negotiation)
    return f"{start}-{UNREACHABLE}-{count}" if start else f"{UNREACHABLE}-{count}"


# The limits of one handler stub for other runtimes (T11).

_RATE: Final = Rate(INVITATION_RATE, INVITATION_BURST)


class HandlerQuota:
    """The limits of the links of one handler."""

    def __init__(self) -> None:
        self._buckets: Final = TokenBuckets[str](_RATE)

    def refusal(self, remote: str, linked: Collection[str], now: float) -> str | None:
        """Return the reason to refuse a runtime a link now, or None.

        Args:
            remote: The requesting runtime.
            linked: The runtimes that have a link, or are getting one.
            now: Seconds of any clock.
        """
        if not self._buckets.try_spend(remote, now):
            return "this runtime asks for links too often"
        others = [each for each in linked if each != remote]
        if len(others) >= HANDLED_LINKS:
            return "too many runtimes have links"
        domain = domain_of(remote)
        if sum(domain_of(other) == domain for other in others) >= HANDLED_OF_DOMAIN:
            return "too many runtimes of this domain have links"
        return None


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
"""Seconds in which dials from before the link may still open another one."""
_HAS_ENDED: Final = "the link has ended"


@attrs.frozen(slots=True)
class LinkTerms:
    """The addresses of a link, as seen from one of its ends.

    Attributes:
        own: Address of this runtime.
        remote: Address of the other runtime.
        name: Address of this end of the link: PQ or PC.
        peer: Address of the stub at the other end: PH or PQ.
    """

    own: str
    remote: str
    name: str
    peer: str


class Opening(Enum):
    """The end that dialled."""

    DIALLED = "dialled"
    ACCEPTED = "accepted"


class Loss(Enum):
    """The way in which a link was lost; ORDERLY: the peer said goodbye and will not come back."""

    BROKEN = "broken"
    ORDERLY = "orderly"


class LinkPort(Protocol):
    """The calls of a link's end to its host; none of them calls the end."""

    def step(self, step: Step) -> None:
        """Trace a step of a machine."""

    def announce(self, state: State, why: str = "") -> None:
        """Publish a status event (M-06, M-07)."""

    def answer_command(self, code: Code, why: str = "") -> None:
        """Answer the registry's command (M-11, M-12)."""

    def ask_row(self) -> None:
        """Ask the registry for its row of the remote runtime; `row_reported` follows."""

    def create_object(self) -> None:
        """Create the own Connection object (M-32)."""

    def invite(self) -> None:
        """Invite the peer to observe the own object (M-33)."""

    def answer_invitation(self, url: str, code: Code, why: str = "") -> None:
        """Answer the peer's invitation to its object `url`."""

    def observe(self, url: str) -> None:
        """Observe the peer's object (M-36)."""

    def pin(self, peer: Believed) -> None:
        """Accept only the certificate of the peer, who is known from now on."""

    def listen(self, offer: str | None = None) -> None:
        """Open listeners and a data channel; `candidates_ready`, then `ice_found` follow.

        Args:
            offer: The session description to answer; None: there is none.
        """

    def offer(self, candidates: tuple[Candidate, ...], sdp: str | None = None) -> None:
        """Add candidates and session description to the own object, then sign it (M-40)."""

    def trickle(self, candidate: str, host: str | None = None) -> None:
        """Add an ICE candidate to the own object, with its signature (M-40).

        Args:
            candidate: The candidate.
            host: Proof of the machine, if the candidate needs one.
        """

    def hear_ice(self, candidate: str) -> None:
        """Try an ICE candidate of the peer."""

    def dial(self, candidate: Candidate | ChannelAnswer, attempt: int) -> None:
        """Dial a candidate; `link_opened` or `dial_failed` follows."""

    def request_dial(self, status: str) -> None:
        """Write into the own object that the peer cannot be reached and should dial (M-40).

        Args:
            status: The object's new status, different each time.
        """

    def renew(self, negotiation: int, status: str) -> None:
        """Begin a new negotiation, since the results of the former one are void.

        Close the own listeners and give up dials; remove candidates and signature from the own
        object, and write the status into it, which voids them (M-40).

        Args:
            negotiation: Number for the results of later listeners and dials.
            status: The object's new status.
        """

    def use_link(self, link: str) -> None:
        """Carry messages over a link that is live."""

    def release_link(self, link: str) -> None:
        """Give back the messages that a lost link did not deliver, in order."""

    def close_link(self, link: str) -> None:
        """Send `Bye` on a link, close the link, and give back messages that it did not deliver."""

    def withdraw(self) -> None:
        """Delete the own object, stop observing the peer's, stop listening and dialling."""

    def end(self) -> None:
        """Remove this end, which is over."""


class LinkEnd:
    """The core of one end of one link.

    It is an entity of `p2p_connection` and one of `link_dialling`. A handler's end is also an
    entity of `handler_controller`, whose guards decide whether the invitation is valid.

    Args:
        terms: The two ends of the link.
        role: The role of this end.
        policy: The candidates to dial and to offer.
        port: The host.
        offer: Address of the requester's object C1; empty: this is the requester.

    Attributes:
        terms: The two ends of the link.
        negotiation: Number of the negotiation of its candidates.
    """

    def __init__(
        self, terms: LinkTerms, role: Role, policy: DialPolicy, port: LinkPort, offer: str = ""
    ) -> None:
        key = f"{terms.own}|{terms.remote}|{role.value}|{terms.name}"
        self.terms = terms
        self.negotiation = FIRST
        self._role = role
        self._policy = policy
        self._port = port
        self._entity = Entity(P2P_CONNECTION, key)
        self._dialling = Entity(LINK_DIALLING, key)
        is_handler = role is Role.HANDLER
        self._life = Entity(controller.HANDLER_CONTROLLER, terms.name) if is_handler else None
        self._deadline = math.inf
        self._life_deadline = math.inf
        # The set-up: a requester observes the answer, a handler the offer.
        self._observed = offer
        self._is_invited = False
        self._answered = 0
        self._sdp: str | None = None
        self._peer: Believed | None = None
        self._peer_status = ""
        self._trickled: set[str] = set()
        self._heard: set[str] = set()
        self._offers_nothing = False
        # Dials and the link.
        self._plan = DialPlan(policy, terms.remote)
        self._attempt = 0
        self._pleas = 0
        self._tries = 0
        self._link: str | None = None
        self._since = -math.inf

    @property
    def state(self) -> State | None:
        """The state of the connection; None: not begun."""
        state = self._entity.state
        return None if state is None else State(state)

    @property
    def has_ended(self) -> bool:
        """True if this end is over."""
        return self._dialling.state is DialState.ENDED

    @property
    def _is_setting_up(self) -> bool:
        return self.state in _SET_UP and not self.has_ended

    @property
    def _is_lost(self) -> bool:
        """True if the link is gone and may come back in place."""
        return self.state is State.DISCONNECTED and not self.has_ended

    @property
    def _is_yielding(self) -> bool:
        return self.state is State.YIELDING and not self.has_ended

    def deadline(self) -> float:
        """Return when `time_over` is due; infinity: never."""
        return min(self._deadline, self._life_deadline)

    def _move(self, trigger: Trigger, why: str = "") -> None:
        step = self._entity.step(trigger, why)
        self._port.step(step)
        self._port.announce(State(step.new), why)

    def _move_dialling(self, trigger: DialTrigger) -> None:
        self._port.step(self._dialling.step(trigger))

    def _move_life(self, life: Entity, trigger: controller.Trigger, now: float) -> None:
        self._port.step(life.step(trigger))
        until = now + life.patience
        # The deadline of a set-up is never extended.
        self._life_deadline = until if until == math.inf else min(until, self._life_deadline)

    # --- the own object: `now` is the time on the host's clock ------------------------------

    def start(self, now: float) -> None:
        """Begin: a requester may dial, a handler waits to be dialled."""
        self._move(Trigger.STARTED)
        self._deadline = now + self._entity.patience
        if self._life is None:
            self._move_dialling(DialTrigger.ROUND)
            self._port.create_object()
        else:
            self._move_dialling(DialTrigger.STOP)
            self._move_life(self._life, controller.Trigger.INVITED, now)
            self._port.ask_row()

    def row_reported(self, has_own_request: bool) -> None:  # noqa: FBT001 - a fact of the row
        """Answer the invitation by the registry's row of the remote runtime (P2P-18).

        Args:
            has_own_request: Whether an own requester is at work, not in a final state.
        """
        if self._life is None or self._is_invited or self.has_ended:
            return
        facts = {
            controller.Condition.OWN_REQUEST: has_own_request,
            controller.Condition.OWN_SMALLER: own_is_smaller(self.terms.own, self.terms.remote),
        }
        conditions = {fact for fact, is_true in facts.items() if is_true}
        step = self._life.step(controller.Trigger.ROW_REPORTED, given=conditions)
        self._port.step(step)
        if step.new == controller.State.CLOSED:
            self._refuse(f"simultaneous open: the link requested by {self.terms.own} wins")
            return
        self._is_invited = True
        self._port.answer_invitation(self._observed, Code.OK)
        self._port.observe(self._observed)

    def object_created(self, now: float) -> None:
        """Note that the own Connection object was created (M-32 answered)."""
        if self.has_ended:
            self._port.withdraw()
            return
        self._move(Trigger.OBJECT_RETURNED)
        # The state `in-progress` does not extend the deadline of the set-up.
        self._deadline = min(self._deadline, now + self._entity.patience)
        self._port.listen(self._sdp)
        self._port.invite()

    def object_refused(self, why: str) -> None:
        """Note that the own Connection object was refused."""
        self._give_up(why)

    def invitation_answered(self, code: int, why: str = "") -> None:
        """Note the peer's final answer to our invitation (M-33)."""
        if code > LAST_SUCCESS:
            self._set_up_refused(why or f"refused {code}")

    def candidates_ready(
        self, candidates: tuple[Candidate, ...], negotiation: int = FIRST, sdp: str | None = None
    ) -> None:
        """Offer the open listeners, even none: the peer must know the certificate of a dialler.

        Args:
            candidates: Candidates of the own listeners.
            negotiation: The negotiation they were opened for; listeners of an older one are closed
                by now.
            sdp: Session description of the data channel; None: there is none.
        """
        if negotiation == self.negotiation and not self.has_ended:
            self._offers_nothing = not candidates and sdp is None
            self._port.offer(candidates, sdp)

    def ice_found(self, candidate: str, negotiation: int = FIRST) -> None:
        """Offer an ICE candidate of this end once, if the peer may know it.

        Args:
            candidate: The candidate; an empty one ends them.
            negotiation: Its negotiation.
        """
        if (
            negotiation == self.negotiation
            and not self.has_ended
            and self._policy.offers_ice(candidate, self.terms.remote)
            and candidate not in self._trickled
            and len(self._trickled) < MAX_ICE_CANDIDATES
        ):
            self._trickled.add(candidate)
            self._port.trickle(candidate, self._policy.ice_proof(candidate))

    # --- the peer's object ------------------------------------------------------------------

    def peer_invited(self, url: str, source: str) -> None:
        """Note that the peer invites this end to observe its object (M-34)."""
        if self.has_ended:
            self._port.answer_invitation(url, Code.GONE, _HAS_ENDED)
        elif self._life is not None:
            self._port.answer_invitation(url, Code.CONFLICT, "the invitation came before")
        elif source != self.terms.peer or not self._is_setting_up:
            why = "this object is not expected here"
            self._port.answer_invitation(url, Code.FORBIDDEN, why)
        elif self._observed:
            why = "there is an answer object already"
            self._port.answer_invitation(url, Code.CONFLICT, why)
        else:
            self._observed = url
            self._port.answer_invitation(url, Code.OK)
            self._port.observe(url)

    def peer_object_seen(
        self,
        data: ConnectionData,
        standing: Standing = UNSIGNED,
        ice: tuple[IceCandidate, ...] = (),
        *,
        now: float,
    ) -> None:
        """Take the present state of the peer's object, from its snapshot or after a change.

        Args:
            data: The object.
            standing: Whether it is proven to be the peer's.
            ice: Its ICE candidates that the peer has signed.
            now: Seconds on the host's clock.
        """
        if self.has_ended or not self._is_current(data.status, standing, now):
            return
        self._believe(standing)
        if not isinstance(standing, Believed) or self.has_ended:
            return
        described = data.connection_description
        sdp = None if described is None else described.sdp
        self._plan.learn(data.candidates)
        if self._life is not None:
            self._answer(self._life, sdp, now)
        elif sdp is not None:
            self._plan.learn_answer(sdp)
        self._hear_ice(ice)
        is_request = is_plea(data.status) and data.status != self._peer_status
        self._peer_status = data.status
        if self._life is None:
            is_hopeless = self._offers_nothing and self._plan.is_blank
            if (is_hopeless or is_request) and self._is_setting_up:
                self._give_up("no candidate of either end opens")
                return
        elif is_request and self.state is not State.LIVE:
            self._begin_round()
        self._dial_on()

    def _is_current(self, status: str, standing: Standing, now: float) -> bool:
        """Return whether the peer's object is of this negotiation; an offer may begin the next one.

        An object of an earlier negotiation is void: it may be an old one that is replayed. So is an
        offer that is not of the next negotiation, as the requester begins none before the last one
        has led to a link. A live link is given up only for an offer of its peer.
        """
        number = negotiation_of(status)
        if number == self.negotiation:
            return True
        if self._life is None or number != self.negotiation + 1:
            return False
        if self.state is State.CREATED:
            self._give_up("the offer was void before it was answered")
            return False
        if self.state is State.LIVE and not self._is_of_peer(standing):
            return False
        self._renew(number, "the requester offers anew", now)
        return True

    def _is_of_peer(self, standing: Standing) -> bool:
        if self._peer is None or not isinstance(standing, Believed):
            return False
        return self._peer.is_same_end(standing)

    def _believe(self, standing: Standing) -> None:
        """Accept the proven identity of the peer; a set-up with any other peer is given up.

        The first certificate is valid for the whole link: a peer that comes back still has it.
        """
        if isinstance(standing, Distrusted):
            self._set_up_refused(standing.why)
        elif isinstance(standing, Believed) and standing != self._peer:
            if self._peer is not None and not self._peer.is_same_end(standing):
                self._set_up_refused("the peer offers another certificate than before")
                return
            self._peer = standing
            if self.state is State.LIVE:
                self._deadline = standing.until
            self._port.pin(standing)

    def _answer(self, life: Entity, sdp: str | None, now: float) -> None:
        """Answer a trusted offer once; a data channel answers an offered one."""
        if self._answered == self.negotiation:
            return
        self._answered = self.negotiation
        self._sdp = sdp
        if life.state is controller.State.OBSERVING:
            self._move_life(life, controller.Trigger.ANSWER, now)
            self._port.create_object()
        else:
            self._port.listen(sdp)

    def _hear_ice(self, candidates: Iterable[IceCandidate]) -> None:
        """Try each permitted ICE candidate of the peer once."""
        for candidate in candidates:
            is_new = (
                candidate.candidate not in self._heard and len(self._heard) < MAX_ICE_CANDIDATES
            )
            if is_new and self._policy.allows_ice(candidate, self.terms.remote):
                self._heard.add(candidate.candidate)
                self._port.hear_ice(candidate.candidate)

    def observe_refused(self, why: str) -> None:
        """Note that the peer's object may not be observed, or that its owner does not answer."""
        self._set_up_refused(why)

    def peer_object_deleted(self) -> None:
        """Note that the peer deleted its object, since it gave up or is leaving (M-47)."""
        self._give_up("the peer deleted its object")

    # --- links ------------------------------------------------------------------------------

    def link_opened(
        self, link: str, opening: Opening, negotiation: int = FIRST, *, now: float
    ) -> None:
        """Use a link on which both ends have proven their certificates, or close it.

        At most one link is used. A link by a void candidate, or to an unknown peer, is closed.

        Args:
            link: Name of the link.
            opening: The end that dialled.
            negotiation: The negotiation of its candidate.
            now: Seconds on the host's clock.
        """
        is_void = negotiation != self.negotiation or self.has_ended
        if is_void or self._peer is None:
            self._port.close_link(link)
            return
        if self._link is not None and self._replaces(opening, now):
            self.link_lost(self._link, Loss.BROKEN, "replaced", now=now)
        if self.state is State.IN_PROGRESS:
            trigger = Trigger.ESTABLISHED
        elif self._is_lost:
            trigger = Trigger.REESTABLISHED
        else:
            self._port.close_link(link)
            return
        self._link = link
        self._since = now
        self._tries = 0
        self._deadline = self._peer.until
        self._port.use_link(link)
        self._move(trigger)
        self._stop_dialling()
        if self._life is not None and self._life.state is controller.State.ANSWERING:
            self._move_life(self._life, controller.Trigger.LINK_OPEN, now)

    def _replaces(self, opening: Opening, now: float) -> bool:
        """Return whether a link replaces the live one.

        Both ends may dial at once. Then both have two links, perhaps in another order, and keep the
        one that the requester dialled. Later, the peer dials only while it has no link: a link that
        it opened replaces the one that this end still considers live.
        """
        is_requesters = (opening is Opening.DIALLED) is (self._role is Role.REQUESTER)
        is_crossing = now - self._since <= _CROSSING
        return is_requesters if is_crossing else opening is Opening.ACCEPTED

    def link_lost(self, link: str, loss: Loss, why: str = "", *, now: float) -> None:
        """Leave `live` if the link in use is lost."""
        if link != self._link:
            return
        self._link = None
        self._deadline = now + SESSION_IDLE
        self._plan.restart()
        self._move(Trigger.CLOSED, why)
        self._port.release_link(link)
        if loss is Loss.ORDERLY:
            self._end()

    def dial_failed(self, attempt: int) -> None:
        """Dial the next candidate, if the dial that failed is the one under way."""
        if self._dialling.state in _DIALLING and attempt == self._attempt:
            self._move_dialling(DialTrigger.DIAL_FAILED)
            self._dial_on()

    # --- commands of the registry; each is answered -----------------------------------------

    def connect(self, now: float) -> None:
        """Try to restore the link, by order of the registry (M-11)."""
        if self.has_ended:
            self._port.answer_command(Code.GONE, _HAS_ENDED)
            return
        if self._role is Role.HANDLER:
            why = "only the requester's end reconnects"
            self._port.answer_command(Code.FORBIDDEN, why)
            return
        self._port.answer_command(Code.ACCEPTED, "reconnecting")
        if not self._is_lost:
            return
        if self._tries == IN_PLACE_TRIES or not self._plan.is_repeatable:
            self._tries = 0
            self._renew(self.negotiation + 1, "a new offer is needed", now)
            return
        self._tries += 1
        if self._dialling.state not in _DIALLING:
            self._begin_round()
            self._dial_on()

    def disconnect(self, why: str) -> None:
        """Close the link for good, by order of the registry or at shutdown (M-12)."""
        self._refuse(self._lost_to_peer if self._is_yielding else why)
        self._port.answer_command(Code.OK)

    def yield_to_peer(self, negotiation: int = FIRST) -> None:
        """Wait for the peer's link, which has won a simultaneous open (P2P-27).

        An end without an object is closed instead (t3). Meanwhile nothing is dialled, and a link
        that still opens is closed. The deadline stays. A stale order, after the link has been live,
        is ignored.

        Args:
            negotiation: The negotiation that lost; the order is stale in any other.
        """
        if self.has_ended:
            self._port.answer_command(Code.OK)
        elif self._role is Role.HANDLER:
            self._port.answer_command(Code.FORBIDDEN, "only the requester's end yields")
        elif self.state is State.CREATED:
            self._give_up(self._lost_to_peer)
            self._port.answer_command(Code.OK)
        elif self._is_yielding:
            self._port.answer_command(Code.OK)
        elif self.state is not State.IN_PROGRESS or negotiation != self.negotiation:
            self._port.answer_command(Code.CONFLICT, "the link is not being set up")
        else:
            self._plan.restart()
            self._move(Trigger.YIELDED, self._lost_to_peer)
            self._stop_dialling()
            self._port.answer_command(Code.OK)

    def resume(self, negotiation: int = FIRST) -> None:
        """Dial the present candidates, since the peer's link has failed (P2P-27).

        Args:
            negotiation: The negotiation that yielded; the order is stale in any other.
        """
        if self.has_ended:
            self._port.answer_command(Code.GONE, _HAS_ENDED)
        elif self._role is Role.HANDLER:
            self._port.answer_command(Code.FORBIDDEN, "only the requester's end yields")
        elif not self._is_yielding or negotiation != self.negotiation:
            self._port.answer_command(Code.CONFLICT, "the link does not yield")
        else:
            self._move(Trigger.RESUMED, "the peer's link has failed")
            self._port.answer_command(Code.OK)
            self._move_dialling(DialTrigger.ROUND)
            self._dial_on()

    @property
    def _lost_to_peer(self) -> str:
        """Return the reason why a request ends that lost a simultaneous open (I-P20)."""
        return f"{int(Code.CONFLICT)}: the link requested by {self.terms.remote} wins"

    def _renew(self, negotiation: int, why: str, now: float) -> None:
        """Begin a new negotiation in place (t8): a link that is still open is given up.

        An end that was not live since its last negotiation takes the new number; the deadline
        stays.
        """
        if self._link is not None:
            self.link_lost(self._link, Loss.BROKEN, why, now=now)
        if self._is_lost:
            self._move(Trigger.RENEGOTIATED, why)
            self._deadline = now + self._entity.patience
        self.negotiation = negotiation
        self._plan.forget()
        self._trickled.clear()
        self._heard.clear()
        self._sdp = None
        self._stop_dialling()
        self._port.renew(negotiation, beginning(negotiation))
        if self._role is Role.REQUESTER:  # a handler answers what the requester will offer
            self._move_dialling(DialTrigger.ROUND)
            self._port.listen()

    # --- dialling ---------------------------------------------------------------------------

    def _begin_round(self) -> None:
        """Begin a round in which every candidate may be tried again."""
        self._plan.restart()
        self._move_dialling(DialTrigger.ROUND)

    def _dial_on(self) -> None:
        """Dial the best remaining candidate of this round, if no dial is under way.

        If the peer has offered candidates and none is left, request to be dialled: a requester once
        in each round, a handler at the end of the round that the requester asked for.
        """
        state = self._dialling.state
        candidate = self._plan.next() if state in _AWAITING else None
        if candidate is not None:
            self._attempt += 1
            self._move_dialling(DialTrigger.DIAL)
            self._port.dial(candidate, self._attempt)
        elif state is DialState.READY and not self._plan.is_blank:
            is_requester = self._role is Role.REQUESTER
            self._pleas += 1
            self._move_dialling(DialTrigger.PLEAD if is_requester else DialTrigger.STOP)
            self._port.request_dial(plea(self.negotiation, self._pleas))

    def _stop_dialling(self) -> None:
        if self._dialling.state is not DialState.IDLE:
            self._move_dialling(DialTrigger.STOP)

    # --- the end ----------------------------------------------------------------------------

    def time_over(self, now: float) -> None:
        """Give up if the deadline is over."""
        if now < self.deadline():
            return
        if self.state is State.LIVE:
            self._give_up("nobody vouches for the peer any more")
        elif self._is_lost:
            self._give_up("the link did not come back")
        else:
            why = "timeout" if self._peer else "timeout: the peer has signed nothing"
            self._refuse(why, "timeout")

    def _set_up_refused(self, why: str) -> None:
        """Give up a set-up that was refused; a live link continues without it."""
        if self._is_setting_up:
            self._give_up(why)

    def _refuse(self, why: str, answer: str = "") -> None:
        """Give up, and answer the invitation of a requester if that was not done yet."""
        if self._life is not None and not self._is_invited and not self.has_ended:
            self._is_invited = True
            self._port.answer_invitation(self._observed, Code.CONFLICT, answer or why)
        self._give_up(why)

    def _give_up(self, why: str) -> None:
        """End for good, from any state: failed if never live, else disconnected."""
        if self.has_ended:
            return
        trigger = None if self.state is None else _GIVE_UP.get(self.state)
        if trigger is not None:
            self._move(trigger, why)
        if self._link is not None:
            self._port.close_link(self._link)
            self._link = None
        self._end()

    def _end(self) -> None:
        self._deadline = self._life_deadline = math.inf
        self._move_dialling(DialTrigger.END)
        if self._life is not None and not self._life.may_end:
            self._port.step(self._life.step(controller.Trigger.OVER))
        self._port.withdraw()
        self._port.end()
