"""Two runtimes' P2P cores, their registries' rows and what lies between, without any I/O."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import final

import attrs

from fsm.cores import p2p_effect as do
from fsm.cores import p2p_input as seen
from fsm.cores.p2p_dial import DialPolicy
from fsm.cores.p2p_glare import own_request_wins
from fsm.cores.p2p_handler import P2PHandlerCore, PerLink
from fsm.cores.p2p_requester import P2PRequesterCore
from fsm.engine import Step
from fsm.machines.p2p_connection import State
from specs.body_sync import Candidate, ConnectionData

POLICY = DialPolicy(("tcp",))
TERMINAL = (None, State.FAILED, State.DISCONNECTED)

End = tuple[str, str]
"""A runtime and the address of its end of a link."""


@final
@attrs.define
class Row:
    """The registry's row for the other runtime."""

    role: str
    link: str


@final
@attrs.define
class Side:
    """One runtime."""

    name: str
    handler: P2PHandlerCore
    requesters: dict[str, P2PRequesterCore] = attrs.field(factory=dict)
    row: Row | None = None
    made: int = 0


@final
class World:
    """Signals between the runtimes are queued per direction, and may be lost."""

    def __init__(self, first: str, second: str) -> None:
        self.now = 0.0
        self.sides = {
            name: Side(name, P2PHandlerCore(name, f"{name}/p2phandler/1", POLICY))
            for name in (first, second)
        }
        self.signals: dict[str, deque[Callable[[], None]]] = {first: deque(), second: deque()}
        self.dials: deque[tuple[End, do.Dial]] = deque()
        self.steps: list[Step] = []
        self.objects: dict[End, str] = {}
        self.data: dict[str, ConnectionData] = {}
        self.owner: dict[str, End] = {}
        self.observer: dict[str, End] = {}
        self.listening: dict[str, End] = {}
        self.links: dict[str, tuple[End, End]] = {}

    def other(self, name: str) -> str:
        return next(each for each in self.sides if each != name)

    def start(self, name: str) -> None:
        """The registry deploys a requester, unless its row forbids it (RES-07)."""
        side = self.sides[name]
        if side.row is not None:
            return
        side.made += 1
        url, remote = f"{name}/p2prequester/{side.made}", self.other(name)
        side.row = Row("requester", url)
        terms = seen.LinkTerms(name, remote, url, f"{remote}/p2phandler/1")
        side.requesters[url] = P2PRequesterCore(terms, POLICY)
        self.feed((name, url), seen.Started())

    def feed(self, end: End, happened: seen.SideInput) -> None:
        name, link = end
        requester = self.sides[name].requesters.get(link)
        if requester is not None:
            self._do_all(end, requester.feed(happened, self.now))
        else:
            self._do_per_link(name, self.sides[name].handler.feed(link, happened, self.now))

    def cut(self) -> None:
        """Break every link."""
        for link in list(self.links):
            for end in self.links.pop(link, ()):
                self.feed(end, seen.LinkLost(link, seen.Loss.BROKEN))

    def deliver(self, towards: str) -> None:
        if self.signals[towards]:
            self.signals[towards].popleft()()

    def lose(self, towards: str) -> None:
        if self.signals[towards]:
            self.signals[towards].popleft()

    def dial(self, *, succeeds: bool) -> None:
        if not self.dials:
            return
        end, dial = self.dials.popleft()
        listener = self.listening.get(dial.candidate.address) if succeeds else None
        if listener is None:
            self.feed(end, seen.DialFailed(dial.attempt))
            return
        link = f"L{len(self.steps)}-{dial.attempt}"
        self.links[link] = (end, listener)
        self.feed(listener, seen.LinkOpened(link, seen.Opening.ACCEPTED))
        if link in self.links:
            self.feed(end, seen.LinkOpened(link, seen.Opening.DIALLED))

    def pass_time(self, to: float) -> None:
        self.now = max(self.now, to)
        for side in self.sides.values():
            for url in list(side.requesters):
                self.feed((side.name, url), seen.TimePassed())
            self._do_per_link(side.name, side.handler.time_passed(self.now))

    def reconnect(self) -> None:
        for side in self.sides.values():
            for url, core in list(side.requesters.items()):
                if core.state is State.DISCONNECTED and not core.has_ended:
                    self.feed((side.name, url), seen.ConnectAsked())

    def close(self, name: str) -> None:
        """The registry ends the link of its row for good (M-12)."""
        side = self.sides[name]
        row, side.row = side.row, None
        if row is not None and row.role == "requester":
            self.feed((name, row.link), seen.DisconnectAsked("asked"))
        elif row is not None:
            effects = side.handler.disconnect((self.other(name),), "asked", self.now)
            self._do_per_link(name, effects)

    def settle(self) -> None:
        """Deliver everything, let every dial succeed and every deadline pass."""
        for _ in range(50):
            for name in self.sides:
                while self.signals[name]:
                    self.deliver(name)
            if self.dials:
                self.dial(succeeds=True)
                continue
            self.reconnect()
            deadlines = [deadline for deadline in self._deadlines() if deadline < float("inf")]
            if not (deadlines or self.dials or any(self.signals.values())):
                return
            if not (self.dials or any(self.signals.values())):
                self.pass_time(min(deadlines))
        raise AssertionError("does not come to rest")

    def _deadlines(self) -> Iterator[float]:
        for side in self.sides.values():
            yield side.handler.deadline()
            yield from (core.deadline() for core in side.requesters.values())

    def live_ends(self) -> list[End]:
        states: dict[str, str] = {}
        for step in self.steps:
            states[step.key] = step.new
        keys = [key.split("|") for key, state in states.items() if state == State.LIVE]
        return [(own, link) for own, _, _, link in keys]

    def live_links(self) -> list[str]:
        """Links that both their ends believe in."""
        live = set(self.live_ends())
        return [link for link, ends in self.links.items() if set(ends) <= live]

    def states(self) -> dict[str, str]:
        return {step.key: step.new for step in self.steps}

    def _do_per_link(self, name: str, effects: list[PerLink]) -> None:
        for each in effects:
            self._do_all((name, each.link), [each.effect])

    def _do_all(self, end: End, effects: list[do.SideEffect]) -> None:
        for effect in effects:
            self._do(end, effect)

    def _do(self, end: End, effect: do.SideEffect) -> None:
        match effect:
            case Step():
                self.steps.append(effect)
            case do.Announce(state):
                self._announced(end, state)
            case do.AskRow():
                self.feed(end, seen.RowTold(self._has_own_request(end[0])))
            case do.Dial():
                self.dials.append((end, effect))
            case do.ReleaseLink(link):
                self._end_link(end, link, seen.Loss.BROKEN)
            case do.CloseLink(link):
                self._end_link(end, link, seen.Loss.ORDERLY)
            case _:
                self._do_on_object(end, effect)

    def _do_on_object(self, end: End, effect: do.SideEffect) -> None:
        match effect:
            case do.CreateObject():
                self._create(end)
            case do.Invite():
                self._signal(end[0], self._invite, end)
            case do.AnswerInvitation(url, code, why):
                self._signal(end[0], self._answer, url, int(code), why)
            case do.Observe(url):
                self._signal(end[0], self._observe, url, end)
            case do.Listen():
                self._listen(end)
            case do.Offer(candidates):
                self._update(end, ice_candidates=candidates)
            case do.Plead(status):
                self._update(end, status=status)
            case _:
                self._withdraw(end, effect)

    def _create(self, end: End) -> None:
        url = f"{end[1]}/object"
        self.objects[end], self.owner[url] = url, end
        self.data[url] = ConnectionData(owner=end[1])
        self.feed(end, seen.ObjectCreated(url))

    def _listen(self, end: End) -> None:
        address = f"at-{end[1]}"
        self.listening[address] = end
        self.feed(end, seen.CandidatesReady((Candidate("tcp", address, "00"),)))

    def _end_link(self, end: End, link: str, loss: seen.Loss) -> None:
        for peer in self.links.pop(link, ()):
            if peer != end:
                self.feed(peer, seen.LinkLost(link, loss))

    def _withdraw(self, end: End, effect: do.SideEffect) -> None:
        if not isinstance(effect, do.Withdraw):
            return
        self.listening = {a: e for a, e in self.listening.items() if e != end}
        self.dials = deque(entry for entry in self.dials if entry[0] != end)
        url = self.objects.get(end, "")
        if url in self.observer:
            self._signal(end[0], self.feed, self.observer[url], seen.PeerObjectDeleted())

    def _announced(self, end: End, state: State) -> None:
        """Keep the row as the registry does."""
        side, (name, link) = self.sides[end[0]], end
        row = side.row
        if state is State.CREATED and link not in side.requesters:
            if self._has_own_request(name) and own_request_wins(name, self.other(name)):
                self._do_per_link(name, side.handler.disconnect((self.other(name),), "", self.now))
                return
            side.row = Row("handler", link)
            if row is not None and row.role == "requester":
                self.feed((name, row.link), seen.DisconnectAsked("replaced"))
        elif state is State.FAILED and row is not None and row.link == link:
            side.row = None

    def _has_own_request(self, name: str) -> bool:
        row = self.sides[name].row
        core = None if row is None else self.sides[name].requesters.get(row.link)
        return core is not None and core.state in {State.CREATED, State.IN_PROGRESS}

    def _signal(self, source: str, work: Callable[..., None], *args: object) -> None:
        self.signals[self.other(source)].append(lambda: work(*args))

    def _invite(self, end: End) -> None:
        name, link = end
        target, url = self.other(name), self.objects[end]
        if link in self.sides[name].requesters:
            core = self.sides[target].handler
            self._do_per_link(target, core.invited(url, link, name, self.now))
        else:
            requester = self.sides[name].handler.terms(link).peer if self._knows(end) else ""
            if requester:
                source = f"{name}/p2phandler/1"
                self.feed((target, requester), seen.PeerInvited(url, source))

    def _knows(self, end: End) -> bool:
        return self.sides[end[0]].handler.knows(end[1])

    def _answer(self, url: str, code: int, why: str) -> None:
        self.feed(self.owner[url], seen.InvitationAnswered(code, why))

    def _observe(self, url: str, observer: End) -> None:
        self.observer[url] = observer
        owner = self.owner[url]
        self._signal(owner[0], self.feed, observer, seen.PeerObjectSeen(self.data[url]))

    def _update(self, end: End, **changes: object) -> None:
        url = self.objects[end]
        self.data[url] = attrs.evolve(self.data[url], **changes)
        if url in self.observer:
            seen_now = seen.PeerObjectSeen(self.data[url])
            self._signal(end[0], self.feed, self.observer[url], seen_now)
