"""The P2P stubs of a runtime, as places: their cores, their objects, and their transport links.

What a stub's sync manager, dialler and listeners do is here; what travels is decided by the
channels' names. A message to a stub says to which end of which link it is fed.
"""

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from typing import Final, TypeAlias, final

import attrs
from typing_extensions import override

from fsm.engine import Step
from fsm.machines.handler_controller import State as Controller
from fsm.machines.p2p_connection import P2P_CONNECTION, State
from fsm.p2p import link_io as do
from fsm.p2p import link_io as seen
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.handler import P2PHandlerCore, PerLink
from fsm.p2p.link_end import after_the_end
from fsm.p2p.negotiation import FIRST
from fsm.p2p.peer_identity import UNSIGNED, Believed, Distrusted, Standing
from fsm.p2p.requester import P2PRequesterCore
from fsm.product.composition import Host, UnsafeError
from fsm.product.compositions.p2p_inputs import (
    Closed,
    Deployed,
    Disconnect,
    Invited,
    Knock,
    Known,
    Leave,
    Listening,
    Observed,
    Opened,
    ToRegistry,
    ToStub,
    address,
    handler_of,
    runtime_of,
)
from specs.bodies.sync import Candidate, ConnectionData
from specs.identity import SenderIdentity
from specs.limits.protocol import PING_PERIOD
from specs.reply_code import Code

__all__ = ["HandlerPlace", "RequesterPlace", "Stubs"]

_POLICY: Final = DialPolicy(("tcp",))
_OBJECT: Final = "/object"
_ON_WAY: Final = frozenset({State.CREATED, State.IN_PROGRESS, State.YIELDING})
_AT_WORK: Final = _ON_WAY | {State.LIVE}


@final
@attrs.define(slots=True)
class Object:
    """A Connection object, and its observers.

    Attributes:
        standing: What its peer finds when it verifies the signature.
    """

    data: ConnectionData
    observer: str = ""
    standing: Standing = UNSIGNED


_FORGED: Final = Distrusted("its signature does not fit")


def _believed(end: str) -> Believed:
    """Return what the peer of an end finds once the end has signed."""
    return Believed(SenderIdentity(address(runtime_of(end))), f"certificate of {runtime_of(end)}")


@final
@attrs.define(slots=True)
class Dialled:
    """A dial that is under way."""

    end: str
    attempt: int
    negotiation: int


_Work: TypeAlias = tuple[str, str, int]


