"""Two runtimes' P2P cores, their registries' tables and what lies between, without any I/O."""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import final

import attrs
from typing_extensions import override

from fsm.engine import Step
from fsm.machines.p2p_connection import State
from fsm.p2p import link_io as do
from fsm.p2p import link_io as seen
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.handler import P2PHandlerCore, PerLink
from fsm.p2p.negotiation import FIRST, Role
from fsm.p2p.requester import P2PRequesterCore
from fsm.registry.resolve.address_owners import RecordCache
from fsm.registry.resolve.jobs import ResolveJobs
from fsm.registry.resolve.link_table import LinkTable
from fsm.registry.resolve.port import RequesterPlan, RoutesPort, StubPlan
from specs.bodies.sync import Candidate
from specs.limits.protocol import PING_PERIOD, PONG_TIMEOUT
from specs.reply_code import Code
from tests.support.p2p_objects import End, Objects

POLICY = DialPolicy(("tcp",))


@final
@attrs.define
class Side:
    """One runtime.

    Attributes:
        table: Its registry's.
        rows: The handler's links that wait for the registry's row.
    """

    name: str
    handler: P2PHandlerCore
    table: LinkTable
    requesters: dict[str, P2PRequesterCore] = attrs.field(factory=dict)
    rows: list[End] = attrs.field(factory=list)

    @property
    def url(self) -> str:
        return f"{self.name}/p2phandler/1"

    def row_answers(self, remote: str) -> list[tuple[End, seen.RowReported]]:
        """What the registry's row says to the handler's links that ask for it (P2P-18)."""
        row = self.table.row(remote, self.url)
        if row is not None and row.is_held(self.url):
            return []
        waiting, self.rows = self.rows, []
        reported = seen.RowReported(row is not None and row.role is Role.REQUESTER)
        return [(end, reported) for end in waiting]


@final
class TablePort(RoutesPort):
    """The port of the table of one runtime: what it wants is done later, in order."""

    def __init__(self, world: "World", name: str) -> None:
        self._world, self._name = world, name

    def _feed(self, stub: str, order: seen.SideInput) -> None:
        self._world.report(lambda: self._world.feed((self._name, stub), order))

    @override
    def step(self, step: Step) -> None:
        self._world.keep(step)

    @override
    def set_path(self, url: str) -> None:
        self._world.report(lambda: self._world.set_path(self._name, url))

    @override
    def deploy(self, url: str, plan: StubPlan) -> None:
        if isinstance(plan, RequesterPlan):
            add = partial(self._world.add_requester, self._name, url, plan.remote, plan.handler)
            self._world.report(add)

    @override
    def undeploy(self, url: str) -> None:
        self._world.report(lambda: self._world.disconnect(self._name, url, url))

    @override
    def register_link(self, link: str, handler: str) -> None:
        self._world.report(lambda: self._world.register_link(self._name, link))

    @override
    def connect(self, stub: str, handler: str) -> None:
        self._feed(stub, seen.ConnectAsked())

    @override
    def suspend(self, stub: str, remote: str) -> None:
        self._feed(stub, seen.YieldAsked())

    @override
    def resume(self, stub: str, remote: str) -> None:
        self._feed(stub, seen.ResumeAsked())

    @override
    def disconnect(self, stub: str, remote: str, link: str) -> None:
        self._world.report(lambda: self._world.disconnect(self._name, stub, link))


