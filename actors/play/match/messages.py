"""Which message instances can be a scenario's message, and the ways they went."""

from collections.abc import Iterator, Sequence
from typing import Final, final

import attrs

from actors.play.match.content import Content, says_the_same
from actors.play.match.difference import Candidate, NearMiss, show_message
from actors.play.match.evidence import Need, needs_of
from actors.play.match.names import Names
from actors.play.match.observer import Observer, Seen
from actors.play.match.order import Match
from actors.play.script.addresses import Places
from actors.play.script.hop import Place
from actors.play.script.steps import MessageStep
from specs.message import Message, instance_id
from specs.trace import Kind

__all__ = ["Instance", "Instances", "MessageScore"]


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
        """What was seen of it first."""
        return self.seen[0]

    def message(self, until: int | None = None) -> Message | None:
        """Return it as it was last seen in full, up to a number; None if it never was."""
        whole = [
            one.message
            for one in self.seen
            if one.message is not None and (until is None or one.number <= until)
        ]
        return whole[-1] if whole else None


@final
class Instances:
    """All message instances that an observer has seen, kept up to date by `read`."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._read = 0
        self._known: dict[str, Instance] = {}

    def read(self) -> None:
        """Take in what was seen since the last time."""
        for seen in self._observer.items[self._read :]:
            mid = seen.fact.mid
            if seen.fact.k is Kind.MSG and mid is not None:
                self._known.setdefault(mid, Instance(mid)).seen.append(seen)
        self._read = len(self._observer.items)

    def find(self, mid: str) -> Instance | None:
        """Find an instance."""
        return self._known.get(mid)

    def __iter__(self) -> Iterator[Instance]:
        return iter(list(self._known.values()))


@final
@attrs.frozen
class Way:
    """How far an instance went as it should.

    Attributes:
        match: The things seen, if all is there.
        missing: What is not there.
    """

    match: Match | None
    missing: Need | None = None


def follow(instance: Instance, needs: Sequence[Need], names: Names, since: int) -> Way:
    """Find all that is needed, one thing behind the other, from a number on.

    Binds names; hand in a copy.
    """
    numbers: list[int] = []
    before = place = since
    for need in needs:
        # Several who get a message get it in any order.
        before = before if need.is_beside else place
        found = _first(instance, need, names, before)
        if found is None:
            return Way(None, need)
        numbers.append(found)
        place = max(place, found) if need.is_beside else found
    if not numbers:
        numbers = [one.number for one in instance.seen if one.number >= since][:1]
    return Way(Match(min(numbers), max(numbers))) if numbers else Way(None)


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

    def __init__(
        self, places: Places, names: Names, instances: Instances, observer: Observer
    ) -> None:
        self.claimed: dict[str, str] = {}
        self._places = places
        self._names = names
        self._instances = instances
        self._observer = observer

    def claim(self, step: MessageStep, match: Match) -> None:
        """Say which instance a step's message is, once a candidate was taken."""
        for instance in self._instances:
            if any(one.number == match.first for one in instance.seen):
                self.claimed[instance_id(step.message)] = instance.mid

    def instance(self, message: Message) -> Instance | None:
        """Return the instance that a scripted message is, if it was seen."""
        mid = self.claimed.get(instance_id(message))
        return None if mid is None else self._instances.find(mid)

    def findings(
        self, step: MessageStep, denied_at: Place | None
    ) -> Iterator[Candidate | NearMiss]:
        """Yield what may be the message, the earliest first.

        Args:
            step: The message.
            denied_at: Where a ruling ends its way.
        """
        self._instances.read()
        needs = needs_of(step, self._places, denied_at)
        for instance in self._possible(step):
            yield self._finding(step, instance, needs)

    def _possible(self, step: MessageStep) -> Iterator[Instance]:
        known = self.instance(step.message)
        if known is not None:
            yield known
            return
        taken = set(self.claimed.values())
        for instance in self._instances:
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
        way = follow(instance, needs, trial, self._observer.start)
        told = self._told(instance)
        if way.match is None:
            missing = "" if way.missing is None else f" (no {way.missing.told()})"
            return NearMiss(4, f"by another way{missing}: {told}")
        if not self._same_via(step.message, instance.message(way.match.last), trial):
            return NearMiss(4, f"with another via: {told}")
        return Candidate(way.match, trial, told)

    def _unlike(self, golden: Message, instance: Instance, trial: Names) -> NearMiss | None:
        """Compare all but the way; None: it is the same."""
        fact = instance.first.fact
        if fact.type != golden.type or not trial.unify(golden.to, fact.to or ""):
            return NearMiss(0, self._told(instance))
        if not trial.unify(golden.from_, fact.from_ or ""):
            return NearMiss(1, self._told(instance))
        if (fact.code or 0) != golden.code:
            return NearMiss(3, self._told(instance))
        sender = golden.to if golden.is_response else golden.from_
        if not trial.unify_id(sender, golden.id, fact.id or 0):
            return NearMiss(2, f"with another id: {self._told(instance)}")
        message = instance.message()
        if message is not None and not says_the_same(golden, message, trial):
            return NearMiss(3, f"with another body: {self._told(instance)}")
        return None

    def _same_via(self, golden: Message, seen: Message | None, trial: Names) -> bool:
        if _VIA not in golden.body or seen is None:
            return True
        return Content(trial).holds(list(golden.via), list(seen.via))

    def _told(self, instance: Instance) -> str:
        message = instance.message()
        if message is None:
            return f"{instance.mid}, not seen in full"
        return show_message(message, self._names)
