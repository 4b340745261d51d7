"""What was seen, and the facts that prove that a message took the route of its scenario.

Each hop leaves a trace: its sender leaves `submit` at the bus, a stub `xmit` and the node `rcv`,
the last bus `deliver` or, for an answer, `callback`. A route that is only sketched (`..`) asks for
less; a message that is denied ends where the ruling is. Session control leaves its traces at the
stub. What is lost or doubled in the network leaves one of the network.
"""

from collections.abc import Iterator
from itertools import pairwise, takewhile
from typing import Final, NamedTuple, Unpack

import attrs
import trio
from typing_extensions import override

from actors.kit.trace import More, Tracer
from specs.addresses.address import is_backend, is_below, scheme_of
from specs.message import Message
from specs.trace import Fact, Op
from tests.conformance.play import script
from tests.conformance.play.names import Names

DOUBLED: Final = "doubled"
"""Why the network carries a message another time."""

_NO_STUB: Final = "none"
"""What crosses a node's link itself, crosses no stub."""

_NO_OBJECTS: Final = frozenset(
    [
        "connection",
        "domain",
        "global",
        "hyperty",
        "hyperty-catalogue",
        "hyperty-runtime",
        "user",
        "user-guid",
    ]
)
"""Schemes whose addresses are no data objects of hyperties."""


class Seen(NamedTuple):
    """One thing that an actor of a process reported, in the order of their numbers."""

    number: int
    time: float
    who: str
    actor: str
    fact: Fact
    message: Message | None = None


class Observer:
    """Collects what all processes of a scenario report.

    Attributes:
        items: What was seen, in order.
        start: Number of the first item that belongs to the scenario.
        processes: Processes with a tracer: the actors, not outsiders.
    """

    def __init__(self) -> None:
        self.items: list[Seen] = []
        self.start = 0
        self.processes: set[str] = set()
        self._waiting = trio.lowlevel.ParkingLot()

    def tracer(self, who: str) -> Tracer:
        """Make the tracer of one process."""
        self.processes.add(who)
        return _Watch(who, self)

    def begin(self) -> None:
        """Say that the preconditions hold: what comes now belongs to the scenario."""
        self.start = len(self.items)

    def see(self, who: str, actor: str, fact: Fact, message: Message | None = None) -> None:
        """Add something that was seen; never waits."""
        self.items.append(Seen(len(self.items), trio.current_time(), who, actor, fact, message))
        self._waiting.unpark_all()

    async def more(self, known: int) -> None:
        """Wait until more than `known` items were seen."""
        await trio.lowlevel.checkpoint()
        while len(self.items) <= known:
            await self._waiting.park()


class _Watch(Tracer):
    """The tracer of one process; it keeps messages whole."""

    hops = True
    bodies = True

    def __init__(self, who: str, observer: Observer) -> None:
        self._who = who
        self._observer = observer

    @override
    def record(self, actor: str, fact: Fact) -> None:
        self._observer.see(self._who, actor, fact)

    @override
    def message(self, actor: str, op: Op, message: Message, **more: Unpack[More]) -> None:
        self._observer.see(self._who, actor, self.message_fact(op, message, **more), message)


class Match(NamedTuple):
    """The records that are a step: numbers of the first and the last of them."""

    first: int
    last: int


@attrs.frozen(kw_only=True)
class Need:
    """One thing that must be seen of a message; None: whatever it is.

    Attributes:
        ops: What happened to it, one of these.
        by: Address of the submitting component.
        actor: Actor that reports it, by its name in the process.
        stub: The stub it crossed; `_NO_STUB`: it crossed none.
        listener: Its receiver; an answer may be called back instead.
        is_beside: Whether it may be seen before the one before it: one of several receivers.
    """

    ops: tuple[Op, ...]
    who: str | None = None
    by: str | None = None
    actor: str | None = None
    stub: str | None = None
    link: str | None = None
    listener: str | None = None
    reason: str | None = None
    is_beside: bool = False

    def holds(self, seen: Seen, names: Names) -> bool:
        """Return whether this was seen; binds names, so try with a copy."""
        fact = seen.fact
        is_for = self.listener is None or fact.op is Op.CALLBACK
        is_by_none = self.stub == _NO_STUB and fact.stub is None
        return (
            fact.op in self.ops
            and (self.who is None or names.unify(self.who, seen.who))
            and is_named(self.by, fact.by, names)
            and is_named(self.actor, seen.actor, names)
            and (is_by_none or is_named(self.stub, fact.stub, names))
            and (self.link is None or (fact.link is not None and names.bind(self.link, fact.link)))
            and (self.reason is None or fact.reason == self.reason)
            and (is_for or is_named(self.listener, fact.listener, names))
        )

    def __str__(self) -> str:
        named = {"at": self.who, "by": self.by, "of": self.actor, "stub": self.stub}
        named |= {"link": self.link, "to": self.listener, "because": self.reason}
        parts = [f"{name} {value}" for name, value in named.items() if value is not None]
        return " ".join([" or ".join(sorted(self.ops)), *parts])


