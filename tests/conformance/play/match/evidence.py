"""The facts that prove that a message took the route of its scenario.

Each hop leaves a trace: its sender leaves `submit` at the bus, a stub
`xmit` and the node `rcv`, the last bus `deliver` or, for an answer, `callback`. A route
that is only sketched (`..`) asks for less; a message that is denied ends where the ruling
is. Session control, private to a link, leaves its traces at the stub. What is lost or
doubled in the network leaves one of the network.

Which message instances can be a scenario's message, and the routes they took.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, final

import attrs

from specs.addresses.address import is_backend, is_below
from specs.message import Message, instance_id
from specs.trace import Fact, Kind, Op
from tests.conformance.play.match.difference import Candidate, NearMiss, show_message
from tests.conformance.play.match.names import Content, Names, says_the_same
from tests.conformance.play.match.observer import Observer, Seen
from tests.conformance.play.match.order import Match
from tests.conformance.play.script.addresses import SANDBOX, Places, is_hyperty, is_object
from tests.conformance.play.script.hop import GAP, Place, Ride
from tests.conformance.play.script.steps import MessageStep

DELAYED: Final = "delayed"
"""Why the network carries a message late."""

DOUBLED: Final = "doubled"
"""Why the network carries a message another time."""

_ARRIVED: Final = frozenset({Op.DELIVER, Op.CALLBACK})
_AT_NODE: Final = frozenset({Op.RCV, Op.DELIVER})
_ENTERED: Final = frozenset({Op.RCV, Op.SUBMIT})
_MINIBUS: Final = "minibus"
_BUS: Final = "bus"
_STUB: Final = "stub"
_NO_STUB: Final = "none"
"""What crosses a node's link itself, crosses no stub."""
_OBJECTS: Final = "sm"
"""The part of a runtime that asks as an object, too."""


@final
@attrs.frozen(kw_only=True)
class Need:
    """One thing that must be seen of a message; all in the scenario's words.

    Attributes:
        ops: What happened to it, one of these.
        who: Name of the process; None: any.
        by: Address of the submitting component.
        actor: Actor that reports it, by its name in the process.
        stub: The stub it crossed; `_NO_STUB`: it crossed none.
        link: The P2P link it crossed.
        listener: Its receiver; an answer may be called back instead.
        reason: Why it was dropped.
        is_beside: Whether it may be seen before the one before it: one of several receivers.
    """

    ops: frozenset[Op]
    who: str | None = None
    by: str | None = None
    actor: str | None = None
    stub: str | None = None
    link: str | None = None
    listener: str | None = None
    reason: str | None = None
    is_beside: bool = False

    def holds(self, seen: Seen, names: Names) -> bool:
        """Return whether this was seen; binds names, so try with a copy.

        Args:
            seen: Observed value.
            names: Values that stand for names of the scenario.
        """
        fact = seen.fact
        return (
            fact.op in self.ops
            and (self.who is None or names.unify(self.who, seen.who))
            and _same(self.by, fact.by, names)
            and _same(self.actor, seen.actor, names)
            and self._is_by_stub(fact, names)
            and (self.link is None or (fact.link is not None and names.bind(self.link, fact.link)))
            and (self.reason is None or fact.reason == self.reason)
            and self._is_for(fact, names)
        )

    def _is_by_stub(self, fact: Fact, names: Names) -> bool:
        return fact.stub is None if self.stub == _NO_STUB else _same(self.stub, fact.stub, names)

    def _is_for(self, fact: Fact, names: Names) -> bool:
        if self.listener is None or fact.op is Op.CALLBACK:
            return True
        return _same(self.listener, fact.listener, names)

    def described(self) -> str:
        """Say what is missing, in a few words."""
        parts = [" or ".join(sorted(self.ops))]
        named = {
            "at": self.who,
            "by": self.by,
            "of": self.actor,
            "stub": self.stub,
            "link": self.link,
        }
        named |= {"to": self.listener, "because": self.reason}
        parts += [f"{name} {value}" for name, value in named.items() if value is not None]
        return " ".join(parts)


def _same(golden: str | None, actual: str | None, names: Names) -> bool:
    if golden is None:
        return True
    if actual is None:
        return False
    prefix, separator, address = golden.partition(":")
    if separator and not address.startswith("//"):
        # A name with a role in front, such as `minibus:<address>`.
        return actual.startswith(f"{prefix}:") and names.unify(
            address, actual.removeprefix(f"{prefix}:")
        )
    return names.unify(golden, actual) if separator else golden == actual


