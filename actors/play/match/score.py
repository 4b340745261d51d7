"""Whether what was seen is what a scenario tells: one step after the other, and as a whole.

A step is matched by things seen (`score_message`, `score_fact`), each scenario's name
by one of the actors' (`Names`), in an order that keeps the precedence of the steps
(`Order`). What was seen and is not told is allowed, but for what contradicts the
scenario (`contradiction`).
"""

from collections.abc import Iterator
from typing import Final, TypeAlias, assert_never, final

from actors.play.match.contradiction import Played, contradictions
from actors.play.match.difference import Candidate, Difference, NearMiss, show_message, show_step
from actors.play.match.facts import FactScore
from actors.play.match.messages import Instances, MessageScore
from actors.play.match.names import Names
from actors.play.match.observer import Observer
from actors.play.match.order import Match, Order
from actors.play.script.addresses import Places
from actors.play.script.steps import (
    AuthzStep,
    CallStep,
    FaultStep,
    Flag,
    IngestStep,
    MessageStep,
    ResolveStep,
    Scenario,
    StateStep,
    Step,
    TableStep,
    TimeStep,
)
from specs.dialects.normalise import normalise
from specs.errors import BadMessageError

__all__ = ["Score"]

_Expectation: TypeAlias = MessageStep | StateStep | TableStep | ResolveStep | AuthzStep
_ORDER: Final = 5
_SHOWN: Final = 3


@final
class Score:
    """One scenario being played, as far as it was seen.

    Attributes:
        matches: What each step was matched by, by its number.
    """

    def __init__(self, scenario: Scenario, observer: Observer, names: Names) -> None:
        self.matches: dict[int, Match] = {}
        self._scenario = scenario
        self._observer = observer
        self._names = names
        self._order = Order(scenario)
        self._instances = Instances(observer)
        places = Places(scenario.setting)
        self._messages = MessageScore(places, names, self._instances, observer)
        self._facts = FactScore(scenario, places, names, observer)
        self._misses: dict[int, list[NearMiss]] = {}
        self._faults: dict[int, int] = {}

    def passed(self, step: Step) -> None:
        """Note that a fault, a call or time came now; other steps must be seen."""
        now = len(self._observer.items) - 1
        if self._scenario.breaks(step):
            self._faults[step.number] = now
        if isinstance(step, FaultStep | TimeStep | CallStep):
            self.matches[step.number] = Match(now, now)

    def seek(self, step: Step) -> bool:
        """Look for a step among all that was seen; tell whether it is there."""
        match step:
            case IngestStep():
                return self._is_read(step)
            case TimeStep() | FaultStep() | CallStep():
                return True
            case _:
                return self._seek(step)

    def _is_read(self, step: IngestStep) -> bool:
        """Read a message as a peer wrote it."""
        try:
            message = normalise(step.raw)
        except BadMessageError as error:
            self._misses[step.number] = [NearMiss(0, str(error))]
            return False
        self._misses[step.number] = [NearMiss(0, f"it is read as {show_message(message)}")]
        return message == step.normal

    def _seek(self, step: _Expectation) -> bool:
        misses: list[NearMiss] = []
        for finding in self._findings(step):
            if isinstance(finding, NearMiss):
                misses.append(finding)
                continue
            if finding.match.first <= self._last_fault(step.number):
                misses.append(NearMiss(_ORDER, f"before the fault: {finding.told}"))
                continue
            other = self._order.conflict(step.number, finding.match, self.matches)
            if other is None:
                self._take(step, finding)
                return True
            told = f": {finding.told}" if finding.told else ""
            misses.append(NearMiss(_ORDER, f"on the wrong side of step {other}{told}"))
        self._misses[step.number] = misses
        return False

    def _last_fault(self, number: int) -> int:
        """Return how much had been seen when the last fault before a step happened."""
        return max((seen for at, seen in self._faults.items() if at <= number), default=-1)

    def _findings(self, step: _Expectation) -> Iterator[Candidate | NearMiss]:
        match step:
            case MessageStep():
                return self._messages.findings(step, self._scenario.denied_at(step.number))
            case StateStep():
                return self._facts.states(step)
            case TableStep():
                return self._facts.rows(step)
            case ResolveStep():
                return self._facts.routes(step)
            case AuthzStep():
                return self._facts.rulings(step, self._ruled(step))
            case _:
                assert_never(step)

    def _ruled(self, step: AuthzStep) -> str | None:
        ruled = self._scenario.step(step.ref)
        instance = (
            self._messages.instance(ruled.message) if isinstance(ruled, MessageStep) else None
        )
        return None if instance is None else instance.mid

    def _take(self, step: _Expectation, candidate: Candidate) -> None:
        self._names.take(candidate.names)
        self.matches[step.number] = candidate.match
        if isinstance(step, MessageStep):
            self._messages.claim(step, candidate.match)
        elif isinstance(step, StateStep):
            self._facts.bind(step, candidate)

    # ---- differences

    def difference(self, step: Step) -> Difference:
        """Say what was seen instead of a step that was not found."""
        nearest = sorted(self._misses.get(step.number, ()), key=lambda miss: -miss.likeness)
        told = tuple(dict.fromkeys([*_said_of(step), *(miss.told for miss in nearest)]))
        return Difference(step.number, show_step(step), told[:_SHOWN])

    def contradiction(self) -> Difference | None:
        """Find the first thing seen that the scenario rules out, though it does not tell it."""
        self._instances.read()
        played = Played(
            scenario=self._scenario,
            observer=self._observer,
            names=self._names,
            matches=self.matches,
            claimed=self._messages.claimed,
            entities=self._facts.entities,
            instances=self._instances,
        )
        return next(contradictions(played), None)


def _said_of(step: Step) -> Iterator[str]:
    """Yield what there is to say of any step of its kind that was not found."""
    if isinstance(step, MessageStep) and step.is_disturbed:
        what = "lost" if step.is_lost else "doubled" if Flag.DOUBLED in step.flags else "delayed"
        yield (
            f"no such message went between a runtime and a message node, so none was {what}: "
            "let its way go by ~wire~, or leave out hops (..)"
        )
