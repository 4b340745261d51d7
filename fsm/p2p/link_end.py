"""Set-up and restoration of a P2P link, as seen by one of its two runtimes (SC-16, 17, 23..26).

One runtime requests the link, the other handles the request. Both exchange the data for that by
data objects (Connection objects): the offer C1 of the requester, and the answer C2 of the handler.
They contain candidates: addresses at which a runtime can be dialled. The requester writes C1,
invites the remote handler, observes C2 and dials its candidates. The handler answers the
invitation, observes C1, writes C2 and waits. If the requester can open no candidate, it writes into
C1 that it wants to be dialled, and the handler dials the candidates in C1.

A lost link is restored with the same objects. Each order of the registry causes one attempt: first
with the known candidates, and at last with a new offer and answer (a new negotiation).

If both runtimes have requested a link at once and the peer's request wins, the registry orders the
requester to yield: its request waits, ends when the peer's link is live, and continues if that link
fails (P2P-27).
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

# Text in the status of a Connection object: number of the negotiation, and requests to be dialled.


class Role(Enum):
    """The role of this runtime in the set-up of a link."""

    REQUESTER = "requester"
    HANDLER = "handler"


def own_is_smaller(own_runtime: str, remote_runtime: str) -> bool:
    """Return whether this runtime's address is smaller than the other's, in byte order.

    If two runtimes request a link to each other at once, this decides whose request wins, with the
    same result in both runtimes.

    Args:
        own_runtime: Address of this runtime.
        remote_runtime: Address of the other runtime.
    """
    return own_runtime.encode() < remote_runtime.encode()


FIRST: Final = 1
"""The number of a link's first negotiation."""

UNREACHABLE: Final = "unreachable"
"""Word in the status of a Connection object by which its reporter requests to be dialled."""

_LATER: Final = re.compile(r"negotiation-([1-9][0-9]{0,8})(?:-|\Z)")


def negotiation_of(status: str) -> int:
    """Return the number of the negotiation that the status of a Connection object contains."""
    match = _LATER.match(status)
    return FIRST if match is None else int(match[1])


def is_plea(status: str) -> bool:
    """Return whether the status of a Connection object requests that its reporter be dialled."""
    match = _LATER.match(status)
    return status[0 if match is None else match.end() :].startswith(UNREACHABLE)


def beginning(negotiation: int) -> str:
    """Return the status of a Connection object at the beginning of a negotiation."""
    return "" if negotiation == FIRST else f"negotiation-{negotiation}"


def plea(negotiation: int, count: int) -> str:
    """Return the status of a Connection object that requests that its reporter be dialled.

    Args:
        negotiation: Number of the negotiation.
        count: A number that differs in each request.
    """
    start = beginning(negotiation)
    return f"{start}-{UNREACHABLE}-{count}" if start else f"{UNREACHABLE}-{count}"


# Limits on the links that other runtimes request from one handler stub (T11).

_RATE: Final = Rate(INVITATION_RATE, INVITATION_BURST)