def needs_of(step: MessageStep, places: Places, denied_at: Place | None = None) -> tuple[Need, ...]:
    """List what must be seen of a message, in this order.

    Args:
        step: The message.
        places: The places of its scenario.
        denied_at: The place where a ruling ends its route.
    """
    route = _Route(step, places)
    needs = route.needs()
    if step.control:
        needs = (need for need in needs if not _is_node(need.who))
    elif denied_at is not None:
        needs = _until(needs, places.process(denied_at))
    return (*needs, *route.ending())


def _until(needs: Iterable[Need], process: str | None) -> Iterator[Need]:
    """Yield needs up to the one by which a message comes into a process."""
    for need in needs:
        yield need
        if need.who == process and need.ops & _ENTERED:
            return


def _is_node(process: str | None) -> bool:
    return process is not None and is_backend(process)


@final
@attrs.frozen
class _Leg:
    """One part of a route: from a place to a place."""

    one: Place
    ride: Ride
    link: str | None
    two: Place
    is_last: bool
    is_beside: bool = False


@final
class _Route:
    """The route of one message, leg by leg; what a MiniBUS hands on is seen at its bus."""

    def __init__(self, step: MessageStep, places: Places) -> None:
        self._step = step
        self._places = places
        self._ends_early = step.drop is not None
        self._is_to_come = step.doubled or step.delayed > 0
        self._legs = list(_legs(step))

    def needs(self) -> Iterator[Need]:
        """Yield what must be seen."""
        yield from self._start()
        for leg in self._legs:
            match leg.ride:
                case Ride.WIRE:
                    yield from self._wire(leg)
                case Ride.LINK:
                    yield from self._link(leg)
                case _:
                    yield from self._handed(leg)

    def _start(self) -> Iterator[Need]:
        """Say how it begins: made by a router, or submitted before a route that is sketched."""
        first, step = self._step.hop.first, self._step
        who = self._places.process(first)
        is_made = first.part == _BUS and not step.dup and step.message.is_response
        if step.synthetic or is_made:
            yield Need(ops=frozenset({Op.SYNTH}), who=who)
        ride = self._legs[0].ride if self._legs else Ride.HANDED
        if first == GAP:
            return
        is_sketched = ride is Ride.UNSAID or (ride is Ride.LINK and who is None)
        if is_sketched and first.part != _BUS and not self._places.is_node(first):
            yield Need(ops=frozenset({Op.SUBMIT}), who=who, by=self._by(first))

    def _by(self, place: Place) -> str | None:
        """Return the address under which a place submits the message; None: not said.

        What an object says is shown to come from its reporter; its sync manager sends it.
        """
        sender, message = self._places.sender(place), self._step.message
        if sender is None or place.root == SANDBOX or not is_hyperty(sender):
            return sender
        return sender if is_below(message.from_, sender) else None

    def _wire(self, leg: _Leg) -> Iterator[Need]:
        one, two = leg.one, leg.two
        yield Need(ops=frozenset({Op.XMIT}), who=self._places.process(one), stub=self._stub(one))
        yield from self._disturbed()
        if not (leg.is_last and self._ends_early):
            who, stub = self._places.process(two), self._stub(two)
            yield Need(ops=frozenset({Op.RCV}), who=who, stub=stub)

    def _disturbed(self) -> Iterator[Need]:
        """Yield that it is doubled or delayed, where its route has come to where it can be."""
        if self._is_to_come:
            self._is_to_come = False
            reason = DOUBLED if self._step.doubled else DELAYED
            yield Need(ops=frozenset({Op.XMIT}), reason=reason)

    def _stub(self, place: Place) -> str | None:
        """Return the stub at a place; a node has its own, written `MN.a.stub(b.ex)`."""
        if self._places.is_node(place):
            own = f"{self._places.process(place)}/protostub/{place.note}"
            return own if place.part == _STUB else _NO_STUB
        return None if place.part or place.note else self._places.sender(place)

    def _link(self, leg: _Leg) -> Iterator[Need]:
        for place, op in ((leg.one, Op.XMIT), (leg.two, Op.RCV)):
            who = self._places.process(place)
            stub = None if who is None or place.part else self._places.sender(place)
            yield Need(ops=frozenset({op}), who=who, stub=stub, link=leg.link)
        if leg.is_last and self._places.process(leg.two) is None:
            yield self._arrived(leg.two)
        elif leg.two.part == _BUS:
            yield Need(ops=frozenset({Op.SUBMIT}), who=self._places.process(leg.two))

    def _handed(self, leg: _Leg) -> Iterator[Need]:
        who = self._places.process(leg.two)
        if leg.ride is Ride.UNSAID:
            yield from self._disturbed()
        if self._places.is_node(leg.two):
            yield Need(ops=_AT_NODE, who=who)
        elif leg.two.part == _BUS:
            by = self._by(leg.one) if leg.ride is Ride.HANDED else None
            yield Need(ops=frozenset({Op.SUBMIT}), who=who, by=by)
        elif leg.is_last and not self._ends_early:
            yield attrs.evolve(self._arrived(leg.two), is_beside=leg.is_beside)

    def _arrived(self, place: Place) -> Need:
        who, listener = self._places.process(place), self._places.listener(place)
        ops = _ARRIVED if self._may_be_called_back(place) else frozenset({Op.DELIVER})
        return Need(ops=ops, who=who, listener=listener)

    def _may_be_called_back(self, place: Place) -> bool:
        """Return whether the component of a place may have sent the answered request."""
        asker, to = self._places.sender(place), self._step.message.to
        return asker is None or is_below(to, asker) or (place.part == _OBJECTS and is_object(to))

    def ending(self) -> Iterator[Need]:
        """Yield what must be seen where it ends, other than that it arrives."""
        yield from self._disturbed()
        who = self._places.process(self._step.hop.last[0])
        if self._step.drop is not None:
            by = None if self._step.is_lost else who
            yield Need(ops=frozenset({Op.DROP}), who=by, reason=self._step.drop)
        is_sketched = all(leg.ride is not Ride.LINK for leg in self._legs)
        if self._step.link is not None and is_sketched:
            yield Need(ops=frozenset({Op.XMIT}), link=self._step.link)
        if self._step.queued or self._step.buffered:
            place = self._step.hop.last[0]
            stub = self._stub(place)
            actor = _BUS if stub in {None, _NO_STUB} else f"stub:{stub}"
            yield Need(ops=frozenset({Op.QUEUE}), who=who, actor=actor)


