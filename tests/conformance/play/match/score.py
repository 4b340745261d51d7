"""The comparison of a run with a scenario: one step after the other, and as a whole.

A step is matched by trace records (`score_message`, `score_fact`), each name of the scenario
by one of the actors' names (`Names`), in an order that keeps the precedence of the steps
(`Order`). Records that match no step are allowed, except contradictions. From the first step
of the scenario to its last, these are contradictions (`contradiction`):

- a step that no table declares, of any entity;
- a step of an entity that the scenario follows, after the first of its steps in the scenario:
  all later ones are listed, up to the scenario's end; the contradiction is reported at the
  last listed step of the entity, or at a later fault or pause;
- a second final answer to one request, unless the first is lost;
- a drop of a message that is listed without a drop or denial; a second copy may be dropped,
  and so may a creator's message about a child where it comes back to its creator;
- an answer to a message that is listed as an event;
- a delivery of a message to a receiver that `deliver_to` does not name; nor may a receiver
  that it names have got nothing.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias, assert_never, final

from specs.child import parent_of
from specs.dialects.normalise import normalise
from specs.errors import BadMessageError
from specs.message import instance_id
from specs.reply_code import FIRST_FINAL, DropReason
from specs.trace import Kind, Op
from tests.conformance.play.match.difference import (
    Candidate,
    Difference,
    NearMiss,
    show_message,
    show_step,
)
from tests.conformance.play.match.evidence import Instance, MessageScore
from tests.conformance.play.match.facts import FactScore, moves
from tests.conformance.play.match.names import Names
from tests.conformance.play.match.observer import Observer, Seen
from tests.conformance.play.match.order import Match, Order
from tests.conformance.play.script.addresses import Places
from tests.conformance.play.script.steps import (
    LOST,
    AuthzStep,
    CallStep,
    FaultStep,
    IngestStep,
    MessageStep,
    ResolveStep,
    Scenario,
    StateStep,
    Step,
    TableStep,
    TimeStep,
)

_GIVEN: Final = frozenset({Op.CALLBACK, Op.DELIVER})
_BUS: Final = "bus"


def _contradictions(played: "Score") -> Iterator[Difference]:
    """Yield what speaks against a scenario."""
    yield from _undeclared(played)
    yield from _missing_steps(played)
    yield from _second_answers(played)
    for step in played.scenario.steps:
        if isinstance(step, MessageStep) and step.number in played.matches:
            instance = played.messages.instance(step.message)
            if instance is not None:
                yield from _answers(played, step, instance)
                yield from _drops(played, step, instance)
                yield from _strays(played, step, instance)


def _undeclared(played: "Score") -> Iterator[Difference]:
    for seen in played.items:
        fact = seen.fact
        if fact.k is Kind.STATE and fact.op is Op.REFUSED:
            text = f"{fact.machine}({fact.key}): {fact.cause} in {fact.old} is not declared"
            yield played.ruled_out(played.step_before(seen.number), text)


def _missing_steps(played: "Score") -> Iterator[Difference]:
    """Yield steps that the scenario lacks, the first seen first."""
    for _, difference in sorted(_missing(played), key=lambda found: found[0]):
        yield difference


def _missing(played: "Score") -> Iterator[tuple[int, Difference]]:
    for (machine, *key), actual in played.facts.entities.items():
        mine = [
            step
            for step in played.scenario.steps
            if isinstance(step, StateStep) and (step.machine, *step.key) == (machine, *key)
        ]
        spans = [played.matches[one.number] for one in mine if one.number in played.matches]
        if not spans:
            continue
        begun = min(span.first for span in spans)
        ended = played.end
        for move in moves(played.items, machine):
            is_expected = any(span.first <= move.number <= span.last for span in spans)
            if move.key == actual and begun < move.number < ended and not is_expected:
                before = [step for step in mine if played.matches[step.number].last < move.number]
                text = f"{machine}({'|'.join(key)}): {move.old} -> {move.new}"
                number = max(before[-1].number if before else 0, played.fence_before(move.number))
                yield move.number, played.ruled_out(number, text)


def _second_answers(played: "Score") -> Iterator[Difference]:
    """Yield answers given to the requester although a final one was given before."""
    lost = {seen.fact.mid for seen in played.items if seen.fact.reason == LOST}
    known: dict[str, tuple[str, int]] = {}
    numbers = {actual: golden for golden, actual in played.messages.claimed.items()}
    for seen in played.items:
        fact = seen.fact
        is_final = fact.k is Kind.MSG and (fact.code or 0) >= FIRST_FINAL
        if not is_final or fact.op not in _GIVEN or fact.ref is None or fact.mid is None:
            continue
        if fact.mid in lost:
            continue
        mid, number = known.setdefault(fact.ref, (fact.mid, seen.number))
        if mid != fact.mid and mid in numbers:
            text = (
                f"a second final answer: {fact.code} from {played.names.golden(fact.from_ or '')}"
            )
            yield played.ruled_out(_step_of(played, numbers[mid], number), text)


def _answers(played: "Score", step: MessageStep, instance: Instance) -> Iterator[Difference]:
    """Yield answers to events of the scenario, unless the scenario has them, too."""
    if not step.event:
        return
    known = set(played.messages.claimed.values())
    for seen in played.items:
        fact = seen.fact
        if fact.ref == instance.mid and fact.op in _GIVEN and fact.mid not in known:
            yield played.ruled_out(step.number, f"it was answered: {fact.code}")


def _step_of(played: "Score", golden: str, number: int) -> int:
    steps = [
        step.number
        for step in played.scenario.steps
        if isinstance(step, MessageStep) and instance_id(step.message) == golden
    ]
    return steps[-1] if steps else played.step_before(number)


def _drops(played: "Score", step: MessageStep, instance: Instance) -> Iterator[Difference]:
    same = [
        one
        for one in played.scenario.steps
        if isinstance(one, MessageStep) and instance_id(one.message) == instance_id(step.message)
    ]
    is_expected = any(
        one.drop is not None
        or one.deliver_to is not None
        or played.scenario.denied_at(one.number) is not None
        for one in same
    )
    for seen in instance.seen:
        fact = seen.fact
        if fact.op is not Op.DROP or is_expected:
            continue
        if fact.reason != DropReason.DUPLICATE and not _is_echo(instance, seen):
            yield played.ruled_out(step.number, f"it was dropped: {fact.reason}")


def _is_echo(instance: Instance, seen: Seen) -> bool:
    """Return whether it is what a creator said of its child, come back to its runtime (C-85)."""
    is_of_child = parent_of(seen.fact.to or "") is not None
    is_home = seen.who == instance.first.who
    return is_of_child and is_home and seen.fact.reason == DropReason.LOOP


def _strays(played: "Score", step: MessageStep, instance: Instance) -> Iterator[Difference]:
    """Yield receivers not as the scenario names them, stubs that pass it on aside."""
    if step.deliver_to is None:
        return
    relays = {f"minibus:{seen.fact.stub}" for seen in instance.seen if seen.fact.op is Op.XMIT}
    given = {
        seen.fact.listener
        for seen in instance.seen
        if seen.fact.op is Op.DELIVER and seen.actor == _BUS and seen.who in _runtimes(played)
    }
    listeners = sorted(one for one in given - relays if one is not None)
    receivers = [played.names.golden(one.removeprefix("minibus:")) for one in listeners]
    for receiver in receivers:
        if receiver not in step.deliver_to:
            yield played.ruled_out(step.number, f"it was delivered to {receiver}")
    for missed in step.deliver_to:
        if missed not in receivers:
            yield played.ruled_out(step.number, f"it was not delivered to {missed}")


def _runtimes(played: "Score") -> set[str]:
    return {one for one in played.observer.processes if not one.startswith("domain://")}


_Expectation: TypeAlias = MessageStep | StateStep | TableStep | ResolveStep | AuthzStep
_ORDER: Final = 5
_SHOWN: Final = 3


@final
class Score:
    """One scenario being played, as far as it was seen.

    Attributes:
        matches: What each step was matched by, by its number.
        scenario: The scenario.
        observer: What was seen.
        names: What the names of the scenario stand for.
        messages: The messages of the scenario.
        facts: Its entities, rows, routes and rulings.
    """

    def __init__(self, scenario: Scenario, observer: Observer, names: Names) -> None:
        self.matches: dict[int, Match] = {}
        self.scenario = scenario
        self.observer = observer
        self.names = names
        self._order = Order(scenario)
        places = Places(scenario.setting)
        self.messages = MessageScore(places, names, observer)
        self.facts = FactScore(scenario, places, names, observer)
        self._misses: dict[int, list[NearMiss]] = {}
        self._faults: dict[int, int] = {}

    def passed(self, step: Step) -> None:
        """Note that a fault, a call or time came now; other steps must be seen."""
        now = len(self.observer.items) - 1
        if self.scenario.breaks(step):
            self._faults[step.number] = now
        if isinstance(step, FaultStep | TimeStep | CallStep):
            self.matches[step.number] = Match(now, now)

    def seek(self, step: Step) -> bool:
        """Look for a step among all that was seen; return whether it is there."""
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
                misses.append(NearMiss(_ORDER, f"before the fault: {finding.text}"))
                continue
            other = self._order.conflict(step.number, finding.match, self.matches)
            if other is None:
                self._take(step, finding)
                return True
            text = f": {finding.text}" if finding.text else ""
            misses.append(NearMiss(_ORDER, f"on the wrong side of step {other}{text}"))
        self._misses[step.number] = misses
        return False

    def _last_fault(self, number: int) -> int:
        """Return how much had been seen when the last fault before a step happened."""
        return max((seen for at, seen in self._faults.items() if at <= number), default=-1)

    def _findings(self, step: _Expectation) -> Iterator[Candidate | NearMiss]:
        match step:
            case MessageStep():
                return self.messages.findings(step, self.scenario.denied_at(step.number))
            case StateStep():
                return self.facts.states(step)
            case TableStep():
                return self.facts.rows(step)
            case ResolveStep():
                return self.facts.routes(step)
            case AuthzStep():
                return self.facts.rulings(step, self._ruled(step))
            case _:
                assert_never(step)

    def _ruled(self, step: AuthzStep) -> str | None:
        ruled = self.scenario.step(step.ref)
        instance = self.messages.instance(ruled.message) if isinstance(ruled, MessageStep) else None
        return None if instance is None else instance.mid

    def _take(self, step: _Expectation, candidate: Candidate) -> None:
        self.names.take(candidate.names)
        self.matches[step.number] = candidate.match
        if isinstance(step, MessageStep):
            self.messages.claim(step, candidate.match)
        elif isinstance(step, StateStep):
            self.facts.bind(step, candidate)

    # ---- contradictions

    @property
    def items(self) -> list[Seen]:
        """The records that belong to the scenario."""
        return self.observer.items[self.observer.start :]

    def ruled_out(self, number: int, seen: str) -> Difference:
        """Return the difference that an unexpected event makes.

        Args:
            number: Number of the step.
            seen: Observed event, in words.
        """
        step = self.scenario.step(number)
        text = "nothing of the kind" if step is None else f"after {show_step(step)}: nothing else"
        return Difference(number, text, (seen,))

    @property
    def end(self) -> int:
        """Number of the thing seen with which the scenario ends; time lasts to its end."""
        if isinstance(self.scenario.steps[-1], TimeStep):
            return len(self.observer.items)
        return max(match.last for match in self.matches.values())

    def fence_before(self, number: int) -> int:
        """Return the time or fault that came last before something; 0 if none did."""
        fences = [one for one in self.scenario.steps if isinstance(one, FaultStep | TimeStep)]
        known = (one.number for one in fences if one.number in self.matches)
        return max((one for one in known if self.matches[one].last < number), default=0)

    def step_before(self, number: int) -> int:
        """Return the step that was seen last before something; 0 if none was."""
        known = [(match.last, step) for step, match in self.matches.items() if match.last <= number]
        return max(known, default=(0, 0))[1]

    # ---- differences

    def difference(self, step: Step) -> Difference:
        """Say what was seen instead of a step that was not found."""
        nearest = sorted(self._misses.get(step.number, ()), key=lambda miss: -miss.likeness)
        shown = tuple(dict.fromkeys([*_said_of(step), *(miss.text for miss in nearest)]))
        return Difference(step.number, show_step(step), shown[:_SHOWN])

    def contradiction(self) -> Difference | None:
        """Find the first thing seen that the scenario rules out, though it does not have it."""
        self.messages.read()
        return next(_contradictions(self), None)


def _said_of(step: Step) -> Iterator[str]:
    """Yield what there is to say of any step of its kind that was not found."""
    if isinstance(step, MessageStep) and step.is_disturbed:
        what = "lost" if step.is_lost else "doubled" if step.doubled else "delayed"
        yield (
            f"no such message went between a runtime and a message node, so none was {what}: "
            "let its route go by ~wire~, or leave out hops (..)"
        )