class Stubs(Host):
    """The requesters, or the handler, of a runtime.

    Attributes:
        states: Of the ends that are at work.
        controllers: Of the ends of a handler.
        was_live: The ends that have been live.
        remotes: The runtime at the other side of each end.
        used: The transport link that an end uses.
        links: Those that are there, with the runtime at their other end; deaf ones are not.
        dials: By the name of the link that comes of it.
        is_gone: Whether the runtime goes, and nothing begins any more.
        is_undone: Whether an end that was live is not any more.
        pinned: Ends that know whose their peer is.
        is_forged: Whether a node alters the next object that is shown to the other side.
        waits: What the runtime is still to do for its stubs: objects to return, listeners to open.
    """

    number: int
    role: str

    def __init__(self, runtime: str) -> None:
        super().__init__()
        self.runtime = runtime
        self.states: dict[str, State] = {}
        self.controllers: dict[str, str] = {}
        self.was_live: set[str] = set()
        self.used: dict[str, str] = {}
        self.links: dict[str, str] = {}
        self.dials: dict[str, Dialled] = {}
        self.waits: deque[_Work] = deque()
        self.objects: dict[str, Object] = {}
        self._listening: dict[str, tuple[str, int]] = {}
        self._negotiations: dict[str, int] = {}
        self.is_gone = False
        self.is_undone = False
        self.pinned: set[str] = set()
        self.is_forged = False
        self._deaf: dict[str, float] = {}
        self.remotes: dict[str, str] = {}
        self._dialled = 0
        self._listened = 0

    @abstractmethod
    def feed(self, end: str, happened: seen.SideInput) -> None:
        """Feed the core of one end.

        Args:
            end: Name of the end.
            happened: The input.
        """

    def peer(self, end: str) -> str:
        """The runtime at the other side of a link."""
        return self.remotes[end]

    @abstractmethod
    def invite(self, end: str, url: str) -> None:
        """Invite the other side to an object.

        Args:
            end: Name of the end.
            url: Address of the object.
        """

    @abstractmethod
    def core_deadline(self) -> float:
        """Return the time at which the cores must be fed `TimePassed`."""

    @abstractmethod
    def core_time_over(self) -> None:
        """Feed `TimePassed` to the cores that are due."""

    @override
    def deadline(self) -> float:
        return min(self.core_deadline(), *self._deaf.values(), math.inf)

    @override
    def time_over(self) -> None:
        for link in [link for link, until in self._deaf.items() if until <= self.now]:
            del self._deaf[link]
            self._lose(link, seen.Loss.BROKEN)
        if self.core_deadline() <= self.now:
            self.core_time_over()

    def signal(self, runtime: str, message: Hashable) -> None:
        """Send a message by the nodes.

        Args:
            runtime: The receiver.
            message: The message.
        """
        self.send(f"{self._route(runtime)} by nodes", message)

    def _by_link(self, runtime: str, message: Hashable) -> None:
        self.send(f"{self._route(runtime)} by link", message)

    def _route(self, runtime: str) -> str:
        other = "handler" if self.role == "requester" else "requester"
        return f"{self.runtime} {self.role} to {runtime} {other}"

    def _up(self, end: str, report: do.SideEffect | Known) -> None:
        self.send(
            f"{self.runtime} {self.role} to registry",
            ToRegistry(end, address(self.peer(end)), report),
        )

    # --- what happens ---------------------------------------------------------------------

    @override
    def take(self, happened: Hashable) -> None:
        match happened:
            case ToStub(end, report):
                self.feed(end, report)
            case Observed(url, end):
                self._observed(url, end)
            case Knock() | Opened() | Closed():
                self._linked(happened)
            case str(event):
                self._surprised(event)
            case Leave():
                self.is_gone = True
                for end in list(self.states):
                    self.feed(end, seen.DisconnectAsked("the runtime goes"))
            case _:
                if not self.is_gone:
                    self.take_own(happened)

    def _surprised(self, event: str) -> None:
        match event:
            case "work":
                self._work(*self.waits.popleft())
            case "refuse":
                _, end, _ = self.waits.popleft()
                self.feed(end, seen.ObjectRefused("403"))
            case "fail":
                self._dial_fails(next(iter(self.dials)))
            case "forge":
                self.is_forged = True
            case "cut" | "cut unseen":
                self._cut(is_seen=event == "cut")
            case _:
                raise TypeError(event)

    @abstractmethod
    def take_own(self, happened: Hashable) -> None:
        """Take an input that only requesters, or only a handler, have."""

    def _work(self, what: str, end: str, negotiation: int) -> None:
        if end not in self.states:
            return
        if what == "object":
            self.objects[end] = Object(ConnectionData(owner=end))
            self.feed(end, seen.ObjectCreated(f"{end}{_OBJECT}"))
        elif negotiation == self._negotiations.get(end, FIRST):
            self._listened += 1
            at = f"11.0.0.{self.number}:{self._listened}"
            self._listening[at] = end, negotiation
            self.feed(end, seen.CandidatesReady((Candidate("tcp", at, "00"),), negotiation))

    def _observed(self, url: str, end: str) -> None:
        own = url.removesuffix(_OBJECT)
        runtime = runtime_of(end)
        if own not in self.objects:
            self.signal(runtime, ToStub(end, seen.ObserveRefused("404")))
            return
        self.objects[own].observer = end
        self.signal(runtime, ToStub(end, self._shown(self.objects[own])))

    # --- transport links ------------------------------------------------------------------

    def _linked(self, happened: Knock | Opened | Closed) -> None:
        match happened:
            case Knock(link, at) if at in self._listening:
                end, negotiation = self._listening[at]
                self._open(link, end, seen.Opening.ACCEPTED, negotiation)
            case Knock(link):
                self._by_link(runtime_of(link), Closed(link))
            case Opened(link, end):
                dial = self.dials.pop(link, None)
                if dial is None:
                    self._by_link(runtime_of(end), Closed(link))
                else:
                    self._open(link, dial.end, seen.Opening.DIALLED, dial.negotiation)
            case Closed(link) if link in self.dials:
                self._dial_fails(link)
            case Closed(link, loss):
                self._lose(link, loss)

    def _open(self, link: str, end: str, opening: seen.Opening, negotiation: int) -> None:
        runtime = self.peer(end)
        self.links[link] = runtime
        if opening is seen.Opening.ACCEPTED:
            self._by_link(runtime, Opened(link, end))
        self.feed(end, seen.LinkOpened(link, opening, negotiation))

    def _dial_fails(self, link: str) -> None:
        dial = self.dials.pop(link)
        self.feed(dial.end, seen.DialFailed(dial.attempt))

    def _lose(self, link: str, loss: seen.Loss) -> None:
        self.links.pop(link, None)
        for end in [end for end, used in self.used.items() if used == link]:
            self.feed(end, seen.LinkLost(link, loss))

    def _cut(self, *, is_seen: bool) -> None:
        link = next(iter(self.links))
        self._by_link(self.links.pop(link), Closed(link))
        if is_seen:
            self._lose(link, seen.Loss.BROKEN)
        else:
            self._deaf[link] = self.now + PING_PERIOD + P2P_CONNECTION.patience(State.LIVE)

    def _close(self, end: str, link: str, loss: seen.Loss) -> None:
        if self.used.get(end) == link:
            del self.used[end]
        self._deaf.pop(link, None)
        runtime = self.links.pop(link, None)
        if runtime is not None:
            self._by_link(runtime, Closed(link, loss))

    # --- what the cores decide ------------------------------------------------------------

    def do_all(self, end: str, effects: Iterable[do.SideEffect]) -> None:
        """Execute the effects of the core of an end.

        Args:
            end: Name of the end.
            effects: The effects, in order.
        """
        for effect in effects:
            self._do(end, effect)

    def _do(self, end: str, effect: do.SideEffect) -> None:
        match effect:
            case Step():
                self._note(end, effect)
            case do.Announce() | do.AskRow():
                self._up(end, effect)
            case do.Answered(code):
                if code == Code.GONE:
                    self._up(end, effect)
            case do.Ended():
                self._up(end, effect)
                self._ended(end)
            case do.UseLink() | do.ReleaseLink() | do.CloseLink() | do.Dial():
                self._on_link(end, effect)
            case _:
                self._on_object(end, effect)

    def _on_link(
        self, end: str, effect: do.UseLink | do.ReleaseLink | do.CloseLink | do.Dial
    ) -> None:
        match effect:
            case do.UseLink(link):
                if end not in self.pinned:
                    raise UnsafeError("a link is used whose peer is not believed")
                self.used[end] = link
            case do.ReleaseLink(link):
                self._close(end, link, seen.Loss.BROKEN)
            case do.CloseLink(link):
                # An end that never used it sends no goodbye, either.
                is_used = self.used.get(end) == link
                self._close(end, link, seen.Loss.ORDERLY if is_used else seen.Loss.BROKEN)
            case do.Dial(candidate, attempt):
                self._dialled += 1
                link = f"{end}#{self._dialled}"
                negotiation = self._negotiations.get(end, FIRST)
                self.dials[link] = Dialled(end, attempt, negotiation)
                at = candidate.address if isinstance(candidate, Candidate) else candidate.sdp
                self._by_link(self.peer(end), Knock(link, at))

    def _on_object(self, end: str, effect: do.SideEffect) -> None:
        match effect:
            case do.CreateObject():
                self.waits.append(("object", end, FIRST))
            case do.Listen():
                self.waits.append(("listen", end, self._negotiations.get(end, FIRST)))
            case do.Invite():
                self.invite(end, f"{end}{_OBJECT}")
            case do.AnswerInvitation(url, code, why):
                owner = url.removesuffix(_OBJECT)
                answer = seen.InvitationAnswered(int(code), why)
                self.signal(runtime_of(owner), ToStub(owner, answer))
            case do.Observe(url):
                self.signal(runtime_of(url), Observed(url, end))
            case _:
                self._on_value(end, effect)

    def _on_value(self, end: str, effect: do.SideEffect) -> None:
        match effect:
            case do.Offer(candidates):
                self._change(end, candidates=candidates, standing=_believed(end))
            case do.Plead(status):
                self._change(end, status=status)
            case do.Renew(negotiation, status):
                self._negotiations[end] = negotiation
                self._stop(end)
                self._change(end, candidates=(), status=status, standing=UNSIGNED)
            case do.Pin():
                self.pinned.add(end)
            case do.Withdraw():
                self._withdraw(end)
            case _:
                raise TypeError(effect)

    def _change(
        self,
        end: str,
        candidates: tuple[Candidate, ...] | None = None,
        status: str | None = None,
        standing: Standing | None = None,
    ) -> None:
        own = self.objects[end]
        if candidates is not None:
            own.data = attrs.evolve(own.data, candidates=candidates)
        if status is not None:
            own.data = attrs.evolve(own.data, status=status)
        own.standing = standing or own.standing
        if own.observer:
            self._report(own, self._shown(own))

    def _shown(self, own: Object) -> seen.PeerObjectSeen:
        """Return what the other side sees of an object, as its node passes it on."""
        forged, self.is_forged = self.is_forged, False
        return seen.PeerObjectSeen(own.data, _FORGED if forged else own.standing)

    def _report(self, own: Object, report: seen.SideInput) -> None:
        if own.observer:
            self.signal(runtime_of(own.observer), ToStub(own.observer, report))

    def _stop(self, end: str) -> None:
        """Listen no more; what is being dialled may open all the same."""
        self._listening = {at: one for at, one in self._listening.items() if one[0] != end}

    def _withdraw(self, end: str) -> None:
        self._stop(end)
        self.dials = {link: dial for link, dial in self.dials.items() if dial.end != end}
        own = self.objects.pop(end, None)
        if own is not None:
            self._report(own, seen.PeerObjectDeleted())

    def _note(self, end: str, step: Step) -> None:
        self.moved([step])
        if step.machine == "handler_controller":
            if end in self.states:
                self.controllers[end] = step.new
            if step.new == Controller.OPEN and end not in self.was_live:
                raise UnsafeError("a controller is open whose link never was (I-P5)")
        elif step.machine == "p2p_connection":
            self.states[end] = State(step.new)
            if step.new == State.LIVE:
                self.was_live.add(end)
            self.is_undone = self.is_undone or step.new == State.DISCONNECTED

    def _ended(self, end: str) -> None:
        state = self.states.pop(end, None)
        if state in _AT_WORK:
            raise UnsafeError("an end that is over is still at work (I-P3, I-P4)")
        if end in self.used:
            raise UnsafeError("an end that is over has a link (I-P3, I-P4)")
        self.controllers.pop(end, None)
        self.pinned.discard(end)
        self._negotiations.pop(end, None)

    @property
    def waits_without_end(self) -> bool:
        """True if an end is connecting, and has no deadline."""
        is_on_way = any(state in _ON_WAY for state in self.states.values())
        return is_on_way and self.core_deadline() == math.inf

    def live(self) -> Iterator[tuple[str, str]]:
        """The ends that are live, and their transport links."""
        for end, link in self.used.items():
            if self.states.get(end) is State.LIVE:
                yield end, link


