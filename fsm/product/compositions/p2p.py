"""Runtimes link to each other: requesters, handlers, registries, and what lies between.

A registry writes an entry and deploys a requester; objects are made, invited to, answered and
observed through message nodes, which lose and repeat; links are dialled, opened, cut, come back
in place, by a new offer, or not at all; either end may give up at any time, and a runtime may
go. A local message is never lost, but may come late: that a registry knows less than its stub
is part of what is explored.

Left out, and why that is no loss:

* All candidates of an end are dialled as one, which opens or not.
* A version gap: a change carries the whole object, as the reading does that the observer asks
  for (M-41).
* A request without answer (408): the end gives up then, as it does at its deadline.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import Final, final

import attrs
from typing_extensions import override

from fsm.engine import Step
from fsm.machines.p2p_connection import State as Link
from fsm.machines.p2p_entry import State as Entry
from fsm.p2p.link_end import Role
from fsm.product.composition import (
    Bounds,
    Channel,
    Composition,
    End,
    Event,
    Haste,
    Host,
    Medium,
    Never,
    Patience,
    Place,
    Plan,
    Situation,
)
from fsm.product.compositions.p2p_inputs import (
    Deployed,
    Disconnect,
    Leave,
    Listening,
    ToRegistry,
    ToStub,
    address,
    handler_of,
    runtime_of,
)
from fsm.product.compositions.p2p_stubs import HandlerPlace, RequesterPlace, Stubs
from fsm.registry.resolve.address_owners import RecordCache
from fsm.registry.resolve.jobs import ResolveJobs
from fsm.registry.resolve.link_table import LinkTable
from fsm.registry.resolve.port import RequesterPlan, RoutesPort, StubPlan
from specs.jsonvalue import JsonObject


@final
class RegistryPlace(Host, RoutesPort):
    """The table of links of a runtime's registry.

    Attributes:
        asked: The runtimes that it has asked for a link.
        waiting: The handler's links that wait for the registry's row.
    """

    def __init__(self, runtime: str, roles: Sequence[str]) -> None:
        super().__init__()
        self.runtime = runtime
        self._roles = roles
        self.asked: set[str] = set()
        self.table = LinkTable(address(runtime), self, ResolveJobs(self), RecordCache())
        self.waiting: list[tuple[str, str]] = []
        self._paths: list[str] = []
        self._is_gone = False

    @override
    def deadline(self) -> float:
        return math.inf if self._is_gone else self.table.deadline()

    @override
    def time_over(self) -> None:
        self.table.tick(self.now)
        self._settle()

    @override
    def take(self, happened: Hashable) -> None:
        match happened:
            case ToRegistry():
                if not self._is_gone:
                    self._hear(happened)
            case RequesterPlan(remote):
                if self.table.plan(happened, self.now):
                    self.asked.add(remote)
                self._settle()
            case "go":
                self._is_gone = True
                self.table.close()
                for role in self._roles:
                    self._to(role, Leave())
            case _:
                raise TypeError(happened)

    def _hear(self, said: ToRegistry) -> None:
        end, table = said.end, self.table
        stub = end if "/p2prequester/" in end else handler_of(self.runtime)
        match said.report:
            case Link() as state:
                table.status(stub, state.value, said.remote, end, self.now)
            case "asking for the row":
                self.waiting.append((end, said.remote))
            case "over":
                # A handler says that a link of it is over; a requester need not.
                if stub != end:
                    table.over(stub, end, self.now)
            case "gone":
                table.gone(end, self.now)
            case "known" | "unknown" as report:
                table.registered(end, None if report == "known" else "404", self.now)
            case report:
                raise TypeError(report)
        self._settle()

    def _settle(self) -> None:
        while self._paths:
            self.table.path_set(self._paths.pop(0), None, self.now)
        self._answer_rows()

    # ---- the port

    @override
    def step(self, step: Step) -> None:
        self.moved([step])

    @override
    def set_path(self, url: str) -> None:
        self._paths.append(url)

    @override
    def deploy(self, url: str, plan: StubPlan) -> None:
        if isinstance(plan, RequesterPlan):
            self._to("requester", Deployed(url, plan))

    @override
    def undeploy(self, url: str) -> None:
        self._disconnect(url, url)

    @override
    def register_link(self, link: str, handler: str) -> None:
        self._to("handler", Listening(link))

    @override
    def connect(self, stub: str, handler: str) -> None:
        self._to("requester", ToStub(stub, "connect"))

    @override
    def suspend(self, stub: str, remote: str) -> None:
        self._to("requester", ToStub(stub, "yield_to_peer"))

    @override
    def resume(self, stub: str, remote: str) -> None:
        self._to("requester", ToStub(stub, "resume"))

    @override
    def disconnect(self, stub: str, remote: str, link: str) -> None:
        self._disconnect(stub, link)

    # ----

    def _disconnect(self, stub: str, link: str) -> None:
        if stub == handler_of(self.runtime):
            self._to("handler", Disconnect(link))
        else:
            self._to("requester", ToStub(stub, "disconnect", ("asked",)))

    def _answer_rows(self) -> None:
        """Answer the requester of the row, unless our request may still become live (P2P-18)."""
        handler = handler_of(self.runtime)
        for end, remote in list(self.waiting):
            row = self.table.row(remote, handler)
            if row is None or not row.is_held(handler):
                self.waiting.remove((end, remote))
                is_own = row is not None and row.role is Role.REQUESTER
                self._to("handler", ToStub(end, "row_reported", (is_own,)))

    def _to(self, role: str, message: Hashable) -> None:
        self.send(f"{self.runtime} registry to {role}", message)


# --- meetings --------------------------------------------------------------------------------


@final
@attrs.frozen(slots=True, kw_only=True)
class Scene:
    """The requests for links, and the faults.

    Attributes:
        asks: Pairs of runtimes; the first has a requester, and the second a handler.
        dials: How many dials fail although an end listens.
        refusals: How many objects are refused.
        cuts: How many links break, with or without notice.
        forgeries: How many offers or answers of an end a node alters.
        leaves: Ends that may leave.
        early: How many deadlines are over while something else goes on.
    """

    asks: Sequence[tuple[str, str]]
    dials: int = 0
    refusals: int = 0
    cuts: int = 0
    forgeries: int = 0
    leaves: Sequence[str] = ()
    early: int = 0
    patience: Patience = Patience.AT_REST
    haste: Haste = Haste.LOCAL_FIRST

    @property
    def runtimes(self) -> Sequence[str]:
        """All, the smallest address first."""
        return sorted({one for pair in self.asks for one in pair})

    @property
    def stubs(self) -> Sequence[tuple[str, str]]:
        """Runtime and role of all stubs."""
        requesters = [(own, "requester") for own, _ in self.asks]
        return [*requesters, *((other, "handler") for _, other in self.asks)]

    def places(self) -> Iterator[Place]:
        """The places of the cores."""
        for runtime in self.runtimes:
            roles = tuple(role for own, role in dict.fromkeys(self.stubs) if own == runtime)
            yield Place(f"{runtime} registry", partial(RegistryPlace, runtime, roles))
        for runtime, role in dict.fromkeys(self.stubs):
            kind = RequesterPlace if role == "requester" else HandlerPlace
            yield Place(f"{runtime} {role}", partial(kind, runtime))

    def channels(self) -> Iterator[Channel]:
        """Within the runtimes, and between their stubs."""
        for runtime, role in dict.fromkeys(self.stubs):
            here, registry = f"{runtime} {role}", f"{runtime} registry"
            yield Channel(f"{here} to registry", here, registry, Medium.LOCAL)
            yield Channel(f"{registry} to {role}", registry, here, Medium.LOCAL)
        for own, other in self.asks:
            ends = f"{own} requester", f"{other} handler"
            for source, target in (ends, ends[::-1]):
                yield Channel(f"{source} to {target} by nodes", source, target)
                yield Channel(f"{source} to {target} by link", source, target, Medium.RELIABLE)

    def events(self) -> Iterator[Event]:
        """The requests and the faults."""
        for own, other in self.asks:
            yield self._asked(own, other)
        for runtime in self.leaves:
            yield Event(
                f"{runtime} goes", f"{runtime} registry", "go", is_fault=True, done=_goes(runtime)
            )
        for runtime, role in dict.fromkeys(self.stubs):
            yield from self._of_stub(f"{runtime} {role}")

    @staticmethod
    def _asked(own: str, other: str) -> Event:
        plan = RequesterPlan(address(other), handler_of(other), "")
        name, done = f"{own} asks for {other}", _asks(own, other)
        return Event(name, f"{own} registry", plan, done=done)

    def _of_stub(self, place: str) -> Iterator[Event]:
        def waits(now: Situation) -> bool:
            return bool(_stubs(now, place).waits)

        def makes(now: Situation) -> bool:
            return waits(now) and _stubs(now, place).waits[0][0] == "object"

        def dials(now: Situation) -> bool:
            return bool(_stubs(now, place).dials)

        def is_linked(now: Situation) -> bool:
            return bool(_stubs(now, place).links)

        def is_honest(now: Situation) -> bool:
            return bool(_stubs(now, place).objects)

        name = f"{place}: what it asked of its runtime is done"
        yield Event(name, place, "work", when=waits, budget=None)
        for budget, what, happened, when in (
            (self.refusals, "an object is refused", "refuse", makes),
            (self.dials, "a dial fails", "fail", dials),
            (self.cuts, "the link is cut", "cut", is_linked),
            (self.cuts, "the link is cut, unseen here", "cut unseen", is_linked),
            (self.forgeries, "what it shows next is altered", "forge", is_honest),
        ):
            if budget:
                yield Event(
                    f"{place}: {what}", place, happened, when=when, budget=budget, is_fault=True
                )

    # --- what must be, and must not -------------------------------------------------------

    def never(self) -> Iterator[Never]:
        """The conditions that must not be in any state."""
        stubs = tuple(f"{runtime} {role}" for runtime, role in dict.fromkeys(self.stubs))
        for place in stubs:
            yield Never(
                "an end is connecting without end",
                "C-16",
                (place,),
                partial(_waits_without_end, place),
            )
            yield Never(
                "a link that was live at one end is undone",
                "P2P-27, I-P20",
                (place,),
                partial(_is_undone, place),
                unless_faults=True,
            )
        for pair in self._pairs():
            requests = [request for request in self.asks if set(request) == pair]
            places = tuple(place for request in requests for place in _ends_of(request))
            yield Never(
                "two links of one pair are live at both their ends",
                "I-P6, R9",
                places,
                partial(_has_two, tuple(requests)),
            )
        for runtime in self.runtimes:
            own = tuple(place for place in stubs if place.startswith(f"{runtime} "))
            yield Never(
                "an entry is bound before its link was live",
                "I-P6, I-P17",
                (f"{runtime} registry", *own),
                partial(_is_early, runtime, own),
            )

    def _pairs(self) -> Sequence[set[str]]:
        return [set(pair) for pair in {frozenset(pair) for pair in self.asks}]

    def ends(self) -> Iterator[End]:
        """The states of rest: each pair is linked, or nothing is left of it."""
        places = tuple(place.name for place in self.places())
        yield End("each pair is linked, or not", places, self._is_settled, after_faults=True)
        yield End("each pair that was asked for is linked", places, self._is_linked_as_asked)

    def _is_linked_as_asked(self, now: Situation) -> bool:
        """Return whether each pair is linked as the smaller one of its askers wants it."""
        for pair in self._pairs():
            asked = [own for own in sorted(pair) if self._has_asked(now, own, *(pair - {own}))]
            if not (self.is_linked(now, pair) if asked else self._is_apart(now, pair)):
                return False
            live = _live(now, [request for request in self.asks if set(request) == pair])
            if asked and runtime_of(live[0][0]) != asked[0]:
                return False
        return True

    def _has_asked(self, now: Situation, own: str, other: str) -> bool:
        return address(other) in now.at(f"{own} registry", RegistryPlace).asked

    def _is_settled(self, now: Situation) -> bool:
        return all(self.is_linked(now, pair) or self._is_apart(now, pair) for pair in self._pairs())

    def is_linked(self, now: Situation, pair: set[str]) -> bool:
        """Return whether a pair has one link that both ends and both registries agree on.

        Args:
            now: The situation.
            pair: Names of the runtimes.
        """
        found = _live(now, [request for request in self.asks if set(request) == pair])
        if len(found) != 1:
            return False
        ((requester, handler),) = found
        return all(
            self._ends_at(now, own, *(pair - {own})) == [end]
            and _entry_of(now, own, *(pair - {own})) == (end, True)
            for own, end in ((runtime_of(requester), requester), (runtime_of(handler), handler))
        )

    def _is_apart(self, now: Situation, pair: set[str]) -> bool:
        return all(
            not self._ends_at(now, own, *(pair - {own}))
            and _entry_of(now, own, *(pair - {own})) is None
            for own in pair
        )

    def _ends_at(self, now: Situation, own: str, other: str) -> list[str]:
        """The ends at work in a runtime of links to another."""
        stubs = [f"{own} {role}" for runtime, role in dict.fromkeys(self.stubs) if runtime == own]
        places = [_stubs(now, place) for place in stubs]
        return [end for at in places for end in at.states if at.remotes[end] == other]


def _stubs(now: Situation, place: str) -> Stubs:
    return now.at(place, Stubs)  # type: ignore[type-abstract] # any stubs


def _ends_of(request: tuple[str, str]) -> tuple[str, str]:
    return f"{request[0]} requester", f"{request[1]} handler"


def _live(now: Situation, requests: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The ends, requester first, of links that are live at both."""
    found: list[tuple[str, str]] = []
    for request in requests:
        requester, handler = _ends_of(request)
        theirs = {link: end for end, link in now.at(handler, HandlerPlace).live()}
        mine = now.at(requester, RequesterPlace).live()
        found += [(end, theirs[link]) for end, link in mine if link in theirs]
    return found