@final
class World:
    """Signals between the runtimes are queued per direction, and may be lost.

    What a registry tells a stub of its own, or a stub it, is not lost, but comes later.
    A dial that is under way when its end offers anew may open all the same.

    Attributes:
        steps: Those of the two machines' ends.
        others: Those of entries and controllers.
    """

    def __init__(self, first: str, second: str) -> None:
        self.now = 0.0
        self.sides = {
            name: Side(
                name,
                P2PHandlerCore(name, f"{name}/p2phandler/1", POLICY),
                LinkTable(name, port, ResolveJobs(port), RecordCache()),
            )
            for name, port in ((one, TablePort(self, one)) for one in (first, second))
        }
        self.signals: dict[str, deque[Callable[[], None]]] = {first: deque(), second: deque()}
        self.dials: deque[tuple[End, do.Dial, int]] = deque()
        self.steps: list[Step] = []
        self.others: list[Step] = []
        self._reported: deque[Callable[[], None]] = deque()
        self.objects = Objects(self.feed, self._signal)
        self.listening: dict[str, tuple[End, int]] = {}
        self.dead: set[str] = set()
        self.negotiations: dict[End, int] = {}
        self.links: dict[str, tuple[End, End]] = {}
        self._opened = 0
        self._listened = 0
        self._in_use: set[tuple[End, str]] = set()
        self._deaf: list[tuple[float, End, str]] = []

    def other(self, name: str) -> str:
        return next(each for each in self.sides if each != name)

    def start(self, name: str) -> None:
        """The registry is notified of a record: it plans a link, or not (RES-07)."""
        remote = self.other(name)
        plan = RequesterPlan(remote, f"{remote}/p2phandler/1", "")
        self.sides[name].table.plan(plan, self.now)
        self.answer_rows(name)
        self._listen_to_own()

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
        self._listen_to_own()

    def cut_unseen(self, name: str) -> None:
        """Break every link, which the end at `name` notices only by a ping."""
        for link in list(self.links):
            for end in self.links.pop(link, ()):
                if end[0] == name:
                    self._deaf.append((self.now + PING_PERIOD + PONG_TIMEOUT, end, link))
                else:
                    self.feed(end, seen.LinkLost(link, seen.Loss.BROKEN))
        self._listen_to_own()

    def move(self, name: str) -> None:
        """Make where a runtime listens now unreachable for good."""
        self.dead |= {at for at, (end, _) in self.listening.items() if end[0] == name}

    def deliver(self, towards: str) -> None:
        if self.signals[towards]:
            self.signals[towards].popleft()()
        self._listen_to_own()

    def lose(self, towards: str) -> None:
        if self.signals[towards]:
            self.signals[towards].popleft()

    def dial(self, *, succeeds: bool) -> None:
        if not self.dials:
            return
        end, dial, negotiation = self.dials.popleft()
        address = dial.candidate.address
        listener = self.listening.get(address) if succeeds and address not in self.dead else None
        if listener is None:
            self.feed(end, seen.DialFailed(dial.attempt))
        else:
            self._open((end, negotiation), listener)
        self._listen_to_own()

    def _open(self, dialler: tuple[End, int], listener: tuple[End, int]) -> None:
        self._opened += 1
        link = f"L{self._opened}"
        self.links[link] = (dialler[0], listener[0])
        self.feed(listener[0], seen.LinkOpened(link, seen.Opening.ACCEPTED, listener[1]))
        if link in self.links:
            self.feed(dialler[0], seen.LinkOpened(link, seen.Opening.DIALLED, dialler[1]))

    def pass_time(self, to: float) -> None:
        self.now = max(self.now, to)
        due, self._deaf = (
            [each for each in self._deaf if each[0] <= self.now],
            [each for each in self._deaf if each[0] > self.now],
        )
        for _, end, link in due:
            self.feed(end, seen.LinkLost(link, seen.Loss.BROKEN))
        for side in self.sides.values():
            for url in list(side.requesters):
                self.feed((side.name, url), seen.TimePassed())
            self._do_per_link(side.name, side.handler.time_passed(self.now))
            side.table.tick(self.now)
            self.answer_rows(side.name)
        self._listen_to_own()

    def reconnect(self) -> None:
        for side in self.sides.values():
            for url, core in list(side.requesters.items()):
                if core.state is State.DISCONNECTED and not core.has_ended:
                    self.feed((side.name, url), seen.ConnectAsked())
        self._listen_to_own()

    def close(self, name: str) -> None:
        """A runtime's stub is ordered to end its link for good (M-12)."""
        for entry in self.sides[name].table.entries():
            self.disconnect(name, entry.stub, self.other(name))
        self._listen_to_own()

    def crash(self, name: str) -> None:
        """A runtime's requester is gone, without a word to anybody but its registry."""
        side = self.sides[name]
        for entry in side.table.entries():
            core = side.requesters.pop(entry.stub, None)
            if core is not None:
                self._vanish((name, entry.stub), core)
                side.table.gone(entry.stub, self.now)
                self.answer_rows(name)
        self._listen_to_own()

    def _vanish(self, end: End, core: P2PRequesterCore) -> None:
        for effect in core.feed(seen.DisconnectAsked("it is gone"), self.now):
            if isinstance(effect, Step):
                self.keep(effect)
        for link, ends in list(self.links.items()):
            if end in ends:
                self._end_link(end, link, seen.Loss.BROKEN)
        self._stop_listening(end)
        self.dials = deque(entry for entry in self.dials if entry[0] != end)

    def settle(self) -> None:
        """Deliver everything, let every dial succeed and every deadline pass."""
        for _ in range(100):
            for name in self.sides:
                while self.signals[name]:
                    self.deliver(name)
            if self.dials:
                self.dial(succeeds=True)
                continue
            deadlines = [deadline for deadline in self._deadlines() if deadline < float("inf")]
            if not (deadlines or self.dials or any(self.signals.values())):
                return
            if not (self.dials or any(self.signals.values())):
                self.pass_time(min(deadlines))
        raise AssertionError("does not come to rest")

    def _deadlines(self) -> Iterator[float]:
        yield from (when for when, _, _ in self._deaf)
        for side in self.sides.values():
            yield side.handler.deadline()
            yield side.table.deadline()
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
                self.keep(effect)
            case do.Dial():
                self.dials.append((end, effect, self.negotiations.get(end, FIRST)))
            case do.UseLink(link):
                self._in_use.add((end, link))
            case do.ReleaseLink(link):
                self._end_link(end, link, seen.Loss.BROKEN)
            case do.CloseLink(link):
                # Who never used it says no goodbye, either.
                is_used = (end, link) in self._in_use
                self._end_link(end, link, seen.Loss.ORDERLY if is_used else seen.Loss.BROKEN)
            case do.Announce() | do.AskRow() | do.Ended() | do.Answered():
                self._reported.append(lambda: self._do_at_registry(end, effect))
            case _:
                self._do_on_object(end, effect)

    def _do_on_object(self, end: End, effect: do.SideEffect) -> None:
        match effect:
            case do.CreateObject():
                self.objects.create(end)
            case do.Invite():
                self._signal(end[0], self._invite, end)
            case do.AnswerInvitation(url, code, why):
                self._signal(end[0], self.objects.answer, url, int(code), why)
            case do.Observe(url):
                self._signal(end[0], self.objects.observe, url, end)
            case do.Listen():
                self._listen(end)
            case _:
                self._do_on_value(end, effect)

    def _do_on_value(self, end: End, effect: do.SideEffect) -> None:
        match effect:
            case do.Offer(candidates):
                self.objects.sign(end)
                self.objects.update(end, candidates=candidates)
            case do.Plead(status):
                self.objects.update(end, status=status)
            case do.Renew():
                self._renew(end, effect)
            case _:
                self._withdraw(end, effect)

    # --- between a registry and the stubs of its own ------------------------------------------

    def _do_at_registry(self, end: End, effect: do.SideEffect) -> None:
        side, (name, link) = self.sides[end[0]], end
        match effect:
            case do.Announce(state):
                stub = link if "/p2prequester/" in link else side.url
                side.table.status(stub, state.value, self.other(name), link, self.now)
            case do.AskRow():
                side.rows.append(end)
            case do.Ended():
                # A handler says that a link of it is over; a requester need not.
                side.table.over(side.url, link, self.now)
            case do.Answered(Code.GONE):
                side.table.gone(link, self.now)
        self.answer_rows(name)

    def _listen_to_own(self) -> None:
        while self._reported:
            self._reported.popleft()()

    def answer_rows(self, name: str) -> None:
        for end, reported in self.sides[name].row_answers(self.other(name)):
            self.report(partial(self.feed, end, reported))

    def report(self, work: Callable[[], None]) -> None:
        """Do something when what was reported before is done."""
        self._reported.append(work)

    def add_requester(self, name: str, url: str, remote: str, handler: str) -> None:
        terms = seen.LinkTerms(name, remote, url, handler)
        self.sides[name].requesters[url] = P2PRequesterCore(terms, POLICY)
        self.feed((name, url), seen.Started())

    def set_path(self, name: str, url: str) -> None:
        self.sides[name].table.path_set(url, None, self.now)
        self.answer_rows(name)

    def register_link(self, name: str, link: str) -> None:
        side = self.sides[name]
        side.table.registered(link, None if side.handler.knows(link) else "404", self.now)
        self.answer_rows(name)

    def disconnect(self, name: str, stub: str, link: str) -> None:
        side = self.sides[name]
        if stub == side.url:
            effects = side.handler.disconnect((link,), "asked", self.now)
            self._do_per_link(name, effects)
        else:
            self.feed((name, stub), seen.DisconnectAsked("asked"))

    def keep(self, step: Step) -> None:
        (self.steps if step.machine == "p2p_connection" else self.others).append(step)

    # --- the two Connection objects -----------------------------------------------------------

    def _listen(self, end: End) -> None:
        negotiation = self.negotiations.get(end, FIRST)
        self._listened += 1
        address = f"11.0.0.1:{self._listened}"
        self.listening[address] = end, negotiation
        self.feed(end, seen.CandidatesReady((Candidate("tcp", address, "00"),), negotiation))

    def _renew(self, end: End, renew: do.Renew) -> None:
        self.negotiations[end] = renew.negotiation
        self._stop_listening(end)
        self.objects.unsign(end)
        self.objects.update(end, candidates=(), status=renew.status)

    def _stop_listening(self, end: End) -> None:
        self.listening = {at: by for at, by in self.listening.items() if by[0] != end}

    def _end_link(self, end: End, link: str, loss: seen.Loss) -> None:
        for peer in self.links.pop(link, ()):
            if peer != end:
                self.feed(peer, seen.LinkLost(link, loss))

    def _withdraw(self, end: End, effect: do.SideEffect) -> None:
        if not isinstance(effect, do.Withdraw):
            return
        self._stop_listening(end)
        self.dials = deque(entry for entry in self.dials if entry[0] != end)
        self.objects.delete(end)

    def _signal(self, source: str, work: Callable[..., None], *args: object) -> None:
        self.signals[self.other(source)].append(lambda: work(*args))

    def _invite(self, end: End) -> None:
        name, link = end
        target, url = self.other(name), self.objects.urls[end]
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
