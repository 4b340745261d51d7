"""Compositions of runtimes that link to each other: requesters, handlers, registries, network.

A registry writes an entry and deploys a requester. Connection objects are created, announced by
invitations, answered and observed through message nodes, which lose and repeat messages. Links are
dialled, opened and cut; they are restored by the same objects, by a new offer, or not at all.
Either side may abandon the link at any time, and a runtime may leave. A local message is never lost
but may come late: states in which a registry knows less than its stub are explored, too.

Left out, and why the result is still valid:

* All candidates of a link are dialled as one, which opens or not.
* A version gap: a change carries the whole object, as does the answer to a read (M-41).
* A request without answer (408): the stub abandons the link then, as it does at its deadline.
"""

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from itertools import permutations
from typing import Final, TypeAlias

import attrs
from typing_extensions import override

from fsm.engine import Step
from fsm.explore import composition as plan
from fsm.explore.composition import Call, Channel, Condition, Event, Medium, UnsafeError
from fsm.machines.handler_controller import HANDLER_CONTROLLER
from fsm.machines.handler_controller import State as Controller
from fsm.machines.p2p_connection import P2P_CONNECTION, State
from fsm.machines.p2p_entry import State as Entry
from fsm.p2p.dialling import (
    UNSIGNED,
    Believed,
    ChannelAnswer,
    DialPolicy,
    Distrusted,
    Standing,
)
from fsm.p2p.link_end import FIRST, LinkEnd, LinkTerms, Loss, Opening, Role
from fsm.registry.resolve.address_owners import RecordCache
from fsm.registry.resolve.links import LinkTable
from fsm.registry.resolve.searches import RequesterPlan, ResolveJobs, RoutesPort, StubPlan
from specs.bodies.object import Candidate, ConnectionData
from specs.identity import SenderIdentity
from specs.jsonvalue import JsonObject
from specs.limits.protocol import PING_PERIOD
from specs.reply_code import Code

_POLICY: Final = DialPolicy(("tcp",))
_FORGED: Final = Distrusted("its signature does not fit")
_BY_LINK: Final = " by link"
_OBJECT: Final = "/object"
_ON_WAY: Final = frozenset({State.CREATED, State.IN_PROGRESS, State.YIELDING})
_AT_WORK: Final = _ON_WAY | {State.LIVE}


def _address(runtime: str) -> str:
    """Return the address of a runtime `a`, `b` or `c`."""
    return f"hyperty-runtime://{runtime}.ex/r{runtime}"


def _handler_of(runtime: str) -> str:
    return f"{_address(runtime)}/p2phandler/1"


def _runtime_of(stub: str) -> str:
    return stub.removeprefix("hyperty-runtime://")[0]


# --- the registry