def _entry_of(now: Situation, own: str, other: str) -> tuple[str, bool] | None:
    """The link of a registry's entry, and whether it is bound and live."""
    for entry in now.at(f"{own} registry", RegistryPlace).table.entries():
        if entry.remote == address(other):
            is_whole = entry.life.state is Entry.BOUND and entry.is_live and entry.beside is None
            return entry.link, is_whole
    return None


def _waits_without_end(place: str, now: Situation) -> bool:
    return _stubs(now, place).waits_without_end


def _is_undone(place: str, now: Situation) -> bool:
    return _stubs(now, place).is_undone


def _has_two(requests: Sequence[tuple[str, str]], now: Situation) -> bool:
    return len(_live(now, requests)) > 1


def _is_early(runtime: str, stubs: Sequence[str], now: Situation) -> bool:
    entries = now.at(f"{runtime} registry", RegistryPlace).table.entries()
    live = {end for place in stubs for end in _stubs(now, place).was_live}
    return any(entry.life.state is Entry.BOUND and entry.link not in live for entry in entries)


def _asks(own: str, other: str) -> JsonObject:
    return {"do": "ask", "by": _hyperty(own), "of": _hyperty(other)}


def _goes(own: str) -> JsonObject:
    return {"fault": "runtime shutdown", "of": f"R{own.upper()}"}


