"""The handler's end of one P2P link (SC-16, 17, 24..27): reporter of the answer C2.

It is made when a requester invites it, observes the offer C1, creates C2, invites
the requester and waits to be dialled. It dials itself only when C1 says that the
requester could not reach it.
"""

from typing import assert_never, final

from fsm.cores.p2p_dial import DialPolicy
from fsm.cores.p2p_effect import (
    Answered,
    AnswerInvitation,
    AskRow,
    CreateObject,
    Invite,
    Listen,
    Observe,
    Offer,
    Plead,
    SideEffect,
)
from fsm.cores.p2p_glare import own_request_wins
from fsm.cores.p2p_input import (
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
    RowTold,
    SideInput,
    Started,
    TimePassed,
)
from fsm.cores.p2p_side import UNREACHABLE, LinkSide, after_the_end
from fsm.machines.p2p_connection import State
from specs.body_sync import ConnectionData
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
        self._side = LinkSide(f"{terms.own}|{terms.remote}|handler|{terms.name}", policy)
        self._is_answered = False
        self._is_created = False
        self._offer_status = ""
        self._pleas = 0
        self._may_dial = False

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
        return self._side.deadline()

    def feed(self, happened: SideInput, now: float) -> list[SideEffect]:
        """Take one input, say what is to be done."""
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
                return [Answered(Code.FORBIDDEN, "only the requester's end reconnects")]
            case DisconnectAsked(why):
                return [*self._refuse(why), *self._side.give_up(why), Answered(Code.OK)]
            case TimePassed():
                late = self._refuse("timeout") if now >= self._side.deadline() else []
                return [*late, *self._side.time_passed(now)]
            case _:
                assert_never(command)

    def _link_changed(self, happened: LinkInput, now: float) -> list[SideEffect]:
        match happened:
            case LinkOpened():
                self._may_dial = False
                return self._side.opened(happened)
            case LinkLost():
                return self._side.lost(happened, now)
            case DialFailed(attempt):
                return self._dial_on() if self._side.dial_failed(attempt) else []
            case _:
                assert_never(happened)

    def _set_up(self, happened: OwnObjectInput, now: float) -> list[SideEffect]:
        match happened:
            case Started():
                return [*self._side.begin(now), AskRow()]
            case RowTold(has_own_request):
                return self._decide(has_own_request)
            case ObjectCreated():
                return [*self._side.object_returned(), Listen(), Invite()]
            case ObjectRefused(why):
                return self._side.give_up(why)
            case InvitationAnswered(code, why):
                refused = f"refused {code}" if code > LAST_SUCCESS else ""
                return self._side.refused(refused and (why or refused))
            case CandidatesReady(candidates):
                return [Offer(candidates)] if candidates else []
            case _:
                assert_never(happened)

    def _peer_changed(self, happened: PeerObjectInput) -> list[SideEffect]:
        match happened:
            case PeerInvited(url):
                return [AnswerInvitation(url, Code.CONFLICT, "the invitation came before")]
            case PeerObjectSeen(data):
                return self._offer_seen(data)
            case ObserveRefused(why):
                return self._side.refused(why)
            case PeerObjectDeleted():
                return self._side.give_up("the peer deleted its object")
            case _:
                assert_never(happened)

    def _decide(self, has_own_request: bool) -> list[SideEffect]:  # noqa: FBT001 - told, not chosen
        if self._is_answered:
            return []
        terms = self.terms
        if has_own_request and own_request_wins(terms.own, terms.remote):
            why = f"glare: link requested by {terms.own} wins"
            return [*self._refuse(why), *self._side.give_up(why)]
        self._is_answered = True
        return [AnswerInvitation(self.offer, Code.OK), Observe(self.offer)]

    def _refuse(self, why: str) -> list[SideEffect]:
        """Answer the invitation, if that was not done yet."""
        if self._is_answered:
            return []
        self._is_answered = True
        return [AnswerInvitation(self.offer, Code.CONFLICT, why)]

    def _offer_seen(self, data: ConnectionData) -> list[SideEffect]:
        self._side.learn(data.ice_candidates)
        effects: list[SideEffect] = []
        if not self._is_created:
            self._is_created = True
            effects.append(CreateObject())
        pleads = data.status.startswith(UNREACHABLE) and data.status != self._offer_status
        self._offer_status = data.status
        if pleads and self.state is not State.LIVE:
            self._may_dial = True
            self._side.new_round()
        return [*effects, *self._dial_on()]

    def _dial_on(self) -> list[SideEffect]:
        """Dial what is left of the round the requester pleaded for; at its end say so."""
        if not self._may_dial:
            return []
        dial = self._side.dial_next()
        if dial or self._side.is_dialling or self._side.knows_no_candidate:
            return dial
        self._may_dial = False
        self._pleas += 1
        return [Plead(f"{UNREACHABLE}-{self._pleas}")]