class HandlerQuota:
    """Limits on the links that other runtimes request from one handler stub."""

    def __init__(self) -> None:
        self._buckets: Final = TokenBuckets[str](_RATE)

    def refusal(self, remote: str, linked: Collection[str], now: float) -> str | None:
        """Return the reason to refuse a runtime's request for a link, or None.

        Args:
            remote: The requesting runtime.
            linked: The runtimes whose links are open or being set up.
            now: Seconds on any clock.
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
"""Seconds after a link has opened in which an earlier dial may open a second link."""
_HAS_ENDED: Final = "the link has ended"


@attrs.frozen(slots=True)
class LinkTerms:
    """The addresses of a link, as seen by one of its two runtimes.

    Attributes:
        own: Address of this runtime.
        remote: Address of the other runtime.
        name: Address of the link in this runtime: its requester stub, or the handler's name for it.
        peer: Address of the stub of the other runtime: its handler stub or requester stub.
    """

    own: str
    remote: str
    name: str
    peer: str


class Opening(Enum):
    """The runtime that dialled to open a link: this one (DIALLED) or the other (ACCEPTED)."""

    DIALLED = "dialled"
    ACCEPTED = "accepted"


class Loss(Enum):
    """The way in which a link was lost; ORDERLY: the peer ended the link on purpose."""

    BROKEN = "broken"
    ORDERLY = "orderly"


class LinkPort(Protocol):
    """Calls of `LinkEnd` to its host, which sends messages and opens connections.

    None of them calls `LinkEnd`. A data channel is a WebRTC connection; it has ICE candidates.
    """

    def step(self, step: Step) -> None:
        """Trace a state machine transition."""

    def announce(self, state: State, why: str = "") -> None:
        """Publish a status event (M-06, M-07)."""

    def answer_command(self, code: Code, why: str = "") -> None:
        """Answer the registry's command to connect, disconnect, yield or resume (M-11, M-12)."""

    def ask_row(self) -> None:
        """Ask the registry for its entry of the remote runtime; then call `row_reported`."""

    def create_object(self) -> None:
        """Create this runtime's Connection object (M-32)."""

    def invite(self) -> None:
        """Invite the peer to observe this runtime's Connection object (M-33)."""

    def answer_invitation(self, url: str, code: Code, why: str = "") -> None:
        """Answer the peer's invitation to its object `url`."""

    def observe(self, url: str) -> None:
        """Observe the peer's Connection object (M-36)."""

    def pin(self, peer: Believed) -> None:
        """Accept only connections with the certificate of the peer, which is now known."""

    def listen(self, offer: str | None = None) -> None:
        """Open listeners and a data channel; then call `candidates_ready`, later `ice_found`.

        Args:
            offer: The peer's session description to answer; None: the peer has sent none.
        """

    def offer(self, candidates: tuple[Candidate, ...], sdp: str | None = None) -> None:
        """Write candidates and session description into this runtime's object, signed (M-40)."""

    def trickle(self, candidate: str, host: str | None = None) -> None:
        """Add a signed ICE candidate to this runtime's object (M-40).

        Args:
            candidate: The candidate.
            host: Proof that the candidate belongs to this machine, if needed.
        """

    def hear_ice(self, candidate: str) -> None:
        """Pass an ICE candidate of the peer to the data channel."""

    def dial(self, candidate: Candidate | ChannelAnswer, attempt: int) -> None:
        """Dial a candidate of the peer; then call `link_opened` or `dial_failed`."""

    def request_dial(self, status: str) -> None:
        """Write into this runtime's object that the peer cannot be reached and should dial (M-40).

        Args:
            status: The new status of the object, different each time.
        """

    def renew(self, negotiation: int, status: str) -> None:
        """Discard the results of the former negotiation, and begin a new negotiation.

        The host closes its listeners and cancels dials. It removes candidates and signature from
        this runtime's object, and writes the status into it, which invalidates them (M-40).

        Args:
            negotiation: Number to be reported with the results of later listeners and dials.
            status: The new status of the object.
        """

    def use_link(self, link: str) -> None:
        """Send and receive messages over a link, which is live now."""

    def release_link(self, link: str) -> None:
        """Return the messages that a lost link did not deliver to the bus, in order."""

    def close_link(self, link: str) -> None:
        """Send `Bye` on a link, close the link, and return undelivered messages to the bus."""

    def withdraw(self) -> None:
        """Delete this runtime's object, stop observing the peer's, stop listening and dialling."""

    def end(self) -> None:
        """Remove the `LinkEnd` object, since the link has ended for good."""


