"""Two runtimes' P2P cores, their registries' tables and what lies between, without any I/O."""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import final

import attrs
from typing_extensions import override

from fsm.engine import Step
from fsm.machines.p2p_connection import State
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.link_end import FIRST, LinkTerms, Loss, Opening, Role
from fsm.registry.resolve.address_owners import RecordCache
from fsm.registry.resolve.jobs import ResolveJobs
from fsm.registry.resolve.link_table import LinkTable
from fsm.registry.resolve.port import RequesterPlan, RoutesPort, StubPlan
from specs.bodies.object import Candidate
from specs.limits.protocol import PING_PERIOD, PONG_TIMEOUT
from specs.reply_code import Code
from tests.support.link_calls import Call, Told, tell, told_end
from tests.support.p2p_objects import End, Objects

POLICY = DialPolicy(("tcp",))


@final
@attrs.define
class Side:
    """One runtime.

    Attributes:
        table: Its registry's.
        ends: By name, also those that have ended.
        minted: How many links its handler has had.
        rows: The handler's links that wait for the registry's row.
    """

    name: str
    table: LinkTable
    ends: dict[str, Told] = attrs.field(factory=dict)
    minted: int = 0
    rows: list[End] = attrs.field(factory=list)

    @property
    def url(self) -> str:
        return f"{self.name}/p2phandler/1"

    def row_answers(self, remote: str) -> list[tuple[End, Call]]:
        """What the registry's row says to the handler's links that ask for it (P2P-18)."""
        row = self.table.row(remote, self.url)
        if row is not None and row.is_held(self.url):
            return []
        waiting, self.rows = self.rows, []
        reported = tell.row_reported(row is not None and row.role is Role.REQUESTER)
        return [(end, reported) for end in waiting]


