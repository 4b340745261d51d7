"""The P2P stubs of a runtime, as places: their cores, their objects, and their transport links.

What a stub's sync manager, dialler and listeners do is here; what travels is decided by the
channels' names. A message to a stub says to which end of which link it is given.
"""

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Hashable, Iterator
from typing import Final, TypeAlias, final

import attrs
from typing_extensions import override

from fsm.engine import Step
from fsm.machines.handler_controller import State as Controller
from fsm.machines.p2p_connection import P2P_CONNECTION, State
from fsm.p2p.dialling import ChannelAnswer, DialPolicy
from fsm.p2p.link_end import FIRST, LinkEnd, LinkPort, LinkTerms, Loss, Opening, Role
from fsm.p2p.peer_identity import UNSIGNED, Believed, Distrusted, Standing
from fsm.product.composition import Host, UnsafeError
from fsm.product.compositions.p2p_inputs import (
    Closed,
    Deployed,
    Disconnect,
    Invited,
    Knock,
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
from specs.bodies.object import Candidate, ConnectionData
from specs.identity import SenderIdentity
from specs.limits.protocol import PING_PERIOD
from specs.reply_code import Code

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
        ends: Those that are at work.
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
    role: Role

    def __init__(self, runtime: str) -> None:
        super().__init__()
        self.runtime = runtime
        self.ends: dict[str, LinkEnd] = {}
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

    def begin(self, end: str, peer: str, offer: str = "") -> None:
        """Begin an end.

        Args:
            end: Name of the end.
            peer: The stub at the other side.
            offer: The object that a handler answers.
        """
        runtime = runtime_of(peer)
        self.remotes[end] = runtime
        terms = LinkTerms(address(self.runtime), address(runtime), end, peer)
        self.ends[end] = LinkEnd(terms, self.role, _POLICY, _Port(self, end), offer)
        self.give(ToStub(end, "start"))

    def give(self, message: ToStub) -> None:
        """Give a message to the core of an end; an end that is over only cleans up."""
        end = message.end
        core = self.ends.get(end)
        if core is None:
            self._clean_up(message)
            return
        message.give(core, self.now)
        if core.has_ended:
            del self.ends[end]

    def _clean_up(self, message: ToStub) -> None:
        port = _Port(self, message.end)
        match message.call, message.args:
            case "connect" | "resume", _:
                port.answer_command(Code.GONE)
            case "peer_invited", (str(url), _):
                port.answer_invitation(url, Code.GONE, "the link has ended")
            case "link_opened", (str(link), *_):
                port.close_link(link)
            case _:
                pass

    @abstractmethod
    def invite(self, end: str, url: str) -> None:
        """Invite the other side to an object.

        Args:
            end: Name of the end.
            url: Address of the object.
        """

    def core_deadline(self) -> float:
        """Return the time at which a core has a deadline."""
        return min((core.deadline() for core in self.ends.values()), default=math.inf)

    @override
    def deadline(self) -> float:
        return min(self.core_deadline(), *self._deaf.values(), math.inf)

    @override
    def time_over(self) -> None:
        for link in [link for link, until in self._deaf.items() if until <= self.now]:
            del self._deaf[link]
            self._lose(link, Loss.BROKEN)
        for end in [end for end, core in self.ends.items() if core.deadline() <= self.now]:
            self.give(ToStub(end, "time_over"))

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
        other = "handler" if self.role is Role.REQUESTER else "requester"
        return f"{self.runtime} {self.role.value} to {runtime} {other}"

    def up(self, end: str, report: State | str, why: str = "") -> None:
        """Report to the registry (`ToRegistry`).

        Args:
            end: Name of the end.
            report: The report.
            why: The reason.
        """
        channel = f"{self.runtime} {self.role.value} to registry"
        self.send(channel, ToRegistry(end, address(self.remotes[end]), report, why))

    # --- what happens ---------------------------------------------------------------------

    @override
    def take(self, happened: Hashable) -> None:
        match happened:
            case ToStub():
                self.give(happened)
            case Observed(url, end):
                self._observed(url, end)
            case Knock() | Opened() | Closed():
                self._linked(happened)
            case str(event):
                self._surprised(event)
            case Leave():
                self.is_gone = True
                for end in list(self.states):
                    self.give(ToStub(end, "disconnect", ("the runtime goes",)))
            case _:
                if not self.is_gone:
                    self.take_own(happened)

    def _surprised(self, event: str) -> None:
        match event:
            case "work":
                self._work(*self.waits.popleft())
            case "refuse":
                _, end, _ = self.waits.popleft()
                self.give(ToStub(end, "object_refused", ("403",)))
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
            self.give(ToStub(end, "object_created"))
        elif negotiation == self._negotiations.get(end, FIRST):
            self._listened += 1
            at = f"11.0.0.{self.number}:{self._listened}"
            self._listening[at] = end, negotiation
            candidates = (Candidate("tcp", at, "00"),)
            self.give(ToStub(end, "candidates_ready", (candidates, negotiation)))

    def _observed(self, url: str, end: str) -> None:
        own = url.removesuffix(_OBJECT)
        runtime = runtime_of(end)
        if own not in self.objects:
            self.signal(runtime, ToStub(end, "observe_refused", ("404",)))
            return
        self.objects[own].observer = end
        self._show(self.objects[own])

    # --- transport links ------------------------------------------------------------------

    def _linked(self, happened: Knock | Opened | Closed) -> None:
        match happened:
            case Knock(link, at) if at in self._listening:
                end, negotiation = self._listening[at]
                self._open(link, end, Opening.ACCEPTED, negotiation)
            case Knock(link):
                self._by_link(runtime_of(link), Closed(link))
            case Opened(link, end):
                dial = self.dials.pop(link, None)
                if dial is None:
                    self._by_link(runtime_of(end), Closed(link))
                else:
                    self._open(link, dial.end, Opening.DIALLED, dial.negotiation)
            case Closed(link) if link in self.dials:
                self._dial_fails(link)
            case Closed(link, loss):
                self._lose(link, loss)

    def _open(self, link: str, end: str, opening: Opening, negotiation: int) -> None:
        runtime = self.remotes[end]
        self.links[link] = runtime
        if opening is Opening.ACCEPTED:
            self._by_link(runtime, Opened(link, end))
        self.give(ToStub(end, "link_opened", (link, opening, negotiation)))

    def _dial_fails(self, link: str) -> None:
        dial = self.dials.pop(link)
        self.give(ToStub(dial.end, "dial_failed", (dial.attempt,)))

    def _lose(self, link: str, loss: Loss) -> None:
        self.links.pop(link, None)
        for end in [end for end, used in self.used.items() if used == link]:
            self.give(ToStub(end, "link_lost", (link, loss)))

    def _cut(self, *, is_seen: bool) -> None:
        link = next(iter(self.links))
        self._by_link(self.links.pop(link), Closed(link))
        if is_seen:
            self._lose(link, Loss.BROKEN)
        else:
            self._deaf[link] = self.now + PING_PERIOD + P2P_CONNECTION.patience(State.LIVE)

    def close(self, end: str, link: str, loss: Loss) -> None:
        """End the use of a link.

        Args:
            end: Name of the end.
            link: Name of the link.
            loss: What its other end notices.
        """
        if self.used.get(end) == link:
            del self.used[end]
        self._deaf.pop(link, None)
        runtime = self.links.pop(link, None)
        if runtime is not None:
            self._by_link(runtime, Closed(link, loss))

    # --- what the cores decide ------------------------------------------------------------

    def dial(self, end: str, at: str, attempt: int) -> None:
        """Dial a candidate.

        Args:
            end: Name of the end.
            at: Where the other end listens.
            attempt: Number of the attempt.
        """
        self._dialled += 1
        link = f"{end}#{self._dialled}"
        self.dials[link] = Dialled(end, attempt, self.negotiation(end))
        self._by_link(self.remotes[end], Knock(link, at))

    def negotiation(self, end: str) -> int:
        """Return the number of the negotiation of an end."""
        return self._negotiations.get(end, FIRST)

    def renew(self, end: str, negotiation: int) -> None:
        """Begin a new negotiation.

        Args:
            end: Name of the end.
            negotiation: Its number.
        """
        self._negotiations[end] = negotiation
        self._stop(end)

    def change(
        self,
        end: str,
        candidates: tuple[Candidate, ...] | None = None,
        status: str | None = None,
        standing: Standing | None = None,
    ) -> None:
        """Change the object of an end, and show it to the other side; None: as it was."""
        own = self.objects[end]
        if candidates is not None:
            own.data = attrs.evolve(own.data, candidates=candidates)
        if status is not None:
            own.data = attrs.evolve(own.data, status=status)
        own.standing = standing or own.standing
        if own.observer:
            self._show(own)

    def _show(self, own: Object) -> None:
        """Show an object to the other side, as its node passes it on."""
        forged, self.is_forged = self.is_forged, False
        self._report(own, "peer_object_seen", own.data, _FORGED if forged else own.standing)

    def _report(self, own: Object, call: str, *args: Hashable) -> None:
        if own.observer:
            self.signal(runtime_of(own.observer), ToStub(own.observer, call, args))

    def _stop(self, end: str) -> None:
        """Listen no more; what is being dialled may open all the same."""
        self._listening = {at: one for at, one in self._listening.items() if one[0] != end}

    def withdraw(self, end: str) -> None:
        """Delete the object of an end; stop listening and dialling."""
        self._stop(end)
        self.dials = {link: dial for link, dial in self.dials.items() if dial.end != end}
        own = self.objects.pop(end, None)
        if own is not None:
            self._report(own, "peer_object_deleted")

    def note(self, end: str, step: Step) -> None:
        """Note a step of a machine of an end."""
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

    def ended(self, end: str) -> None:
        """Forget an end."""
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
class _Port(LinkPort):
    """The port of one end."""

    def __init__(self, stubs: Stubs, end: str) -> None:
        self._stubs = stubs
        self._end = end

    @override
    def step(self, step: Step) -> None:
        self._stubs.note(self._end, step)

    @override
    def announce(self, state: State, why: str = "") -> None:
        self._stubs.up(self._end, state, why)

    @override
    def answer_command(self, code: Code, why: str = "") -> None:
        if code == Code.GONE:
            self._stubs.up(self._end, "gone")

    @override
    def ask_row(self) -> None:
        self._stubs.up(self._end, "asking for the row")

    @override
    def create_object(self) -> None:
        self._stubs.waits.append(("object", self._end, FIRST))

    @override
    def invite(self) -> None:
        self._stubs.invite(self._end, f"{self._end}{_OBJECT}")

    @override
    def answer_invitation(self, url: str, code: Code, why: str = "") -> None:
        answer = ToStub(url.removesuffix(_OBJECT), "invitation_answered", (int(code), why))
        self._stubs.signal(runtime_of(answer.end), answer)

    @override
    def observe(self, url: str) -> None:
        self._stubs.signal(runtime_of(url), Observed(url, self._end))

    @override
    def pin(self, peer: Believed) -> None:
        self._stubs.pinned.add(self._end)

    @override
    def listen(self, offer: str | None = None) -> None:
        self._stubs.waits.append(("listen", self._end, self._stubs.negotiation(self._end)))

    @override
    def offer(self, candidates: tuple[Candidate, ...], sdp: str | None = None) -> None:
        self._stubs.change(self._end, candidates, standing=_believed(self._end))

    @override
    def trickle(self, candidate: str, host: str | None = None) -> None:
        raise TypeError(candidate)

    @override
    def hear_ice(self, candidate: str) -> None:
        raise TypeError(candidate)

    @override
    def dial(self, candidate: Candidate | ChannelAnswer, attempt: int) -> None:
        at = candidate.address if isinstance(candidate, Candidate) else candidate.sdp
        self._stubs.dial(self._end, at, attempt)

    @override
    def request_dial(self, status: str) -> None:
        self._stubs.change(self._end, status=status)

    @override
    def renew(self, negotiation: int, status: str) -> None:
        self._stubs.renew(self._end, negotiation)
        self._stubs.change(self._end, (), status, UNSIGNED)

    @override
    def use_link(self, link: str) -> None:
        if self._end not in self._stubs.pinned:
            raise UnsafeError("a link is used whose peer is not believed")
        self._stubs.used[self._end] = link

    @override
    def release_link(self, link: str) -> None:
        self._stubs.close(self._end, link, Loss.BROKEN)

    @override
    def close_link(self, link: str) -> None:
        # An end that never used it sends no goodbye, either.
        is_used = self._stubs.used.get(self._end) == link
        self._stubs.close(self._end, link, Loss.ORDERLY if is_used else Loss.BROKEN)

    @override
    def withdraw(self) -> None:
        self._stubs.withdraw(self._end)

    @override
    def end(self) -> None:
        self._stubs.up(self._end, "over")
        self._stubs.ended(self._end)


@final
class RequesterPlace(Stubs):
    """The requesters of a runtime, each for one attempt."""

    role = Role.REQUESTER

    def __init__(self, runtime: str) -> None:
        super().__init__(runtime)
        self.number = 1 + 2 * "abc".index(runtime)

    @override
    def take_own(self, happened: Hashable) -> None:
        match happened:
            case Deployed(end, plan):
                self.begin(end, plan.handler)
            case _:
                raise TypeError(happened)

    @override
    def invite(self, end: str, url: str) -> None:
        self.signal(self.remotes[end], Invited(url, end))


@final
class HandlerPlace(Stubs):
    """The handler of a runtime."""

    role = Role.HANDLER

    def __init__(self, runtime: str) -> None:
        super().__init__(runtime)
        self.number = 2 + 2 * "abc".index(runtime)
        self._requesters: dict[str, str] = {}
        self._minted = 0

    @override
    def take_own(self, happened: Hashable) -> None:
        match happened:
            case Invited(url, requester):
                self._invited(url, requester)
            case Listening(end):
                self.up(end, "known" if end in self.states else "unknown")
            case Disconnect(named):
                self._disconnect(named, "asked")
            case _:
                raise TypeError(happened)

    def _invited(self, url: str, requester: str) -> None:
        """Begin an end; an older one of the same runtime is closed first."""
        self._disconnect(address(runtime_of(requester)), "the requester asks for a new link")
        self._minted += 1
        end = f"{handler_of(self.runtime)}/conn/{self._minted}"
        self._requesters[end] = requester
        self.begin(end, requester, url)

    def _disconnect(self, named: str, why: str) -> None:
        for end in [one for one in self.ends if named in {one, address(self.remotes[one])}]:
            self.give(ToStub(end, "disconnect", (why,)))

    @override
    def invite(self, end: str, url: str) -> None:
        args = url, handler_of(self.runtime)
        self.signal(self.remotes[end], ToStub(self._requesters[end], "peer_invited", args))