def is_named(golden: str | None, actual: str | None, names: Names) -> bool:
    """Return whether two names agree, also with a role in front, such as `minibus:<address>`."""
    if golden is None or actual is None:
        return golden is None
    prefix, separator, address = golden.partition(":")
    if not separator or address.startswith("//"):
        return names.unify(golden, actual) if separator else golden == actual
    return actual.startswith(f"{prefix}:") and names.unify(address, actual[len(prefix) + 1 :])


def needs_of(step: script.Line, scenario: script.Scenario) -> list[Need]:
    """List what must be seen of a message, in this order."""
    route = _Route(step, scenario)
    needs = list(route.needs())
    denied_at = scenario.denied_at(step.n)
    if step.control:
        needs = [need for need in needs if need.who is None or not is_backend(need.who)]
    elif denied_at is not None:
        process = scenario.process(denied_at)
        known = takewhile(lambda need: not _comes_into(need, process), needs)
        needs = needs[: len(list(known)) + 1]
    return [*needs, *route.ending()]


def _comes_into(need: Need, process: str | None) -> bool:
    return need.who == process and (Op.RCV in need.ops or Op.SUBMIT in need.ops)


class _Leg(NamedTuple):
    """One part of a route: from a place to a place."""

    one: script.Place
    ride: str
    two: script.Place
    is_last: bool
    is_beside: bool