class Registry(plan.Host, RoutesPort):
    """Registry of a runtime, with its table of links.

    Attributes:
        asked: The runtimes to which it has requested a link.
        waiting: The handler's links that wait for the registry's report.
    """

    def __init__(self, place: str, runtime: str, roles: Sequence[Role]) -> None:
        super().__init__(place)
        self._roles = roles
        self._runtime = runtime
        self.asked: set[str] = set()
        self.core = LinkTable(_address(runtime), self, ResolveJobs(self), RecordCache())
        self.waiting: list[tuple[str, str]] = []
        self._paths: list[str] = []
        self._is_gone = False

    def entry(self, runtime: str) -> tuple[str, bool] | None:
        """Return the link in the entry for a runtime, and whether it is bound and live."""
        for entry in self.core.entries():
            if entry.remote == _address(runtime):
                is_bound = entry.life.state is Entry.BOUND and entry.beside is None
                return entry.link, is_bound and entry.is_live
        return None

    @override
    def deadline(self) -> float:
        return math.inf if self._is_gone else super().deadline()

    @override
    def time_over(self) -> None:
        self.core.tick(self.now)
        self._settle()

    @override
    def take(self, call: Call) -> None:
        if self._is_gone and call.name != "plan":
            return
        super().take(call)
        if call.name != "leave":
            self._settle()

    def plan(self, plan: RequesterPlan) -> None:
        if self.core.plan(plan, self.now):
            self.asked.add(plan.remote)

    def leave(self) -> None:
        self._is_gone = True
        self.core.close()
        for role in self._roles:
            self._to(role, "leave")

    def status(self, end: str, remote: str, state: State, _: str) -> None:
        self.core.status(self._stub(end), state.value, remote, end, self.now)

    def over(self, end: str) -> None:
        if self._stub(end) != end:  # a requester need not report its end
            self.core.over(self._stub(end), end, self.now)

    def ask_row(self, end: str, remote: str) -> None:
        self.waiting.append((end, remote))

    def _stub(self, end: str) -> str:
        return end if "/p2prequester/" in end else _handler_of(self._runtime)

    def _settle(self) -> None:
        while self._paths:
            self.core.path_set(self._paths.pop(0), None, self.now)
        handler = _handler_of(self._runtime)
        for end, remote in list(self.waiting):
            row = self.core.row(remote, handler)
            # No answer while our own request may still become live (P2P-18).
            if row is None or not row.is_held(handler):
                self.waiting.remove((end, remote))
                is_own = row is not None and row.role is Role.REQUESTER
                self._to(Role.HANDLER, "give_end", end, "row_reported", is_own)

    def _to(self, role: Role, name: str, *args: Hashable) -> None:
        self.send(f"{self._runtime} {role.value}", name, *args)

    # ---- the port

    @override
    def set_path(self, url: str) -> None:
        self._paths.append(url)

    @override
    def deploy(self, url: str, plan: StubPlan) -> None:
        if isinstance(plan, RequesterPlan):
            self._to(Role.REQUESTER, "begin", url, plan.handler)

    @override
    def undeploy(self, url: str) -> None:
        self.disconnect(url, "", url)

    @override
    def register_link(self, link: str, handler: str) -> None:
        self._to(Role.HANDLER, "register", link)

    @override
    def connect(self, stub: str, handler: str) -> None:
        self._to(Role.REQUESTER, "give_end", stub, "connect")

    @override
    def suspend(self, stub: str, remote: str) -> None:
        self._to(Role.REQUESTER, "give_end", stub, "yield_to_peer")

    @override
    def resume(self, stub: str, remote: str) -> None:
        self._to(Role.REQUESTER, "give_end", stub, "resume")

    @override
    def disconnect(self, stub: str, remote: str, link: str) -> None:
        if stub == _handler_of(self._runtime):
            self._to(Role.HANDLER, "disconnect", link)
        else:
            self._to(Role.REQUESTER, "give_end", stub, "disconnect", "asked")


# --- the stubs, with their sync managers, diallers and listeners


