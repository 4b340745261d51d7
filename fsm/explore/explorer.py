"""Explorer: visits every state that a composition can reach, nearest first, and reports faults.

The search is breadth first, so the first run found to a state is a shortest one. It finds

* `UNSPECIFIED`: a message, a deadline or an event for which a table has no row in the state
  of its machine;
* `UNSAFE`: a state that the composition declares as forbidden, or a step that its host forbids;
* `DEADLOCK`: a state that no step leaves by itself, and that is no permitted end;
* `LIVELOCK`: a state from which steps continue for ever, and no permitted end can be reached,
  even if nothing is lost from now on. If an end stays reachable, a fair run reaches it.

Steps that happen by themselves are deliveries, deadlines and events without a budget; other steps
are faults and requests. A step that waits for room in a network does not happen by itself.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

import attrs

from fsm.engine import Step
from fsm.explore.composition import Call, Composition, Condition, Sent
from fsm.explore.steps import FAIR, Kind, Next, Refusal, State, Steps
from specs.trace import ABSENT


@attrs.frozen(slots=True)
class Taken:
    """Step of a run, with its effects.

    Attributes:
        place: The participant that made the step.
        input: The message, or the input of an event; None: a deadline has passed.
        what: The input in words.
        channel: The channel over which the message came; empty: it is no message.
        event: Index of the event in the composition; None: it is no event.
        moved: The state machine transitions, in order.
        sent: The messages that were sent, in order.
        refused: The refused input and the reason; empty: the step was made.
    """

    kind: Kind
    place: str
    input: Call | None
    what: str
    channel: str = ""
    event: int | None = None
    moved: tuple[Step, ...] = ()
    sent: tuple[Sent, ...] = ()
    refused: str = ""

    @property
    def words(self) -> str:
        """The step as a line of text for people."""
        moved = [
            f"{step.machine} {step.key} {step.old or ABSENT} -> {step.new}" for step in self.moved
        ]
        sent = [f"sends {sent.message}" for sent in self.sent]
        result = ", ".join([*moved, *sent]) or self.refused
        return f"{self._head}: {result}" if result else self._head

    @property
    def _head(self) -> str:
        match self.kind:
            case Kind.LOST:
                return f"{self.what} is lost on {self.channel}"
            case Kind.DELIVERED_AND_KEPT:
                return f"{self.what} comes by {self.channel}, and will once more"
            case Kind.DELIVERED:
                return f"{self.what} comes by {self.channel}"
            case _:
                return self.what


@attrs.frozen(slots=True)
class Run:
    """Sequence of steps from the initial state.

    Attributes:
        steps: The steps, in order.
        refused: The step at the end that is refused; None: no step is refused.
        under_way: The messages in the channels at the end, the next one first.
    """

    steps: tuple[Taken, ...]
    refused: Taken | None
    under_way: Mapping[str, tuple[Call, ...]]

    def last(self) -> Iterator[tuple[str, Step]]:
        """Yield the last transition of each machine, with its participant."""
        latest: dict[tuple[str, str, str], Step] = {}
        for taken in self.steps:
            latest |= {(taken.place, each.machine, each.key): each for each in taken.moved}
        yield from ((place, step) for (place, _, _), step in latest.items())


def _take_step(steps: Steps, state: State, step: Next | Refusal) -> Taken:
    """Return a step from a state with its effects, or with the reason why it is refused.

    Args:
        steps: The steps of the composition.
        state: The state.
        step: The step.
    """
    kind, subject, _ = step[:3]
    place, reaction = steps.reaction(state, step)
    input_, composition = steps.input(step), steps.composition
    is_event = kind in {Kind.LOCAL, Kind.REQUEST}
    is_time = kind in {Kind.DEADLINE, Kind.EARLY}
    if is_time:
        words = f"a deadline of {place} is over"
    else:
        words = composition.events[subject].name if is_event else str(input_)
    return Taken(
        kind=kind,
        place=place,
        input=input_,
        what=words,
        channel="" if is_event or is_time else composition.channels[subject].name,
        event=subject if is_event else None,
        moved=reaction.moved,
        sent=steps.messages_of(reaction),
        refused=reaction.undeclared or reaction.broken,
    )


# --- the exploration --------------------------------------------------------------------


MAX_STATES: Final = 2_000_000
"""Default number of states after which an exploration stops; they need about a gigabyte."""


class Fault(StrEnum):
    """Kind of fault that an exploration can find; see the module."""

    UNSPECIFIED = "unspecified-reception"
    UNSAFE = "unsafe"
    DEADLOCK = "deadlock"
    LIVELOCK = "livelock"


@attrs.frozen(slots=True)
class Finding:
    """Fault that was found, with a shortest run that leads to it.

    Attributes:
        subject: The subject of the fault, as half a sentence.
        times: Number of states with the fault.
    """

    fault: Fault
    subject: str
    times: int
    run: Run


@attrs.frozen(slots=True, kw_only=True)
class Exploration:
    """Result of an exploration: its size and the faults that were found.

    Attributes:
        states: Number of states that were reached.
        transitions: Number of steps from one state to another, including repeated ones.
        depth: Number of steps of the longest of all shortest runs.
        ends: Number of states that are permitted ends.
        held_back: Number of steps that waited for room in a network.
        reactions: Number of times that real cores were called.
        is_complete: Whether all states were explored; if not, the absence of a fault proves
            nothing.
    """

    composition: Composition
    states: int
    transitions: int
    depth: int
    ends: int
    held_back: int
    reactions: int
    is_complete: bool
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """True if all states were explored and no fault was found."""
        return self.is_complete and not self.findings


def explore(
    composition: Composition,
    max_states: int = MAX_STATES,
    until: Collection[Fault] = (),
    advance: Callable[[int, int], None] | None = None,
) -> Exploration:
    """Explore all states of a composition, and return the faults that were found.

    Args:
        composition: The composition.
        max_states: Number of states after which the search is abandoned.
        until: Kinds of faults of which the first one ends the search.
        advance: Called from time to time with the numbers of states that were explored, and that
            are known.

    Raises:
        SpecError: Its data contradict each other.
    """
    search = _Search(composition, max_states)
    search.go(frozenset(until), advance)
    return search.result()


class _Properties:
    """Conditions on states, evaluated once for each combination of the hosts they depend on."""

    def __init__(self, steps: Steps, properties: Sequence[Condition]) -> None:
        self._steps = steps
        self._seen: list[tuple[Condition, Callable[[State], Hashable], dict[Hashable, bool]]] = [
            (claim, steps.numbers(claim.places), {}) for claim in properties
        ]

    def holding(self, state: State) -> Iterator[Condition]:
        """Yield the conditions that hold in a state."""
        for condition, numbers, known_values in self._seen:
            key = numbers(state)
            is_met = known_values.get(key)
            if is_met is None:
                is_met = condition.holds(*self._steps.hosts(state, condition.places))
                known_values[key] = is_met
            if is_met:
                yield condition


_TOLD: Final = 1000
"""Number of states after which the progress is reported again."""


class _Search:
    """Breadth-first search through the states of one composition."""

    def __init__(self, composition: Composition, max_states: int) -> None:
        self._whole = composition
        self._steps = Steps(composition)
        self._max = max_states
        self._states: list[State] = []
        self._numbers: dict[State, int] = {}
        self._parents = array("q")
        self._before: list[list[int]] = []
        self._rests: list[int] = []
        self._ends: list[int] = []
        self._transitions = 0
        self._is_complete = True
        self._troubles: dict[tuple[Fault, str], tuple[int, Refusal | None]] = {}
        self._times: Counter[tuple[Fault, str]] = Counter()
        self._never = _Properties(self._steps, composition.never)
        self._goals = _Properties(self._steps, composition.ends)

    def go(self, until: frozenset[Fault], advance: Callable[[int, int], None] | None) -> None:
        """Explore all states, or stop at the limit or at one of the given faults."""
        self._enter(self._steps.start, -1)
        for number, state in enumerate(self._states):
            if advance is not None and number % _TOLD == 0:
                advance(number, len(self._states))
            steps, refusals = self._steps.of(state)
            is_found = any(fault in until for fault, _ in self._troubles)
            self._is_complete = not is_found and self._enter_all(steps, number)
            if not self._is_complete:
                return
            for refusal in refusals:
                self._refuse(state, refusal, number)
            if self._is_end(state):
                self._ends.append(number)
            elif refusals:
                self._rests.append(number)
            elif not any(step[0] in FAIR for step in steps):
                self._rests.append(number)
                self._add(Fault.DEADLOCK, "", number)
        can_end = self._backwards([*self._ends, *self._rests])
        for number in range(len(self._states)):
            if not can_end[number]:
                self._add(Fault.LIVELOCK, "", number)

    def _enter_all(self, steps: Sequence[Next], number: int) -> bool:
        """Add the states that follow state `number`; return False if the limit is reached."""
        self._transitions += len(steps)
        for kind, _, _, state in steps:
            after = self._numbers.get(state)
            if after is None:
                if len(self._states) >= self._max:
                    return False
                after = self._enter(state, number)
            if kind in FAIR:
                self._before[after].append(number)
        return True

    def _enter(self, state: State, parent: int) -> int:
        """Add a new state, check the forbidden conditions, and return its number."""
        self._numbers[state] = number = len(self._states)
        self._states.append(state)
        self._parents.append(parent)
        self._before.append([])
        for claim in self._never.holding(state):
            if self._counts(claim, state):
                self._add(Fault.UNSAFE, claim.name, number)
        return number

    # --- properties

    def _add(self, fault: Fault, subject: str, state: int, refusal: Refusal | None = None) -> None:
        self._troubles.setdefault((fault, subject), (state, refusal))
        self._times[fault, subject] += 1

    def _refuse(self, state: State, refusal: Refusal, number: int) -> None:
        _, reaction = self._steps.reaction(state, refusal)
        if reaction.broken:
            self._add(Fault.UNSAFE, reaction.broken, number, refusal)
        else:
            last = _take_step(self._steps, state, refusal)
            subject = f"{reaction.undeclared} at {last.what}"
            self._add(Fault.UNSPECIFIED, subject, number, refusal)

    def _is_end(self, state: State) -> bool:
        is_quiet = self._steps.is_quiet(state)
        return is_quiet and any(self._counts(end, state) for end in self._goals.holding(state))

    def _counts(self, condition: Condition, state: State) -> bool:
        return condition.faults is None or condition.faults is not self._steps.is_clean(state)

    def _backwards(self, goals: Iterable[int]) -> bytearray:
        """Return the states from which steps that happen by themselves lead to one of `goals`."""
        reached = bytearray(len(self._states))
        waiting = list(goals)
        while waiting:
            number = waiting.pop()
            if not reached[number]:
                reached[number] = 1
                waiting += self._before[number]
        return reached

    # --- the result ----------------------------------------------------------------------

    def result(self) -> Exploration:
        """Return the result: the counts and the faults found so far."""
        return Exploration(
            composition=self._whole,
            states=len(self._states),
            transitions=self._transitions,
            depth=len(self._path(len(self._states) - 1)),
            ends=len(self._ends),
            held_back=self._steps.held_back,
            reactions=self._steps.reactions,
            is_complete=self._is_complete,
            findings=tuple(self._findings()),
        )

    def _findings(self) -> Iterator[Finding]:
        for (fault, subject), (state, refusal) in self._troubles.items():
            times = self._times[fault, subject]
            yield Finding(fault, subject, times, self._run(state, refusal))

    def _run(self, number: int, refusal: Refusal | None) -> Run:
        state = self._states[number]
        refused = None if refusal is None else _take_step(self._steps, state, refusal)
        path = tuple(_take_step(self._steps, *taken) for taken in self._path(number))
        return Run(path, refused, self._steps.under_way(state))

    def _path(self, number: int) -> Sequence[tuple[State, Next]]:
        path: list[tuple[State, Next]] = []
        while (parent := self._parents[number]) >= 0:
            state_before, state = self._states[parent], self._states[number]
            steps, _ = self._steps.of(state_before)
            path.append((state_before, next(step for step in steps if step[3] == state)))
            number = parent
        return path[::-1]