def _hyperty(own: str) -> str:
    return f"hyperty://{own}.ex/asking"


def _given(scene: Scene) -> Iterator[JsonObject]:
    """The lines that list the participants: runtimes, each with a hyperty."""
    for own in scene.runtimes:
        yield {"given": "node", "domain": f"{own}.ex"}
    for own in scene.runtimes:
        yield {"given": "runtime", "is": f"R{own.upper()}", "p2p": True}
    for own in scene.runtimes:
        hyperty = _hyperty(own)
        yield {"given": "hyperty", "is": hyperty, "in": f"R{own.upper()}", "answers": True}


def _plan(name: str, about: str, scene: Scene, bounds: Bounds) -> Plan:
    def compose(taken: Bounds) -> Composition:
        return Composition(
            name=name,
            about=about,
            places=tuple(scene.places()),
            channels=tuple(scene.channels()),
            events=tuple(scene.events()),
            never=tuple(scene.never()),
            ends=tuple(scene.ends()),
            bounds=taken,
            patience=scene.patience,
            early=scene.early,
            haste=scene.haste,
            given=tuple(_given(scene)),
        )

    return Plan(name, compose, bounds)


_ONE: Final = (("a", "b"),)
_BOTH: Final = (("a", "b"), ("b", "a"))
_TWO: Final = (("a", "c"), ("b", "c"))