class StubEnd:
    """One runtime's side of a link, which implements the port of its core.

    Attributes:
        core: The core; None: the link has ended.
        runtime: Its own runtime.
        remote: The other runtime.
        was_live: Whether it has been live.
        link: The transport link that it uses; empty: none.
        negotiation: Number of the negotiation that its dials and listeners belong to.
        is_pinned: Whether it knows the key of its peer.
        data: Its Connection object.
        observer: The peer that observes its Connection object.
        standing: The result when its peer verifies the signature.
    """

    def __init__(self, stubs: "Stubs", name: str, peer: str, offer: str) -> None:
        self._stubs = stubs
        self.name = name
        self.role = stubs.role
        self.runtime = stubs.runtime
        self.peer = peer
        self.remote = _runtime_of(peer)
        self.was_live = self.is_pinned = False
        self.link = self.observer = ""
        self.negotiation = FIRST
        self.data: ConnectionData | None = None
        self.standing: Standing = UNSIGNED
        terms = LinkTerms(_address(self.runtime), _address(self.remote), name, peer)
        self.core: LinkEnd | None = LinkEnd(terms, self.role, _POLICY, self, offer)

    @property
    def state(self) -> State | None:
        """The state of the link; None: the link has ended."""
        return None if self.core is None else self.core.state

    def take(self, call: Call) -> None:
        """Pass an input to the core; without a core, refuse the input."""
        if self.core is not None:
            self._stubs.give(self.core, call)
            if self.core.has_ended:
                self.core = None
            return
        match call:
            case Call("connect" | "resume"):
                self.answer_command(Code.GONE)
            case Call("peer_invited", (str(url), _)):
                self.answer_invitation(url, Code.GONE, "the link has ended")
            case Call("link_opened", (str(link), *_)):
                self.close_link(link)
            case _:
                pass

    def _report(self, name: str, *args: Hashable) -> None:
        self._stubs.send(f"{self.runtime} registry", name, self.name, *args)

    def change(
        self,
        candidates: tuple[Candidate, ...] | None = None,
        status: str | None = None,
        standing: Standing | None = None,
    ) -> None:
        """Change the own object and send it to the peer; None leaves a value unchanged."""
        assert self.data is not None  # noqa: S101 - of an end at work
        if candidates is not None:
            self.data = attrs.evolve(self.data, candidates=candidates)
        if status is not None:
            self.data = attrs.evolve(self.data, status=status)
        self.standing = standing or self.standing
        if self.observer:
            self.show()

    def show(self) -> None:
        """Send the own object to the peer, as its node passes it on."""
        forged, self._stubs.is_forged = self._stubs.is_forged, False
        standing = _FORGED if forged else self.standing
        self._stubs.signal(self.observer, "peer_object_seen", self.data, standing)

    # --- the port

    def step(self, step: Step) -> None:
        self._stubs.step(step)
        if step.machine == P2P_CONNECTION.name:
            self.was_live = self.was_live or step.new == State.LIVE
            self._stubs.is_undone = self._stubs.is_undone or step.new == State.DISCONNECTED
        is_open = step.machine == HANDLER_CONTROLLER.name and step.new == Controller.OPEN
        if is_open and not self.was_live:
            raise UnsafeError("a controller is open whose link never was (I-P5)")

    def announce(self, state: State, why: str = "") -> None:
        self._report("status", _address(self.remote), state, why)

    def answer_command(self, code: Code, _: str = "") -> None:
        if code == Code.GONE:
            self._report("gone")

    def ask_row(self) -> None:
        self._report("ask_row", _address(self.remote))

    def create_object(self) -> None:
        self._stubs.waits.append(("object", self.name, FIRST))

    def invite(self) -> None:
        url = f"{self.name}{_OBJECT}"
        if self.role is Role.REQUESTER:
            self._stubs.send(f"{self.remote} handler", "be_invited", url, self.name)
        else:
            self._stubs.signal(self.peer, "peer_invited", url, _handler_of(self.runtime))

    def answer_invitation(self, url: str, code: Code, why: str = "") -> None:
        self._stubs.signal(url.removesuffix(_OBJECT), "invitation_answered", int(code), why)

    def observe(self, url: str) -> None:
        self._stubs.send(self._stubs.other(_runtime_of(url)), "observe", url, self.name)

    def pin(self, _: Believed) -> None:
        self.is_pinned = True

    def listen(self, _: str | None = None) -> None:
        self._stubs.waits.append(("listen", self.name, self.negotiation))

    def offer(self, candidates: tuple[Candidate, ...], _: str | None = None) -> None:
        identity = SenderIdentity(_address(self.runtime))
        self.change(candidates, None, Believed(identity, f"certificate of {self.runtime}"))

    def trickle(self, candidate: str, host: str | None = None) -> None:
        raise TypeError(candidate, host)

    def hear_ice(self, candidate: str) -> None:
        raise TypeError(candidate)

    def dial(self, candidate: Candidate | ChannelAnswer, attempt: int) -> None:
        address = candidate.address if isinstance(candidate, Candidate) else candidate.sdp
        self._stubs.dial(self, address, attempt)

    def request_dial(self, status: str) -> None:
        self.change(status=status)

    def renew(self, negotiation: int, status: str) -> None:
        self.negotiation = negotiation
        self._stubs.stop_listening(self.name)
        self.change((), status, UNSIGNED)

    def use_link(self, link: str) -> None:
        if not self.is_pinned:
            raise UnsafeError("a link is used whose peer is not believed")
        self.link = link

    def release_link(self, link: str) -> None:
        self._close(link, Loss.BROKEN)

    def close_link(self, link: str) -> None:
        # A runtime that never used the link sends no goodbye over it.
        self._close(link, Loss.ORDERLY if self.link == link else Loss.BROKEN)

    def _close(self, link: str, loss: Loss) -> None:
        if self.link == link:
            self.link = ""
        self._stubs.close(link, loss)

    def withdraw(self) -> None:
        self._stubs.stop_listening(self.name)
        self._stubs.stop_dials(self.name)
        if self.data is not None:
            if self.observer:
                self._stubs.signal(self.observer, "peer_object_deleted")
            self.data, self.observer, self.standing = None, "", UNSIGNED

    def end(self) -> None:
        self._report("over")
        if self.state in _AT_WORK:
            raise UnsafeError("an end that is over is still at work (I-P3, I-P4)")
        if self.link:
            raise UnsafeError("an end that is over has a link (I-P3, I-P4)")
        self.is_pinned, self.negotiation = False, FIRST