@final
class RequesterPlace(Stubs):
    """The requesters of a runtime, each for one attempt."""

    role = "requester"

    def __init__(self, runtime: str) -> None:
        super().__init__(runtime)
        self.number = 1 + 2 * "abc".index(runtime)
        self._cores: dict[str, P2PRequesterCore] = {}

    @override
    def take_own(self, happened: Hashable) -> None:
        match happened:
            case Deployed(end, plan):
                own = address(self.runtime)
                terms = seen.LinkTerms(own, plan.remote, end, plan.handler)
                self.remotes[end] = runtime_of(plan.remote)
                self._cores[end] = P2PRequesterCore(terms, _POLICY)
                self.feed(end, seen.Started())
            case _:
                raise TypeError(happened)

    @override
    def feed(self, end: str, happened: seen.SideInput) -> None:
        core = self._cores.get(end)
        self.do_all(end, after_the_end(happened) if core is None else core.feed(happened, self.now))
        if core is not None and core.has_ended:
            self._cores.pop(end, None)

    @override
    def invite(self, end: str, url: str) -> None:
        self.signal(self.peer(end), Invited(url, end))

    @override
    def core_deadline(self) -> float:
        return min((core.deadline() for core in self._cores.values()), default=math.inf)

    @override
    def core_time_over(self) -> None:
        for end in [end for end, core in self._cores.items() if core.deadline() <= self.now]:
            self.feed(end, seen.TimePassed())