@final
class TablePort(RoutesPort):
    """The port of the table of one runtime: what it wants is done later, in order."""

    def __init__(self, world: "World", name: str) -> None:
        self._world, self._name = world, name

    def _feed(self, stub: str, order: Call) -> None:
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
        self._feed(stub, tell.connect())

    @override
    def suspend(self, stub: str, remote: str) -> None:
        self._feed(stub, tell.yield_to_peer())

    @override
    def resume(self, stub: str, remote: str) -> None:
        self._feed(stub, tell.resume())

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
            name: Side(name, LinkTable(name, port, ResolveJobs(port), RecordCache()))
            for name, port in ((one, TablePort(self, one)) for one in (first, second))
        }
        self.signals: dict[str, deque[Callable[[], None]]] = {first: deque(), second: deque()}
        self.dials: deque[tuple[End, Call, int]] = deque()
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

    def feed(self, end: End, happened: Call) -> None:
        core = self.sides[end[0]].ends.get(end[1])
        if core is not None:
            for effect in core.tell(happened, self.now):
                self._do(end, effect)

    def _begin(self, end: End, peer: str, role: Role, offer: str = "") -> None:
        terms = LinkTerms(end[0], self.other(end[0]), end[1], peer)
        self.sides[end[0]].ends[end[1]] = told_end(terms, role, POLICY, offer)
        self.feed(end, tell.start())

    def cut(self) -> None:
        """Break every link."""
        for link in list(self.links):
            for end in self.links.pop(link, ()):
                self.feed(end, tell.link_lost(link, Loss.BROKEN))
        self._listen_to_own()

    def cut_unseen(self, name: str) -> None:
        """Break every link, which the end at `name` notices only by a ping."""
        for link in list(self.links):
            for end in self.links.pop(link, ()):
                if end[0] == name:
                    self._deaf.append((self.now + PING_PERIOD + PONG_TIMEOUT, end, link))
                else:
                    self.feed(end, tell.link_lost(link, Loss.BROKEN))
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
            self.feed(end, tell.dial_failed(dial.attempt))
        else:
            self._open((end, negotiation), listener)
        self._listen_to_own()

    def _open(self, dialler: tuple[End, int], listener: tuple[End, int]) -> None:
        self._opened += 1
        link = f"L{self._opened}"
        self.links[link] = (dialler[0], listener[0])
        self.feed(listener[0], tell.link_opened(link, Opening.ACCEPTED, listener[1]))
        if link in self.links:
            self.feed(dialler[0], tell.link_opened(link, Opening.DIALLED, dialler[1]))

    def pass_time(self, to: float) -> None:
        self.now = max(self.now, to)
        due, self._deaf = (
            [each for each in self._deaf if each[0] <= self.now],
            [each for each in self._deaf if each[0] > self.now],
        )
        for _, end, link in due:
            self.feed(end, tell.link_lost(link, Loss.BROKEN))
        for side in self.sides.values():
            for url in list(side.ends):
                self.feed((side.name, url), tell.time_over())
            side.table.tick(self.now)
            self.answer_rows(side.name)
        self._listen_to_own()

    def reconnect(self) -> None:
        for side in self.sides.values():
            for url, core in list(side.ends.items()):
                is_lost = core.state is State.DISCONNECTED and not core.has_ended
                if is_lost and is_requester(url):
                    self.feed((side.name, url), tell.connect())
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
            core = side.ends.pop(entry.stub, None)
            if core is not None:
                self._vanish((name, entry.stub), core)
                side.table.gone(entry.stub, self.now)
                self.answer_rows(name)
        self._listen_to_own()

    def _vanish(self, end: End, core: Told) -> None:
        for effect in core.tell(tell.disconnect("it is gone"), self.now):
            if isinstance(effect, Step):
                self.keep(effect)
        for link, ends in list(self.links.items()):
            if end in ends:
                self._end_link(end, link, Loss.BROKEN)
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
            yield side.table.deadline()
            yield from (core.deadline() for core in side.ends.values())

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

    def _do(self, end: End, effect: Step | Call) -> None:
        if isinstance(effect, Step):
            self.keep(effect)
            return
        match effect.name:
            case "dial":
                self.dials.append((end, effect, self.negotiations.get(end, FIRST)))
            case "use_link":
                self._in_use.add((end, effect.link))
            case "release_link":
                self._end_link(end, effect.link, Loss.BROKEN)
            case "close_link":
                # Who never used it says no goodbye, either.
                is_used = (end, effect.link) in self._in_use
                self._end_link(end, effect.link, Loss.ORDERLY if is_used else Loss.BROKEN)
            case "announce" | "ask_row" | "end" | "answer_command":
                self._reported.append(lambda: self._do_at_registry(end, effect))
            case _:
                self._do_on_object(end, effect)

    def _do_on_object(self, end: End, effect: Call) -> None:
        match effect.name:
            case "create_object":
                self.objects.create(end)
            case "invite":
                self._signal(end[0], self._invite, end)
            case "answer_invitation":
                answer = effect.url, int(effect.code), effect.why
                self._signal(end[0], self.objects.answer, *answer)
            case "observe":
                self._signal(end[0], self.objects.observe, effect.url, end)
            case "listen":
                self._listen(end)
            case "offer":
                self.objects.sign(end)
                self.objects.update(end, candidates=effect.candidates)
            case "request_dial":
                self.objects.update(end, status=effect.status)
            case "renew":
                self._renew(end, effect)
            case "withdraw":
                self._withdraw(end)

    # --- between a registry and the stubs of its own ------------------------------------------

    def _do_at_registry(self, end: End, effect: Call) -> None:
        side, (name, link) = self.sides[end[0]], end
        match effect.name:
            case "announce":
                stub = link if is_requester(link) else side.url
                remote = self.other(name)
                side.table.status(stub, effect.state.value, remote, link, self.now)
            case "ask_row":
                side.rows.append(end)
            case "end":
                # A handler says that a link of it is over; a requester need not.
                side.table.over(side.url, link, self.now)
            case _ if effect.code is Code.GONE:
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
        assert remote == self.other(name)
        self._begin((name, url), handler, Role.REQUESTER)

    def set_path(self, name: str, url: str) -> None:
        self.sides[name].table.path_set(url, None, self.now)
        self.answer_rows(name)

    def register_link(self, name: str, link: str) -> None:
        side = self.sides[name]
        side.table.registered(link, None if self._knows((name, link)) else "404", self.now)
        self.answer_rows(name)

    def disconnect(self, name: str, stub: str, link: str) -> None:
        end = link if stub == self.sides[name].url else stub
        self.feed((name, end), tell.disconnect("asked"))

    def keep(self, step: Step) -> None:
        (self.steps if step.machine == "p2p_connection" else self.others).append(step)

    # --- the two Connection objects -----------------------------------------------------------

    def _listen(self, end: End) -> None:
        negotiation = self.negotiations.get(end, FIRST)
        self._listened += 1
        address = f"11.0.0.1:{self._listened}"
        self.listening[address] = end, negotiation
        self.feed(end, tell.candidates_ready((Candidate("tcp", address, "00"),), negotiation))

    def _renew(self, end: End, renew: Call) -> None:
        self.negotiations[end] = renew.negotiation
        self._stop_listening(end)
        self.objects.unsign(end)
        self.objects.update(end, candidates=(), status=renew.status)

    def _stop_listening(self, end: End) -> None:
        self.listening = {at: by for at, by in self.listening.items() if by[0] != end}

    def _end_link(self, end: End, link: str, loss: Loss) -> None:
        for peer in self.links.pop(link, ()):
            if peer != end:
                self.feed(peer, tell.link_lost(link, loss))

    def _withdraw(self, end: End) -> None:
        self._stop_listening(end)
        self.dials = deque(entry for entry in self.dials if entry[0] != end)
        self.objects.delete(end)

    def _signal(self, source: str, work: Callable[..., None], *args: object) -> None:
        self.signals[self.other(source)].append(lambda: work(*args))

    def _invite(self, end: End) -> None:
        name, link = end
        target, url = self.other(name), self.objects.urls[end]
        if is_requester(link):
            self._invite_handler(target, link, url)
        elif self._knows(end):
            requester = self.sides[name].ends[link].core.terms.peer
            self.feed((target, requester), tell.peer_invited(url, f"{name}/p2phandler/1"))

    def _invite_handler(self, name: str, requester: str, url: str) -> None:
        """A handler is invited; an older link of the same runtime is closed first."""
        side = self.sides[name]
        for link in [link for link in side.ends if self._knows((name, link))]:
            if not is_requester(link):
                self.feed((name, link), tell.disconnect("the requester asks for a new link"))
        side.minted += 1
        self._begin((name, f"{side.url}/conn/{side.minted}"), requester, Role.HANDLER, url)

    def _knows(self, end: End) -> bool:
        core = self.sides[end[0]].ends.get(end[1])
        return core is not None and not core.has_ended


def is_requester(link: str) -> bool:
    return "/p2prequester/" in link