_Dial: TypeAlias = tuple[str, int, int]
"""Runtime side that dials, number of the attempt, and number of the negotiation."""


class Stubs(plan.Host):
    """Stubs of a runtime: requesters, each for one attempt, or the handler.

    Attributes:
        ends: The stubs' sides of links by name, including ended ones.
        links: The existing links, with the runtime at the other side; links that are cut unseen are
            not listed.
        dials: Dials, by the name of the link that they lead to.
        is_gone: Whether the runtime leaves, and no new link begins.
        is_undone: Whether a link that was live has ended or is live no longer.
        is_forged: Whether a node alters the next object that is sent to the other side.
        waits: Tasks of the runtime for its stubs: objects to return and listeners to open, with
            the name of the link and its negotiation.
    """

    def __init__(self, place: str, runtime: str, role: Role) -> None:
        super().__init__(place)
        self.runtime = runtime
        self.role = role
        self.ends: dict[str, StubEnd] = {}
        self.links: dict[str, str] = {}
        self.dials: dict[str, _Dial] = {}
        self.waits: deque[tuple[str, str, int]] = deque()
        self._listening: dict[str, tuple[str, int]] = {}
        self._minted = self._dialled = self._listened = 0
        self.is_gone = self.is_undone = self.is_forged = False
        self._deaf: dict[str, float] = {}

    @property
    def at_work(self) -> list[StubEnd]:
        """The sides of links that have not ended."""
        return [end for end in self.ends.values() if end.core is not None]

    @property
    def waits_without_end(self) -> bool:
        """True if a link is being connected without a deadline."""
        is_on_way = any(end.state in _ON_WAY for end in self.at_work)
        return is_on_way and self._core_deadline() == math.inf

    def _core_deadline(self) -> float:
        cores = [end.core for end in self.ends.values() if end.core is not None]
        return min((core.deadline() for core in cores), default=math.inf)

    @override
    def deadline(self) -> float:
        return min(self._core_deadline(), *self._deaf.values(), math.inf)

    @override
    def time_over(self) -> None:
        for link in [link for link, until in self._deaf.items() if until <= self.now]:
            del self._deaf[link]
            self._lose_link(link, Loss.BROKEN)
        for end in self.at_work:
            if end.core is not None and end.core.deadline() <= self.now:
                end.take(Call("time_over"))

    @override
    def take(self, call: Call) -> None:
        if not (self.is_gone and call.name in {"begin", "be_invited", "register", "disconnect"}):
            super().take(call)

    def give_end(self, name: str, call: str, *args: Hashable) -> None:
        """Pass an input to the side of a link with a name."""
        self.ends[name].take(Call(call, args))

    # --- channels

    def other(self, runtime: str) -> str:
        """Return the participant whose stubs are linked to these."""
        return f"{runtime} {'handler' if self.role is Role.REQUESTER else 'requester'}"

    def signal(self, end: str, call: str, *args: Hashable) -> None:
        """Pass an input to the other side of a link, through the nodes."""
        self.send(self.other(_runtime_of(end)), "give_end", end, call, *args)

    def _by_link(self, runtime: str, name: str, *args: Hashable) -> None:
        self.send(f"{self.other(runtime)}{_BY_LINK}", name, *args)

    # --- messages from the registry and the other side

    def begin(self, name: str, peer: str, offer: str = "") -> None:
        """Create the side of a link; a handler's side answers an offer."""
        self.ends[name] = StubEnd(self, name, peer, offer)
        self.give_end(name, "start")

    def leave(self) -> None:
        self.is_gone = True
        for end in self.at_work:
            end.take(Call("disconnect", ("the runtime goes",)))

    def register(self, name: str) -> None:
        is_known = name in self.ends and self.ends[name].core is not None
        self.send(f"{self.runtime} registry", "registered", name, None if is_known else "404")

    def disconnect(self, named: str, why: str = "asked") -> None:
        """End a link, or all links to a runtime (M-12)."""
        for end in self.at_work:
            if named in {end.name, _address(end.remote)}:
                end.take(Call("disconnect", (why,)))

    def be_invited(self, url: str, requester: str) -> None:
        """Create the side of a link for an invitation; an older link is closed first (M-34)."""
        self.disconnect(_address(_runtime_of(requester)), "the requester asks for a new link")
        self._minted += 1
        self.begin(f"{_handler_of(self.runtime)}/conn/{self._minted}", requester, url)

    def observe(self, url: str, observer: str) -> None:
        """Send an object to the other runtime, which observes it (M-36)."""
        end = self.ends.get(url.removesuffix(_OBJECT))
        if end is None or end.data is None:
            self.signal(observer, "observe_refused", "404")
        else:
            end.observer = observer
            end.show()

    # --- events

    def work(self) -> None:
        kind, name, negotiation = self.waits.popleft()
        end = self.ends[name]
        if end.core is None:
            return
        if kind == "object":
            end.data = ConnectionData(owner=name)
            end.take(Call("object_created"))
        elif negotiation == end.negotiation:
            self._listened += 1
            number = 2 * "abc".index(self.runtime) + (self.role is Role.HANDLER)
            address = f"11.0.0.{number}:{self._listened}"
            self._listening[address] = name, negotiation
            end.take(Call("candidates_ready", ((Candidate("tcp", address, "00"),), negotiation)))

    def refuse(self) -> None:
        self.give_end(self.waits.popleft()[1], "object_refused", "403")

    def fail(self) -> None:
        self._fail_dial(next(iter(self.dials)))

    def forge(self) -> None:
        self.is_forged = True

    def cut(self) -> None:
        self._lose_link(self._cut(), Loss.BROKEN)

    def cut_unseen(self) -> None:
        self._deaf[self._cut()] = self.now + PING_PERIOD + P2P_CONNECTION.patience(State.LIVE)

    def _cut(self) -> str:
        link = next(iter(self.links))
        self._by_link(self.links.pop(link), "end_link", link, Loss.BROKEN)
        return link

    # --- transport links

    def knock(self, link: str, address: str) -> None:
        """Accept an incoming dial; the new link has the name of the dial."""
        if address in self._listening:
            self._open(link, *self._listening[address], Opening.ACCEPTED)
        else:
            self._by_link(_runtime_of(link), "end_link", link, Loss.BROKEN)

    def confirm_link(self, link: str, end: str) -> None:
        if link in self.dials:
            name, _, negotiation = self.dials.pop(link)
            self._open(link, name, negotiation, Opening.DIALLED)
        else:
            self._by_link(_runtime_of(end), "end_link", link, Loss.BROKEN)

    def end_link(self, link: str, loss: Loss) -> None:
        if link in self.dials:
            self._fail_dial(link)
        else:
            self._lose_link(link, loss)

    def _open(self, link: str, name: str, negotiation: int, opening: Opening) -> None:
        runtime = self.ends[name].remote
        self.links[link] = runtime
        if opening is Opening.ACCEPTED:
            self._by_link(runtime, "confirm_link", link, name)
        self.give_end(name, "link_opened", link, opening, negotiation)

    def _fail_dial(self, link: str) -> None:
        name, attempt, _ = self.dials.pop(link)
        self.give_end(name, "dial_failed", attempt)

    def _lose_link(self, link: str, loss: Loss) -> None:
        self.links.pop(link, None)
        for end in self.ends.values():
            if end.link == link:
                end.take(Call("link_lost", (link, loss)))

    # --- decisions of the ends

    def close(self, link: str, loss: Loss) -> None:
        """Close a link; the other side notices a loss."""
        self._deaf.pop(link, None)
        runtime = self.links.pop(link, None)
        if runtime is not None:
            self._by_link(runtime, "end_link", link, loss)

    def dial(self, end: StubEnd, at: str, attempt: int) -> None:
        self._dialled += 1
        link = f"{end.name}#{self._dialled}"
        self.dials[link] = end.name, attempt, end.negotiation
        self._by_link(end.remote, "knock", link, at)

    def stop_listening(self, name: str) -> None:
        """Close the listeners of a link; links that are being dialled may still open."""
        self._listening = {url: each for url, each in self._listening.items() if each[0] != name}

    def stop_dials(self, name: str) -> None:
        self.dials = {link: dial for link, dial in self.dials.items() if dial[0] != name}


