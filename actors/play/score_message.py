"""Which message instances can be a scenario's message."""

from collections.abc import Iterator, Sequence
from typing import Final, final

from actors.play.content import Content, says_the_same
from actors.play.difference import Candidate, NearMiss, show_message
from actors.play.evidence import Need, needs_of
from actors.play.hop import Place
from actors.play.instances import Instance, Instances, follow
from actors.play.names import Names
from actors.play.observer import Observer
from actors.play.order import Match
from actors.play.places import Places
from actors.play.script import MessageStep
from specs.message import Message, instance_id

__all__ = ["MessageScore"]

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
