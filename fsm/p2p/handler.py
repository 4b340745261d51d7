"""The handler stub: one controller per requester; controllers are independent (P2P-19).

A quota limits the links of a handler stub, and how often a runtime may invite it (T11). An
invitation costs a handler two data objects, listeners and dials. A runtime has one link, and may
invite as often as a runtime that loses its links has to. The runtimes of one domain share the
domain's quota; others are not affected.

A controller is the handler's end of one link (SC-16, 17, 24..27): reporter of the answer C2. When
a requester invites it, it observes the offer C1. Once it believes whose C1 is, it creates C2,
invites the requester and waits to be dialled. It dials itself only if C1 says that the requester
cannot reach it. A new offer in C1 has a new answer in C2. Each controller is an entity of
`handler_controller`, whose guards say whether the invitation is valid; the state of its link is an
entity of `p2p_connection`.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Final, assert_never, final

import attrs

from fsm.engine import Entity, Step
from fsm.limits.token_bucket import Rate, TokenBuckets
from fsm.machines import handler_controller as controller
from fsm.machines.p2p_connection import State
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.link_end import LinkSide, after_the_end
from fsm.p2p.link_io import (
    Answered,
    AnswerInvitation,
    AskRow,
    CandidatesReady,
    Command,
    ConnectAsked,
    CreateObject,
    DialFailed,
    DisconnectAsked,
    Ended,
    IceFound,
    InvitationAnswered,
    LinkInput,
    LinkLost,
    LinkOpened,
    LinkTerms,
    Listen,
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
from fsm.p2p.negotiation import Role, is_plea, negotiation_of, own_is_smaller
from fsm.p2p.peer_identity import Believed
from specs.addresses.address import domain_of
from specs.bodies.sync import ConnectionData
from specs.limits.p2p import HANDLED_LINKS, HANDLED_OF_DOMAIN, INVITATION_BURST, INVITATION_RATE
from specs.reply_code import Code

__all__ = ["HandlerQuota", "P2PControllerCore", "P2PHandlerCore", "PerLink"]


@final
class P2PControllerCore:
    """Decides for one link of a handler stub.

    Attributes:
        terms: The two ends of the link.
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
        self._answered = 0

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
            return [*self._refuse("timeout"), *self._side.give_up(self._side.late)]
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
            case RowReported(has_own_request):
                return self._decide(has_own_request)
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

    def _peer_changed(self, happened: PeerObjectInput, now: float) -> list[SideEffect]:
        match happened:
            case PeerInvited(url):
                return [AnswerInvitation(url, Code.CONFLICT, "the invitation came before")]
            case PeerObjectSeen():
                return self._offer_seen(happened, now)
            case ObserveRefused() | PeerObjectDeleted():
                return self._side.peer_object_gone(happened)
            case _:
                assert_never(happened)

    def _decide(self, has_own_request: bool) -> list[SideEffect]:  # noqa: FBT001 - passed on, not chosen
        if self._is_answered:
            return []
        facts = {
            controller.Condition.OWN_REQUEST: has_own_request,
            controller.Condition.OWN_SMALLER: own_is_smaller(self.terms.own, self.terms.remote),
        }
        given = {fact for fact, is_true in facts.items() if is_true}
        step = self._life.step(controller.Trigger.ROW_REPORTED, given=given)
        if step.new == controller.State.CLOSED:
            why = f"simultaneous open: the link requested by {self.terms.own} wins"
            return [step, *self._refuse(why), *self._side.give_up(why)]
        self._is_answered = True
        return [step, AnswerInvitation(self.offer, Code.OK), Observe(self.offer)]

    def _answer(self, data: ConnectionData, now: float) -> list[SideEffect]:
        """Answer an offer that is believed, once: a data channel answers what is offered."""
        if self._answered == self._side.negotiation:
            return []
        self._answered = self._side.negotiation
        described = data.connection_description
        self._side.offer = None if described is None else described.sdp
        if self._life.state is controller.State.OBSERVING:
            return [self._move(controller.Trigger.ANSWER, now), CreateObject()]
        return [Listen(self._side.offer)]

    def _refuse(self, why: str) -> list[SideEffect]:
        """Answer the invitation, if that was not done yet."""
        if self._is_answered:
            return []
        self._is_answered = True
        return [AnswerInvitation(self.offer, Code.CONFLICT, why)]

    def _offer_seen(self, seen: PeerObjectSeen, now: float) -> list[SideEffect]:
        """Take the offer: it is answered once it is believed.

        One of an earlier negotiation is void: it may be an old one that is shown again. So is one
        that is not of the next negotiation, as the requester begins none before the last one has
        led to a link. A live link is given up only for an offer of its peer.
        """
        data, effects = seen.data, list[SideEffect]()
        number = negotiation_of(data.status)
        if number not in {self._side.negotiation, self._side.negotiation + 1}:
            return []
        if number != self._side.negotiation:
            if self.state is State.CREATED:
                return self._side.give_up("the offer was void before it was answered")
            if self.state is State.LIVE and not self._side.is_of_peer(seen.standing):
                return []
            effects += self._side.renew(number, "the requester offers anew", now)
        effects += self._side.believe(seen.standing)
        if not isinstance(seen.standing, Believed) or self._side.ended:
            return effects
        self._side.learn(data.candidates)
        effects += [*self._answer(data, now), *self._side.hear_ice(seen.ice)]
        pleads = is_plea(data.status) and data.status != self._offer_status
        self._offer_status = data.status
        if pleads and self.state is not State.LIVE:
            effects = [*effects, *self._side.new_round()]
        return [*effects, *self._side.dial_on()]