# --- conditions ----------------------------------------------------------------

_Pair: TypeAlias = tuple[str, str]


def _ends(hosts: Sequence[plan.Host], own: str, remote: str) -> list[StubEnd]:
    """Return the sides of links in one runtime that lead to another and have not ended."""
    stubs = [host for host in hosts if isinstance(host, Stubs) and host.runtime == own]
    return [end for host in stubs for end in host.at_work if end.remote == remote]


def _registry(hosts: Sequence[plan.Host], own: str) -> Registry:
    (registry,) = [h for h in hosts if isinstance(h, Registry) and h.place == f"{own} registry"]
    return registry


def _live(hosts: Sequence[plan.Host], pair: _Pair) -> list[tuple[StubEnd, StubEnd]]:
    """Return the sides, requester first, of links that are live in both runtimes."""
    own_ends, remote_ends = [
        {end.link: end for end in _ends(hosts, *way) if end.state is State.LIVE and end.link}
        for way in (pair, pair[::-1])
    ]
    both = [(own_ends[link], remote_ends[link]) for link in own_ends if link in remote_ends]
    return [ends if ends[0].role is Role.REQUESTER else ends[::-1] for ends in both]


def _has_two(pair: _Pair, *hosts: plan.Host) -> bool:
    return len(_live(hosts, pair)) > 1


