"""Message instances among the things seen, and the ways they went."""

from collections.abc import Iterator, Sequence
from typing import final

import attrs

from actors.play.evidence import Need
from actors.play.names import Names
from actors.play.observer import Observer, Seen
from actors.play.order import Match
from specs.message import Message
from specs.trace import Kind

__all__ = ["Instance", "Instances", "Way", "follow"]


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