_RATE: Final = Rate(INVITATION_RATE, INVITATION_BURST)


@final
class HandlerQuota:
    """The shares of one handler."""

    def __init__(self) -> None:
        self._buckets: Final = TokenBuckets[str](_RATE)

    def refusal(self, remote: str, linked: Collection[str], now: float) -> str | None:
        """Return the reason to refuse a runtime a link now; None: there is none.

        Args:
            remote: The requesting runtime.
            linked: The runtimes that have one, or are getting one.
            now: Seconds of any clock.
        """
        if not self._buckets.try_spend(remote, now):
            return "this runtime asks for links too often"
        others = [one for one in linked if one != remote]
        if len(others) >= HANDLED_LINKS:
            return "too many runtimes have links"
        domain = domain_of(remote)
        if sum(domain_of(one) == domain for one in others) >= HANDLED_OF_DOMAIN:
            return "too many runtimes of this domain have links"
        return None


@final
@attrs.frozen(slots=True)
class PerLink:
    """An effect of one of the handler's links.

    Attributes:
        link: Address of the link, PC; empty: of none.
    """

    link: str
    effect: SideEffect


@final
class P2PHandlerCore:
    """Decides for one handler stub."""

    def __init__(self, runtime: str, url: str, policy: DialPolicy) -> None:
        self._runtime = runtime
        self._url = url
        self._policy = policy
        self._links: dict[str, P2PControllerCore] = {}
        self._minted = 0

    def deadline(self) -> float:
        """Return when `time_passed` is due."""
        return min((each.deadline() for each in self._links.values()), default=math.inf)

    def knows(self, link: str) -> bool:
        """Return whether a link of that address is at work."""
        return link in self._links

    def terms(self, link: str) -> LinkTerms:
        """Return the two ends of a link.

        Raises:
            KeyError: There is no such link.
        """
        return self._links[link].terms

    def invited(self, offer: str, requester: str, remote: str, now: float) -> list[PerLink]:
        """Take an invitation; an older link of the same runtime is closed first.

        Args:
            offer: Address of the requester's Connection object.
            requester: Address of the requester stub.
            remote: Its runtime.
            now: Seconds on the host's clock.
        """
        effects: list[PerLink] = []
        for name in [name for name, core in self._links.items() if core.terms.remote == remote]:
            gone = self.feed(name, DisconnectAsked("the requester asks for a new link"), now)
            effects += [each for each in gone if not isinstance(each.effect, Answered)]
        self._minted += 1
        name = f"{self._url}/conn/{self._minted}"
        terms = LinkTerms(self._runtime, remote, name, requester)
        self._links[name] = P2PControllerCore(terms, offer, self._policy)
        return [*effects, *self.feed(name, Started(), now)]

    def remotes(self) -> tuple[str, ...]:
        """Return the runtimes there are links to."""
        return tuple(dict.fromkeys(core.terms.remote for core in self._links.values()))

    def disconnect(self, named: Sequence[str], why: str, now: float) -> list[PerLink]:
        """Close some links (M-12); exactly one answer is among the effects.

        Args:
            named: Addresses of links, or of runtimes: all links to those.
            why: Half a sentence for people.
            now: The time.
        """
        effects: list[PerLink] = []
        for name in [
            name for name, core in self._links.items() if {name, core.terms.remote} & set(named)
        ]:
            effects += self.feed(name, DisconnectAsked(why), now)
        kept = [each for each in effects if not isinstance(each.effect, Answered)]
        return [*kept, PerLink("", Answered(Code.OK))]

    def feed(self, link: str, happened: SideInput, now: float) -> list[PerLink]:
        """Take an input of one link; a link that is gone only cleans up.

        Args:
            link: Name of the link.
            happened: The input.
            now: Seconds on the host's clock.
        """
        core = self._links.get(link)
        effects = after_the_end(happened) if core is None else core.feed(happened, now)
        if any(isinstance(effect, Ended) for effect in effects):
            del self._links[link]
        return [PerLink(link, effect) for effect in effects]

    def time_passed(self, now: float) -> list[PerLink]:
        """Feed every link whose deadline is over."""
        return [effect for link in self._due(now) for effect in self.feed(link, TimePassed(), now)]

    def _due(self, now: float) -> Iterator[str]:
        yield from [name for name, core in self._links.items() if core.deadline() <= now]