def _is_linked(hosts: Sequence[plan.Host], pair: _Pair) -> bool:
    """Return whether a pair of runtimes has one link on which both and their registries agree."""
    live_links = _live(hosts, pair)
    return len(live_links) == 1 and all(
        _ends(hosts, end.runtime, end.remote) == [end]
        and _registry(hosts, end.runtime).entry(end.remote) == (end.name, True)
        for end in live_links[0]
    )


def _is_apart(hosts: Sequence[plan.Host], pair: _Pair) -> bool:
    return all(
        not _ends(hosts, own, other) and _registry(hosts, own).entry(other) is None
        for own, other in permutations(pair)
    )


def _is_settled(pairs: Sequence[_Pair], *hosts: plan.Host) -> bool:
    return all(_is_linked(hosts, pair) or _is_apart(hosts, pair) for pair in pairs)


def _is_as_asked(pairs: Sequence[_Pair], *hosts: plan.Host) -> bool:
    """Return whether each pair is linked as the smaller requesting runtime wants it."""
    for pair in pairs:
        ways = permutations(pair)
        askers = [own for own, to in ways if _address(to) in _registry(hosts, own).asked]
        if not (_is_linked(hosts, pair) if askers else _is_apart(hosts, pair)):
            return False
        if askers and _live(hosts, pair)[0][0].runtime != askers[0]:
            return False
    return True