class LinkEnd:
    """One of the two runtimes' views of a P2P link: negotiates, dials, restores, and ends the link.

    Its state machines are `p2p_connection` and `link_dialling`; a handler also has
    `handler_controller`, which decides whether the invitation of the requester is accepted.

    Args:
        terms: The addresses of the link.
        role: The role of this runtime.
        policy: The candidates to dial and to offer.
        port: The host.
        offer: Address of the requester's object C1; empty: this runtime is the requester.

    Attributes:
        terms: The addresses of the link.
        negotiation: Number of the current negotiation.
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
        """True if the link has ended in this runtime and will not be restored."""
        return self._dialling.state is DialState.ENDED

    @property
    def _is_setting_up(self) -> bool:
        return self.state in _SET_UP and not self.has_ended

    @property
    def _is_lost(self) -> bool:
        """True if the link is lost and may be restored."""
        return self.state is State.DISCONNECTED and not self.has_ended

    @property
    def _is_yielding(self) -> bool:
        return self.state is State.YIELDING and not self.has_ended

    def deadline(self) -> float:
        """Return the time at which `time_over` must be called next; infinity: never."""
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

    # --- object of this runtime: `now` is the time on the host's clock ----------------------

    def start(self, now: float) -> None:
        """Begin to set up the link: create C1 as requester, or check the invitation as handler."""
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
        """Accept or refuse the requester's invitation by what the registry reports (P2P-18).

        Args:
            has_own_request: Whether this runtime is requesting a link to the same runtime itself.
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
        """Open listeners and invite the peer, since the object exists now (M-32 was answered)."""
        if self.has_ended:
            self._port.withdraw()
            return
        self._move(Trigger.OBJECT_RETURNED)
        # The state `in-progress` does not extend the deadline of the set-up.
        self._deadline = min(self._deadline, now + self._entity.patience)
        self._port.listen(self._sdp)
        self._port.invite()

    def object_refused(self, why: str) -> None:
        """End the link, since this runtime's Connection object was refused."""
        self._give_up(why)

    def invitation_answered(self, code: int, why: str = "") -> None:
        """Handle the peer's final answer to the invitation: a refusal ends the set-up (M-33)."""
        if code > LAST_SUCCESS:
            self._set_up_refused(why or f"refused {code}")

    def candidates_ready(
        self, candidates: tuple[Candidate, ...], negotiation: int = FIRST, sdp: str | None = None
    ) -> None:
        """Offer the opened listeners to the peer.

        An empty offer is sent, too, since the peer needs the certificate of this runtime.

        Args:
            candidates: Candidates of this runtime's listeners.
            negotiation: The negotiation for which they were opened; those of an older negotiation
                are ignored.
            sdp: Session description of the data channel; None: there is no data channel.
        """
        if negotiation == self.negotiation and not self.has_ended:
            self._offers_nothing = not candidates and sdp is None
            self._port.offer(candidates, sdp)

    def ice_found(self, candidate: str, negotiation: int = FIRST) -> None:
        """Offer an ICE candidate of this runtime to the peer once, if policy permits.

        Args:
            candidate: The candidate; empty: the last one has been reported.
            negotiation: The negotiation to which the candidate belongs.
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
        """Answer the peer's invitation to observe its Connection object (M-34)."""
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
        """Handle the current content of the peer's Connection object: candidates, requests.

        Args:
            data: The content.
            standing: Whether the content is proven to be the peer's.
            ice: The ICE candidates in it that the peer has signed.
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
        """Return whether the peer's object belongs to the current negotiation.

        An offer with the next number begins the next negotiation. All other numbers are ignored:
        they may be replayed old objects. A live link is ended for a new offer only if the offer is
        proven to be the peer's.
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
        """Accept the proven identity of the peer, or end the set-up if the peer is not trusted.

        The peer must keep its first certificate for the whole life of the link.
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
        """Answer a trusted offer once per negotiation, including an offered data channel."""
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
        """Pass each permitted ICE candidate of the peer to the data channel, once."""
        for candidate in candidates:
            is_new = (
                candidate.candidate not in self._heard and len(self._heard) < MAX_ICE_CANDIDATES
            )
            if is_new and self._policy.allows_ice(candidate, self.terms.remote):
                self._heard.add(candidate.candidate)
                self._port.hear_ice(candidate.candidate)

    def observe_refused(self, why: str) -> None:
        """End the set-up, since the peer's object cannot be observed."""
        self._set_up_refused(why)

    def peer_object_deleted(self) -> None:
        """End the link, since the peer has deleted its Connection object (M-47)."""
        self._give_up("the peer deleted its object")

    # --- links ------------------------------------------------------------------------------

    def link_opened(
        self, link: str, opening: Opening, negotiation: int = FIRST, *, now: float
    ) -> None:
        """Use an opened connection, on which both runtimes have proven their certificates.

        At most one connection is used, and others are closed. The connection is also closed if its
        negotiation is outdated, or the peer is not trusted yet.

        Args:
            link: Name of the connection.
            opening: The runtime that dialled.
            negotiation: The negotiation to which the dialled candidate belongs.
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
        """Return whether a new connection replaces the live one.

        If both runtimes dialled at once, they have two connections, and both keep that of the
        requester. Later, the peer dials only if it has lost the connection: then its new connection
        replaces the old one, which this runtime still considers live.
        """
        is_requesters = (opening is Opening.DIALLED) is (self._role is Role.REQUESTER)
        is_crossing = now - self._since <= _CROSSING
        return is_requesters if is_crossing else opening is Opening.ACCEPTED

    def link_lost(self, link: str, loss: Loss, why: str = "", *, now: float) -> None:
        """Handle the loss of the connection in use: wait to restore the link, or end the link."""
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
        """Dial the next candidate, since an attempt failed; outdated attempts are ignored."""
        if self._dialling.state in _DIALLING and attempt == self._attempt:
            self._move_dialling(DialTrigger.DIAL_FAILED)
            self._dial_on()

    # --- commands of the registry; each is answered -----------------------------------------

    def connect(self, now: float) -> None:
        """Try to restore a lost link, by order of the registry (M-11)."""
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
        """End the link for good, by order of the registry or at shutdown (M-12)."""
        self._refuse(self._lost_to_peer if self._is_yielding else why)
        self._port.answer_command(Code.OK)

    def yield_to_peer(self, negotiation: int = FIRST) -> None:
        """Pause this request, since the peer's request has won a simultaneous open (P2P-27).

        A request whose Connection object is not created yet ends (t3). During the pause nothing is
        dialled, and connections that still open are closed. The deadline remains the same.

        Args:
            negotiation: The negotiation that lost; in any other, the order is refused as outdated.
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
        """Continue the paused request by dialling, since the peer's link has failed (P2P-27).

        Args:
            negotiation: The negotiation that yielded; in any other, the order is refused as
                outdated.
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
        """The reason in traces for a request that lost a simultaneous open (I-P20)."""
        return f"{int(Code.CONFLICT)}: the link requested by {self.terms.remote} wins"

    def _renew(self, negotiation: int, why: str, now: float) -> None:
        """Begin a new negotiation with the same objects (t8), and close the present connection.

        If the link was not live since the last negotiation, the deadline remains the same.
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
        """Begin to dial from the first candidate again."""
        self._plan.restart()
        self._move_dialling(DialTrigger.ROUND)

    def _dial_on(self) -> None:
        """Dial the best candidate that was not tried in this round, unless a dial is running.

        If all candidates of the peer have failed, request to be dialled instead: a requester once
        in each round, a handler after the round that the requester has asked for.
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
        """End the link if its deadline has passed."""
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
        """End the link if it is still being set up; a live link continues."""
        if self._is_setting_up:
            self._give_up(why)

    def _refuse(self, why: str, answer: str = "") -> None:
        """End the link, and refuse the requester's invitation if it was not answered yet."""
        if self._life is not None and not self._is_invited and not self.has_ended:
            self._is_invited = True
            self._port.answer_invitation(self._observed, Code.CONFLICT, answer or why)
        self._give_up(why)

    def _give_up(self, why: str) -> None:
        """End the link for good: as failed if it was never live, otherwise as disconnected."""
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