def _legs(step: MessageStep) -> Iterator[_Leg]:
    hop = step.hop
    kept = [
        place
        for place, station in enumerate(hop.stations)
        if station[0].part != _MINIBUS or place == len(hop.stations) - 1
    ]
    for one, two in pairwise(kept):
        carrier = hop.carriers[two - 1]
        first, is_last = hop.stations[one][0], two == kept[-1]
        for number, place in enumerate(hop.stations[two]):
            yield _Leg(first, carrier.ride, carrier.link, place, is_last, is_beside=number > 0)


@final
@attrs.define
class Instance:
    """One message instance: what was seen of it, in order.

    Attributes:
        mid: Its name, the same at every hop.
    """

    mid: str
    seen: list[Seen] = attrs.field(factory=list)

    @property
    def first(self) -> Seen:
        """The first record of the instance."""
        return self.seen[0]

    def message(self, until: int | None = None) -> Message | None:
        """Return it as it was last seen in full, up to a number; None if it never was."""
        whole = [
            one.message
            for one in self.seen
            if one.message is not None and (until is None or one.number <= until)
        ]
        return whole[-1] if whole else None


def follow(
    instance: Instance, needs: Sequence[Need], names: Names, since: int
) -> Match | Need | None:
    """Find all that is needed, one thing behind the other, from a number on.

    Returns the first need that nothing meets; None: nothing is needed, and nothing was seen.

    Binds names; hand in a copy.

    Args:
        instance: The message instance.
        needs: Needed observations, in order.
        names: Values that stand for names of the scenario.
        since: Number of the first observation.
    """
    numbers: list[int] = []
    before = place = since
    for need in needs:
        # Several receivers get a message in any order.
        before = before if need.is_beside else place
        found = _first(instance, need, names, before)
        if found is None:
            return need
        numbers.append(found)
        place = max(place, found) if need.is_beside else found
    if not numbers:
        numbers = [one.number for one in instance.seen if one.number >= since][:1]
    return Match(min(numbers), max(numbers)) if numbers else None


