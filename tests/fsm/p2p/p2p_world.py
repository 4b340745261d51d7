"""The hosts of the composition in which two runtimes ask each other for a link, led by a test."""

from collections import defaultdict, deque
from typing import TypeAlias

from fsm.engine import Step
from fsm.explore.composition import Call, Medium, Sent
from fsm.explore.compositions.p2p import SIMULTANEOUS_OPEN, Registry, Stubs
from fsm.machines.p2p_connection import State
from fsm.p2p.link_end import Loss
from fsm.registry.resolve.links import LinkTable
from fsm.registry.resolve.searches import RequesterPlan

RA = "hyperty-runtime://a.ex/ra"
RB = "hyperty-runtime://b.ex/rb"

End: TypeAlias = tuple[str, str]
"""A runtime and the address of its end of a link."""


class World:
    """Signals between the runtimes are queued per direction, and may be lost.

    What a registry tells a stub of its own, or a stub it, comes at once, as does what a stub wants
    of its runtime. A dial that is under way when its end offers anew may open all the same.

    Attributes:
        signals: What comes to each runtime, with the place that it comes to.
        moved: All steps of machines.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.signals: dict[str, deque[tuple[str, Call]]] = {RA: deque(), RB: deque()}
        self.moved: list[Step] = []
        self._hosts = {place: make(place) for place, make in SIMULTANEOUS_OPEN.places.items()}
        self._channels = {channel.name: channel for channel in SIMULTANEOUS_OPEN.channels}
        self._knocks: deque[tuple[str, Call]] = deque()
        self._soon: deque[tuple[str, Call]] = deque()

    # --- what there is ------------------------------------------------------------------------

    @property
    def steps(self) -> list[Step]:
        """Those of the ends."""
        return [step for step in self.moved if step.machine == "p2p_connection"]

    @property
    def others(self) -> list[Step]:
        return [step for step in self.moved if step.machine != "p2p_connection"]

    @property
    def tables(self) -> dict[str, LinkTable]:
        return {name: self._registry(name).core for name in self.signals}

    @property
    def dials(self) -> list[str]:
        """The runtimes that dial, in order."""
        self._knocks = deque(one for one in self._knocks if self._dialler(one[1].args[0]))
        return [name_of(call.args[0]) for _, call in self._knocks]

    @property
    def links(self) -> dict[str, set[End]]:
        """The ends of each link that both use."""
        used: dict[str, set[End]] = defaultdict(set)
        for stubs in self._stubs():
            for end in stubs.ends.values():
                used[end.link].add((name_of(end.name), end.name))
        return {link: ends for link, ends in used.items() if link and len(ends) == 2}

    def states(self) -> dict[str, str]:
        return {step.key: step.new for step in self.steps}

    def live_ends(self) -> list[End]:
        keys = [key.split("|") for key, state in self.states().items() if state == State.LIVE]
        return [(own, link) for own, _, _, link in keys]

    def live_links(self) -> list[str]:
        """Links that both their ends believe in."""
        live = set(self.live_ends())
        return [link for link, ends in self.links.items() if ends <= live]

    def _registry(self, name: str) -> Registry:
        host = self._hosts[f"{name[-1]} registry"]
        assert isinstance(host, Registry)
        return host

    def _stubs(self, name: str = "") -> list[Stubs]:
        stubs = [host for host in self._hosts.values() if isinstance(host, Stubs)]
        return [one for one in stubs if not name or one.runtime == name[-1]]

    def _dialler(self, link: str) -> str:
        """The place that still dials a link; empty: none."""
        return next((stubs.place for stubs in self._stubs() if link in stubs.dials), "")

    # --- what happens -------------------------------------------------------------------------

    def _take(self, place: str, name: str, *args: object) -> None:
        """Have a place take an input, and then all that follows within its runtime."""
        self._soon.append((place, Call(name, args)))
        self._go_on()

    def _go_on(self) -> None:
        while self._soon:
            where, call = self._soon.popleft()
            host = self._hosts[where]
            host.now = self.now
            host.take(call)
            self._pass_on(where)

    def _pass_on(self, place: str) -> None:
        host = self._hosts[place]
        for one in host.out:
            if isinstance(one, Sent):
                self._send(self._channels[one.channel].target, one)
            else:
                self.moved.append(one)
        host.out.clear()
        if isinstance(host, Stubs) and host.waits:
            self._soon.appendleft((place, Call("work")))

    def _send(self, target: str, sent: Sent) -> None:
        if self._channels[sent.channel].medium is Medium.NETWORK:
            self.signals[RA if target[0] == "a" else RB].append((target, sent.message))
        elif sent.message.name == "knock":
            self._knocks.append((target, sent.message))
        else:
            self._soon.append((target, sent.message))

    def start(self, name: str) -> None:
        """The registry is notified of a record: it plans a link, or not (RES-07)."""
        remote = RB if name == RA else RA
        plan = RequesterPlan(remote, f"{remote}/p2phandler/1", "")
        self._take(f"{name[-1]} registry", "plan", plan)

    def deliver(self, towards: str) -> None:
        if self.signals[towards]:
            place, call = self.signals[towards].popleft()
            self._take(place, call.name, *call.args)

    def lose(self, towards: str) -> None:
        if self.signals[towards]:
            self.signals[towards].popleft()

    def dial(self, *, succeeds: bool) -> None:
        if not self.dials:
            return
        place, call = self._knocks.popleft()
        link = call.args[0]
        if succeeds:
            self._take(place, "knock", *call.args)
        else:
            self._take(self._dialler(link), "end_link", link, Loss.BROKEN)

    def cut(self) -> None:
        """Break every link."""
        self._cut("cut", self._stubs())

    def cut_unseen(self, name: str) -> None:
        """Break every link, which the end at `name` notices only by a ping."""
        self._cut("cut_unseen", self._stubs(name))

    def _cut(self, how: str, places: list[Stubs]) -> None:
        for stubs in places:
            while stubs.links:
                self._take(stubs.place, how)

    def move(self, name: str) -> None:
        """Make where a runtime listens now unreachable for good."""
        for stubs in self._stubs(name):
            stubs._listening.clear()

    def pass_time(self, to: float) -> None:
        self.now = max(self.now, to)
        for place, host in self._hosts.items():
            host.now = self.now
            if host.deadline() <= self.now:
                host.time_over()
                self._pass_on(place)
                self._go_on()

    def reconnect(self) -> None:
        for stubs in self._stubs():
            for end in stubs.at_work:
                if end.state is State.DISCONNECTED and "/p2prequester/" in end.name:
                    self._take(stubs.place, "give_end", end.name, "connect")

    def close(self, name: str) -> None:
        """A runtime's stub is ordered to end its link for good (M-12)."""
        for entry in self.tables[name].entries():
            place = self._registry(name).place
            self._take(place, "disconnect", entry.stub, entry.remote, entry.link)

    def crash(self, name: str) -> None:
        """A runtime's requester is gone, without a word to anybody but its registry."""
        place = f"{name[-1]} requester"
        host = self._hosts[place]
        for entry in self.tables[name].entries():
            if "/p2prequester/" in entry.stub:
                host.take(Call("give_end", (entry.stub, "disconnect", "it is gone")))
                self.moved += [one for one in host.out if isinstance(one, Step)]
                closed = [one for one in host.out if isinstance(one, Sent)]
                host.out.clear()
                for one in closed:
                    if one.message.name == "end_link":
                        target = self._channels[one.channel].target
                        self._take(target, "end_link", one.message.args[0], Loss.BROKEN)
                self._take(f"{name[-1]} registry", "gone", entry.stub)

    def settle(self) -> None:
        """Deliver everything, let every dial succeed and every deadline pass."""
        for _ in range(100):
            for name, signals in self.signals.items():
                while signals:
                    self.deliver(name)
            due = min(host.deadline() for host in self._hosts.values())
            if self.dials:
                self.dial(succeeds=True)
            elif any(self.signals.values()):
                continue
            elif due < float("inf"):
                self.pass_time(due)
            else:
                return
        raise AssertionError("does not come to rest")


def name_of(part: str) -> str:
    """The runtime of an end, or of the link that it dials."""
    return part[: len(RA)]
