"""The requester's end of a P2P link (SC-16, 23..26): reporter of the offer C1.

It creates C1, invites the remote handler, observes the answer C2 and dials its
candidates. If none opens it pleads, by C1, to be dialled. A link that is lost
comes back in place, by the same objects, one attempt each time the registry asks: first
by what both ends know, then by a new offer and answer, which is the last attempt.

If both runtimes have asked at once and the peer's request wins, the registry orders this
link to yield: it goes when the other is live, and is resumed if that one fails (P2P-27).
"""

from typing import assert_never, final

from fsm.machines.p2p_connection import State
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.link_end import LinkSide, after_the_end
from fsm.p2p.link_io import (
    Answered,
    AnswerInvitation,
    CandidatesReady,
    Command,
    ConnectAsked,
    CreateObject,
    DialFailed,
    DisconnectAsked,
    IceFound,
    InvitationAnswered,
    LinkInput,
    LinkLost,
    LinkOpened,
    LinkTerms,
    ObjectCreated,
    ObjectRefused,
    Observe,
    ObserveRefused,
    OwnObjectInput,
    PeerInvited,
    PeerObjectDeleted,
    PeerObjectInput,
    PeerObjectSeen,
    ResumeAsked,
    RowReported,
    SideEffect,
    SideInput,
    Started,
    TimePassed,
    YieldAsked,
)
from fsm.p2p.negotiation import Role, is_plea, negotiation_of
from fsm.p2p.peer_identity import Believed
from specs.limits.protocol import IN_PLACE_TRIES
from specs.reply_code import Code

__all__ = ["P2PRequesterCore"]

_UNREACHED = "no candidate of either end opens"


@final
class P2PRequesterCore:
    """Decides for one requester stub: one link to one remote runtime."""

    def __init__(self, terms: LinkTerms, policy: DialPolicy) -> None:
        self._terms = terms
        self._side = LinkSide(terms, Role.REQUESTER, policy)
        self._answer: str | None = None
        self._tries = 0
        self._peer_pleas: str | None = None

    @property
    def state(self) -> State | None:
        """The state of the connection; None: not begun."""
        return self._side.state

    @property
    def has_ended(self) -> bool:
        """True if nothing more will come of it."""
        return self._side.ended

    def deadline(self) -> float:
        """Return when it must be fed `TimePassed`."""
        return self._side.deadline()

    def feed(self, happened: SideInput, now: float) -> list[SideEffect]:
        """Take an input; return the effects, in order.

        Args:
            happened: The input.
            now: Seconds on the host's clock.
        """
        if self._side.ended:
            return after_the_end(happened)
        if isinstance(happened, Command):
            return self._commanded(happened, now)
        if isinstance(happened, LinkInput):
            return self._link_changed(happened, now)
        if isinstance(happened, PeerObjectInput):
            return self._peer_changed(happened)
        return self._set_up(happened, now)

    def _commanded(self, command: Command, now: float) -> list[SideEffect]:
        match command:
            case ConnectAsked():
                return [Answered(Code.ACCEPTED, "reconnecting"), *self._connect(now)]
            case DisconnectAsked(why):
                lost = self._lost if self._side.is_yielding else why
                return [*self._side.give_up(lost), Answered(Code.OK)]
            case YieldAsked():
                return self._side.yields(command, self._lost)
            case ResumeAsked():
                return self._side.resumes(command)
            case TimePassed():
                return self._side.time_passed(now)
            case _:
                assert_never(command)

    @property
    def _lost(self) -> str:
        """The reason of the end of a request that lost a simultaneous open (I-P20)."""
        return f"{int(Code.CONFLICT)}: the link requested by {self._terms.remote} wins"

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

    def _set_up(self, happened: OwnObjectInput, now: float) -> list[SideEffect]:
        match happened:
            case Started():
                return [*self._side.begin(now), CreateObject()]
            case RowReported():
                return []
            case (
                ObjectCreated()
                | ObjectRefused()
                | InvitationAnswered()
                | CandidatesReady()
                | IceFound()
            ):
                return self._side.own_object(happened, now)
            case _:
                assert_never(happened)

    def _peer_changed(self, happened: PeerObjectInput) -> list[SideEffect]:
        match happened:
            case PeerInvited(url, source):
                return self._peer_invited(url, source)
            case PeerObjectSeen():
                return self._peer_seen(happened)
            case ObserveRefused() | PeerObjectDeleted():
                return self._side.peer_object_gone(happened)
            case _:
                assert_never(happened)

    def _peer_invited(self, url: str, source: str) -> list[SideEffect]:
        if source != self._terms.peer or not self._side.is_setting_up:
            return [AnswerInvitation(url, Code.FORBIDDEN, "this object is not expected here")]
        if self._answer is not None:
            return [AnswerInvitation(url, Code.CONFLICT, "there is an answer object already")]
        self._answer = url
        return [AnswerInvitation(url, Code.OK), Observe(url)]

    def _peer_seen(self, seen: PeerObjectSeen) -> list[SideEffect]:
        data = seen.data
        if negotiation_of(data.status) != self._side.negotiation:
            # It answers an offer that is void.
            return []
        effects = self._side.believe(seen.standing)
        if not isinstance(seen.standing, Believed) or self._side.ended:
            return effects
        described = data.connection_description
        self._side.learn(data.candidates, None if described is None else described.sdp)
        effects += self._side.hear_ice(seen.ice)
        pleads = is_plea(data.status) and data.status != self._peer_pleas
        self._peer_pleas = data.status
        if self._side.is_hopeless or (pleads and self._side.is_setting_up):
            return [*effects, *self._side.give_up(_UNREACHED)]
        return [*effects, *self._side.dial_on()]

    # --- coming back ----------------------------------------------------------------------

    def _opened(self, event: LinkOpened, now: float) -> list[SideEffect]:
        effects = self._side.opened(event, now)
        if self.state is State.LIVE:
            self._tries = 0
        return effects

    def _connect(self, now: float) -> list[SideEffect]:
        if not self._side.is_lost:
            return []
        if self._tries == IN_PLACE_TRIES or not self._side.is_repeatable:
            self._tries = 0
            return self._side.renew(self._side.negotiation + 1, "a new offer is needed", now)
        self._tries += 1
        if self._side.is_dialling:
            return []
        return [*self._side.new_round(), *self._side.dial_on()]