@final
class HandlerPlace(Stubs):
    """The handler of a runtime."""

    role = "handler"

    def __init__(self, runtime: str) -> None:
        super().__init__(runtime)
        self.number = 2 + 2 * "abc".index(runtime)
        self._requesters: dict[str, str] = {}
        self._core = P2PHandlerCore(address(runtime), handler_of(runtime), _POLICY)

    @override
    def take_own(self, happened: Hashable) -> None:
        match happened:
            case Invited(url, requester):
                self._invited(url, requester)
            case Listening(end):
                self._up(end, Known(is_known=end in self.states))
            case Disconnect(named):
                self._do_per_link(self._core.disconnect((named,), "asked", self.now))
            case _:
                raise TypeError(happened)

    def _invited(self, url: str, requester: str) -> None:
        remote = runtime_of(requester)
        effects = self._core.invited(url, requester, address(remote), self.now)
        for each in effects:
            if each.link not in self.remotes:
                self.remotes[each.link], self._requesters[each.link] = remote, requester
        self._do_per_link(effects)

    @override
    def feed(self, end: str, happened: seen.SideInput) -> None:
        self._do_per_link(self._core.feed(end, happened, self.now))

    def _do_per_link(self, effects: Iterable[PerLink]) -> None:
        for each in effects:
            self.do_all(each.link, [each.effect])

    @override
    def invite(self, end: str, url: str) -> None:
        requester = self._requesters[end]
        source = handler_of(self.runtime)
        self.signal(runtime_of(requester), ToStub(requester, seen.PeerInvited(url, source)))

    @override
    def core_deadline(self) -> float:
        return self._core.deadline()

    @override
    def core_time_over(self) -> None:
        self._do_per_link(self._core.time_passed(self.now))