def _is_early(registry: Registry, *stubs: Stubs) -> bool:
    live = {end.name for host in stubs for end in host.ends.values() if end.was_live}
    entries = registry.core.entries()
    return any(entry.life.state is Entry.BOUND and entry.link not in live for entry in entries)


# --- the compositions


def _request(own: str, other: str) -> Event:
    done: JsonObject = {"do": "ask", "by": _hyperty(own), "of": _hyperty(other)}
    wanted = Call("plan", (RequesterPlan(_address(other), _handler_of(other), ""),))
    return Event(f"{own} asks for {other}", f"{own} registry", wanted, done=done)


def _departure(own: str) -> Event:
    done: JsonObject = {"fault": "runtime shutdown", "of": f"R{own.upper()}"}
    return Event(f"{own} goes", f"{own} registry", "leave", is_fault=True, done=done)


def _hyperty(own: str) -> str:
    return f"H{own.upper()}"


def _participant_lines(runtimes: Sequence[str]) -> Iterator[JsonObject]:
    """Yield the scenario lines of the participants: runtimes, each with a hyperty."""
    for own in runtimes:
        yield {"given": "node", "domain": f"{own}.ex"}
    for own in runtimes:
        yield {"given": "runtime", "is": f"R{own.upper()}", "p2p": True}
    for own in runtimes:
        yield {"given": "hyperty", "is": _hyperty(own), "in": f"R{own.upper()}", "answers": True}


_FAULTS: Final = {
    "an object is refused": ("refuse", lambda at: bool(at.waits) and at.waits[0][0] == "object"),
    "a dial fails": ("fail", lambda at: bool(at.dials)),
    "the link is cut": ("cut", lambda at: bool(at.links)),
    "the link is cut, unseen here": ("cut_unseen", lambda at: bool(at.links)),
    "what it shows next is altered": ("forge", lambda at: any(e.data for e in at.ends.values())),
}
"""Events that may happen to a stub: by name, its call and condition."""
_DIALS: Final = ("an object is refused", "a dial fails")
_CUTS: Final = ("the link is cut", "the link is cut, unseen here")


def _stub_events(place: str, faults: Sequence[str]) -> Iterator[Event]:
    name = f"{place}: what it asked of its runtime is done"
    yield Event(name, place, "work", lambda stubs: bool(stubs.waits), None)
    for fault in faults:
        call, when = _FAULTS[fault]
        yield Event(f"{place}: {fault}", place, call, when, is_fault=True)