_FAULTS: Final = Bounds(losses=1, duplicates=1, channel=1)

_ROOMY: Final = Bounds(losses=1, duplicates=1, channel=3)

P2P: Final = _plan(
    "p2p",
    "One runtime links to another; dials fail, deadlines are over at any moment.",
    Scene(asks=_ONE, dials=1, refusals=1, patience=Patience.NONE),
    _ROOMY,
)
P2P_LATE: Final = _plan(
    "p2p-late",
    "The same, with every message in time, but for those between registries and their stubs.",
    Scene(asks=_ONE, dials=1, refusals=1, haste=Haste.NONE),
    _FAULTS,
)
P2P_AGAIN: Final = _plan(
    "p2p-reconnect",
    "A link is cut, with or without notice, and comes back in place, by a new offer, or not.",
    Scene(asks=_ONE, cuts=1),
    _ROOMY,
)
P2P_ENDS: Final = _plan(
    "p2p-leave",
    "Either runtime goes while a link is set up or live.",
    Scene(asks=_ONE, leaves=("a", "b"), early=1),
    _FAULTS,
)
P2P_FORGED: Final = _plan(
    "p2p-forged",
    "A node alters what either end offers: the set-up fails, and a link that is live stands.",
    Scene(asks=_ONE, cuts=1, forgeries=1),
    _FAULTS,
)
SIMULTANEOUS_OPEN: Final = _plan(
    "simultaneous-open",
    "Two runtimes ask each other for a link at once; the smaller one's request wins.",
    Scene(asks=_BOTH),
    _ROOMY,
)
SIMULTANEOUS_OPEN_LATE: Final = _plan(
    "simultaneous-open-late",
    "The same, but registries and stubs hear of each other late.",
    Scene(asks=_BOTH, haste=Haste.NONE),
    _FAULTS,
)
SIMULTANEOUS_OPEN_TIMEOUT: Final = _plan(
    "simultaneous-open-timeout",
    "The same, and a deadline is over early.",
    Scene(asks=_BOTH, early=1),
    _FAULTS,
)
TWO: Final = _plan(
    "p2p-two",
    "Two runtimes link to a third: its handler has two links, and none knows the other.",
    Scene(asks=_TWO),
    _FAULTS,
)