def _first(instance: Instance, need: Need, names: Names, since: int) -> int | None:
    for one in instance.seen:
        trial = names.copy()
        if one.number >= since and need.holds(one, trial):
            names.take(trial)
            return one.number
    return None


_VIA: Final = "via"


@final
class MessageScore:
    """Finds the instances that scripted messages are; one of the script is one of theirs.

    Attributes:
        claimed: Instances by what the scenario calls them.
    """

    def __init__(self, places: Places, names: Names, observer: Observer) -> None:
        self.claimed: dict[str, str] = {}
        self._places = places
        self._names = names
        self._instances: dict[str, Instance] = {}
        self._observer = observer
        self._read = 0

    def read(self) -> None:
        """Take in what was seen since the last time."""
        for seen in self._observer.items[self._read :]:
            mid = seen.fact.mid
            if seen.fact.k is Kind.MSG and mid is not None:
                self._instances.setdefault(mid, Instance(mid)).seen.append(seen)
        self._read = len(self._observer.items)

    def claim(self, step: MessageStep, match: Match) -> None:
        """Say which instance a step's message is, once a candidate was taken.

        Args:
            step: Step of the scenario.
            match: The match.
        """
        for instance in self._instances.values():
            if any(one.number == match.first for one in instance.seen):
                self.claimed[instance_id(step.message)] = instance.mid

    def instance(self, message: Message) -> Instance | None:
        """Return the instance that a scripted message is, if it was seen."""
        mid = self.claimed.get(instance_id(message))
        return None if mid is None else self._instances.get(mid)

    def findings(
        self, step: MessageStep, denied_at: Place | None
    ) -> Iterator[Candidate | NearMiss]:
        """Yield what may be the message, the earliest first.

        Args:
            step: The message.
            denied_at: The place where a ruling ends its route.
        """
        self.read()
        needs = needs_of(step, self._places, denied_at)
        for instance in self._possible(step):
            yield self._finding(step, instance, needs)

    def _possible(self, step: MessageStep) -> Iterator[Instance]:
        known = self.instance(step.message)
        if known is not None:
            yield known
            return
        taken = set(self.claimed.values())
        for instance in self._instances.values():
            fact = instance.first.fact
            is_old = instance.seen[-1].number < self._observer.start
            if fact.type == step.message.type and instance.mid not in taken and not is_old:
                yield instance

    def _finding(
        self, step: MessageStep, instance: Instance, needs: Sequence[Need]
    ) -> Candidate | NearMiss:
        trial = self._names.copy()
        wrong = self._unlike(step.message, instance, trial)
        if wrong is not None:
            return wrong
        route = follow(instance, needs, trial, self._observer.start)
        text = self._shown(instance)
        if not isinstance(route, Match):
            missing = "" if route is None else f" (no {route.described()})"
            return NearMiss(4, f"by another route{missing}: {text}")
        if not self._same_via(step.message, instance.message(route.last), trial):
            return NearMiss(4, f"with another via: {text}")
        return Candidate(route, trial, text)

    def _unlike(self, golden: Message, instance: Instance, trial: Names) -> NearMiss | None:
        """Compare all but the route; None: it is the same."""
        fact = instance.first.fact
        if fact.type != golden.type or not trial.unify(golden.to, fact.to or ""):
            return NearMiss(0, self._shown(instance))
        if not trial.unify(golden.from_, fact.from_ or ""):
            return NearMiss(1, self._shown(instance))
        if (fact.code or 0) != golden.code:
            return NearMiss(3, self._shown(instance))
        sender = golden.to if golden.is_response else golden.from_
        if not trial.unify_id(sender, golden.id, fact.id or 0):
            return NearMiss(2, f"with another id: {self._shown(instance)}")
        message = instance.message()
        if message is not None and not says_the_same(golden, message, trial):
            return NearMiss(3, f"with another body: {self._shown(instance)}")
        return None

    def _same_via(self, golden: Message, seen: Message | None, trial: Names) -> bool:
        if _VIA not in golden.body or seen is None:
            return True
        return Content(trial).holds(list(golden.via), list(seen.via))

    def _shown(self, instance: Instance) -> str:
        message = instance.message()
        if message is None:
            return f"{instance.mid}, not seen in full"
        return show_message(message, self._names)