class _Route:
    """The route of one message, leg by leg; what a MiniBUS hands on is seen at its bus."""

    def __init__(self, step: script.Line, scenario: script.Scenario) -> None:
        self._step = step
        self._scenario = scenario
        self._is_to_come = bool(step.doubled)
        self._legs = list(_legs(step))

    def needs(self) -> Iterator[Need]:
        yield from self._start()
        for leg in self._legs:
            is_crossed = leg.ride == script.WIRE or leg.ride[0] == "="
            yield from self._crossed(leg) if is_crossed else self._handed(leg)

    def _start(self) -> Iterator[Need]:
        """Say how it begins: made by a router, or submitted before a route that is sketched."""
        first, step = self._step.hop.first, self._step
        who = self._scenario.process(first)
        if step.synthetic or (first.part == "bus" and not step.dup and step.msg.is_response):
            yield Need(ops=(Op.SYNTH,), who=who)
        ride = self._legs[0].ride if self._legs else script.HANDED
        is_sketched = ride == script.UNSAID or (ride[0] == "=" and who is None)
        is_inside = first.part == "bus" or self._scenario.is_node(first)
        if first != script.GAP and is_sketched and not is_inside:
            yield Need(ops=(Op.SUBMIT,), who=who, by=self._by(first))

    def _by(self, place: script.Place) -> str | None:
        """Return the address under which a place submits the message; None: not said.

        What an object says is shown to come from its reporter; its sync manager sends it.
        """
        sender = self._scenario.sender(place)
        if sender is None or place.root == script.SANDBOX or scheme_of(sender) != "hyperty":
            return sender
        return sender if is_below(self._step.msg.from_, sender) else None

    def _crossed(self, leg: _Leg) -> Iterator[Need]:
        """Say that it crosses the link of a stub to a node, or a direct link."""
        link = None if leg.ride == script.WIRE else leg.ride.strip("=")
        there = self._scenario.process(leg.two)
        yield Need(
            ops=(Op.XMIT,), who=self._scenario.process(leg.one), stub=self._stub(leg.one), link=link
        )
        if link is None:
            yield from self._disturbed()
        if link is not None or not leg.is_last or self._step.drop is None:
            yield Need(ops=(Op.RCV,), who=there, stub=self._stub(leg.two), link=link)
        if link is not None and leg.is_last and there is None:
            yield self._arrived(leg)
        elif link is not None and leg.two.part == "bus":
            yield Need(ops=(Op.SUBMIT,), who=there)

    def _disturbed(self) -> Iterator[Need]:
        """Yield that it is doubled, where its route has come to where it can be."""
        if self._is_to_come:
            self._is_to_come = False
            yield Need(ops=(Op.XMIT,), reason=DOUBLED)

    def _stub(self, place: script.Place) -> str | None:
        """Return the stub at a place; a node has its own, written `MN.a.stub(b.ex)`."""
        if self._scenario.is_node(place):
            own = f"{self._scenario.process(place)}/protostub/{place.note}"
            return own if place.part == "stub" else _NO_STUB
        is_named = not place.part and not place.note and self._scenario.process(place) is not None
        return self._scenario.sender(place) if is_named else None

    def _handed(self, leg: _Leg) -> Iterator[Need]:
        who = self._scenario.process(leg.two)
        if leg.ride == script.UNSAID:
            yield from self._disturbed()
        if self._scenario.is_node(leg.two):
            yield Need(ops=(Op.RCV, Op.DELIVER), who=who)
        elif leg.two.part == "bus":
            by = self._by(leg.one) if leg.ride == script.HANDED else None
            yield Need(ops=(Op.SUBMIT,), who=who, by=by)
        elif leg.is_last and self._step.drop is None:
            yield self._arrived(leg)

    def _arrived(self, leg: _Leg) -> Need:
        place, to = leg.two, self._step.msg.to
        who, listener = self._scenario.process(place), self._scenario.listener(place)
        # The component of a place may have sent the request that is answered.
        asker = self._scenario.sender(place)
        is_object = place.part == "sm" and scheme_of(to) not in _NO_OBJECTS
        may_be_asker = asker is None or is_below(to, asker) or is_object
        ops = (Op.DELIVER, Op.CALLBACK) if may_be_asker else (Op.DELIVER,)
        return Need(ops=ops, who=who, listener=listener, is_beside=leg.is_beside)

    def ending(self) -> Iterator[Need]:
        """Yield what must be seen where it ends, other than that it arrives."""
        yield from self._disturbed()
        step, place = self._step, self._step.hop.last
        who = self._scenario.process(place)
        if step.drop is not None:
            yield Need(ops=(Op.DROP,), who=None if step.is_lost else who, reason=step.drop)
        if step.p2p is not None and all(leg.ride[0] != "=" for leg in self._legs):
            yield Need(ops=(Op.XMIT,), link=step.p2p)
        if step.queued:
            stub = self._stub(place)
            actor = "bus" if stub in {None, _NO_STUB} else f"stub:{stub}"
            yield Need(ops=(Op.QUEUE,), who=who, actor=actor)


def _legs(step: script.Line) -> Iterator[_Leg]:
    stations, carriers = step.hop.stations, step.hop.carriers
    last = len(stations) - 1
    kept = [at for at, one in enumerate(stations) if one[0].part != "minibus" or at == last]
    for one, two in pairwise(kept):
        for number, place in enumerate(stations[two]):
            yield _Leg(stations[one][0], carriers[two - 1], place, two == last, number > 0)


def follow(seen: list[Seen], needs: list[Need], names: Names, since: int) -> Match | Need | None:
    """Find all that is needed of a message, one thing behind the other; binds names.

    Returns the first need that nothing meets; None: nothing is needed, and nothing was seen.
    """
    numbers: list[int] = []
    before = place = since
    for need in needs:
        # Several receivers get a message in any order.
        before = before if need.is_beside else place
        found = next((one.number for one in seen if _meets(one, need, names, before)), None)
        if found is None:
            return need
        numbers.append(found)
        place = max(place, found) if need.is_beside else found
    numbers = numbers or [one.number for one in seen if one.number >= since][:1]
    return Match(min(numbers), max(numbers)) if numbers else None


def _meets(one: Seen, need: Need, names: Names, since: int) -> bool:
    trial = names.copy()
    if one.number < since or not need.holds(one, trial):
        return False
    names.take(trial)
    return True