def _links(
    name: str,
    requests: Sequence[_Pair],
    faults: Sequence[str] = (),
    leaves: Sequence[str] = (),
    channel: int = 1,
) -> plan.Composition:
    """Return a composition in which no deadline passes early and local messages come at once.

    Args:
        name: Its name.
        requests: Pairs of runtimes; the first has a requester, and the second a handler.
        faults: Events that may happen to each stub, once.
        leaves: Runtimes that may leave.
        channel: Largest number of messages in a channel.
    """
    runtimes = sorted({each for pair in requests for each in pair})
    pairs = sorted({(min(pair), max(pair)) for pair in requests})
    stubs = dict.fromkeys(
        [
            *((own, Role.REQUESTER) for own, _ in requests),
            *((other, Role.HANDLER) for _, other in requests),
        ]
    )
    places: dict[str, Callable[[str], plan.Host]] = {}
    channels: list[Channel] = []
    never: list[Condition] = []
    for own in runtimes:
        roles = tuple(role for runtime, role in stubs if runtime == own)
        places[f"{own} registry"] = partial(Registry, runtime=own, roles=roles)
        looked_at = (f"{own} registry", *(f"{own} {role.value}" for role in roles))
        words = "an entry is bound before its link was live (I-P6, I-P17)"
        never.append(Condition(words, looked_at, _is_early))
    for own, role in stubs:
        place = f"{own} {role.value}"
        places[place] = partial(Stubs, runtime=own, role=role)
        channels += plan.both_ways(place, f"{own} registry", Medium.LOCAL)
        words = "an end is connecting without end (C-16)"
        never.append(Condition(words, (place,), lambda stubs: stubs.waits_without_end))
        words = "a link that was live at one end is undone (P2P-27, I-P20)"
        never.append(Condition(words, (place,), lambda stubs: stubs.is_undone, faults=False))
    for own, other in requests:
        ends = f"{own} requester", f"{other} handler"
        channels += plan.both_ways(*ends)
        channels += plan.both_ways(*ends, Medium.RELIABLE, _BY_LINK)
    for pair in pairs:
        words = "two links of one pair are live at both their ends (I-P6, R9)"
        of_pair = tuple(f"{own} {role.value}" for own, role in stubs if own in pair)
        never.append(Condition(words, of_pair, partial(_has_two, pair)))
    settled, as_asked = "each pair is linked, or not", "each pair that was asked for is linked"
    return plan.Composition(
        name=name,
        places=places,
        channels=channels,
        events=(
            *(_request(*pair) for pair in requests),
            *map(_departure, leaves),
            *(e for own, role in stubs for e in _stub_events(f"{own} {role.value}", faults)),
        ),
        never=never,
        ends=(
            Condition(settled, tuple(places), partial(_is_settled, pairs), faults=True),
            Condition(as_asked, tuple(places), partial(_is_as_asked, pairs)),
        ),
        bounds=plan.Bounds(losses=1, duplicates=1, channel=channel),
        is_timely=True,
        is_local_first=True,
        given=tuple(_participant_lines(runtimes)),
    )


_ONE: Final = (("a", "b"),)
_BOTH: Final = (("a", "b"), ("b", "a"))

P2P: Final = attrs.evolve(_links("p2p", _ONE, _DIALS, channel=3), is_timely=False)
"""Composition: one runtime links to another; dials fail, and deadlines pass at any moment."""

P2P_LATE: Final = attrs.evolve(_links("p2p-late", _ONE, _DIALS), is_local_first=False)
"""Composition like `P2P`: only messages between registries and their stubs may be late."""

P2P_AGAIN: Final = _links("p2p-reconnect", _ONE, _CUTS, channel=3)
"""Composition: a link is cut, with or without notice, and is restored in one of three ways."""

P2P_ENDS: Final = attrs.evolve(_links("p2p-leave", _ONE, leaves=("a", "b")), early=1)
"""Composition: either runtime leaves while a link is being set up or live."""

P2P_FORGED: Final = _links("p2p-forged", _ONE, (*_CUTS, "what it shows next is altered"))
"""Composition: a node alters an offer: the set-up fails, but a link that is live stays live."""

SIMULTANEOUS_OPEN: Final = _links("simultaneous-open", _BOTH, channel=3)
"""Composition: two runtimes request a link at once; the smaller runtime's request wins."""

SIMULTANEOUS_OPEN_LATE: Final = attrs.evolve(
    _links("simultaneous-open-late", _BOTH), is_local_first=False
)
"""Composition like `SIMULTANEOUS_OPEN`, with late messages between registries and stubs."""

SIMULTANEOUS_OPEN_TIMEOUT: Final = attrs.evolve(_links("simultaneous-open-timeout", _BOTH), early=1)
"""Composition like `SIMULTANEOUS_OPEN`, with a deadline that passes early."""

TWO: Final = _links("p2p-two", (("a", "c"), ("b", "c")))
"""Composition: two runtimes link to a third, whose handler keeps both links independent."""

COMPOSITIONS: Final = (
    P2P,
    P2P_LATE,
    P2P_AGAIN,
    P2P_ENDS,
    P2P_FORGED,
    TWO,
    SIMULTANEOUS_OPEN,
    SIMULTANEOUS_OPEN_LATE,
    SIMULTANEOUS_OPEN_TIMEOUT,
)
