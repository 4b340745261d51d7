"""The explorer: every state that a composition can reach, nearest first.

Breadth first, so the first run found to a state is a shortest one. Looked for are

* `UNSPECIFIED`: a message, a deadline or an event for which a table has no row in the state
  that its machine is in (safety of reception);
* `UNSAFE`: a state that the composition says must never be, or a step that its host says so of;
* `DEADLOCK`: nothing goes on by itself, and it is none of the composition's ends;
* `LIVELOCK`: things go on for ever, and no end can be reached any more, even if nothing is
  lost from now on. Where an end stays reachable, a fair run reaches it.

What goes on by itself is a delivery, a deadline, an event without a budget; what does not is a
fault or a request. A step that waits for space in a network does not go on by itself.
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
    """One step.

    Attributes:
        place: Where it was taken.
        input: The message, or what a place takes at an event; None: a deadline is over.
        what: The same in words.
        channel: Which channel the message came by; empty: it is no message.
        event: Number of the event in the composition; None: it is none.
        moved: The machines' steps, in order.
        sent: In order.
        refused: What was not taken and why; empty: it was taken.
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
        """The step as a line for people."""
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
    """A run from the beginning.

    Attributes:
        steps: In order.
        refused: What happens then and is not taken; None: nothing of that kind.
        under_way: Messages in the channels at the end, the next one first.
    """

    steps: tuple[Taken, ...]
    refused: Taken | None
    under_way: Mapping[str, tuple[Call, ...]]

    def last(self) -> Iterator[tuple[str, Step]]:
        """The last step of each machine, with its place."""
        found: dict[tuple[str, str, str], Step] = {}
        for taken in self.steps:
            found |= {(taken.place, each.machine, each.key): each for each in taken.moved}
        yield from ((place, step) for (place, _, _), step in found.items())


def _take_step(steps: Steps, state: State, step: Next | Refusal) -> Taken:
    """Return what a step does in a state, or what is refused there.

    Args:
        steps: The steps of the composition.
        state: The state.
        step: The step.
    """
    kind, about, _ = step[:3]
    place, reaction = steps.reaction(state, step)
    taken, whole = steps.input(step), steps.composition
    is_event = kind in {Kind.LOCAL, Kind.REQUEST}
    is_time = kind in {Kind.DEADLINE, Kind.EARLY}
    if is_time:
        what = f"a deadline of {place} is over"
    else:
        what = whole.events[about].name if is_event else str(taken)
    return Taken(
        kind=kind,
        place=place,
        input=taken,
        what=what,
        channel="" if is_event or is_time else whole.channels[about].name,
        event=about if is_event else None,
        moved=reaction.moved,
        sent=steps.messages_of(reaction),
        refused=reaction.undeclared or reaction.broken,
    )


# --- the exploration --------------------------------------------------------------------


MAX_STATES: Final = 2_000_000
"""States after which an exploration stops: about a gigabyte."""


class Fault(StrEnum):
    """The kinds of faults."""

    UNSPECIFIED = "unspecified-reception"
    UNSAFE = "unsafe"
    DEADLOCK = "deadlock"
    LIVELOCK = "livelock"


@attrs.frozen(slots=True)
class Finding:
    """Something wrong, with a shortest run to it.

    Attributes:
        subject: What it is about, as half a sentence.
        times: In how many states it is so.
    """

    fault: Fault
    subject: str
    times: int
    run: Run


@attrs.frozen(slots=True, kw_only=True)
class Exploration:
    """The result of an exploration.

    Attributes:
        states: How many it reaches.
        transitions: How many steps lead from one to another, with their doubles.
        depth: Steps of the longest of all shortest runs.
        ends: How many states are ends.
        held_back: How many steps waited for space in a network.
        reactions: How often real cores were asked what they do.
        is_complete: Whether all was explored; if not, what was not found proves nothing.
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
        """True if everything was explored and nothing is wrong."""
        return self.is_complete and not self.findings


def explore(
    composition: Composition,
    max_states: int = MAX_STATES,
    until: Collection[Fault] = (),
    advance: Callable[[int, int], None] | None = None,
) -> Exploration:
    """Explore a composition.

    Args:
        composition: What is explored.
        max_states: Number of states after which the search is given up.
        until: Faults of which the first one found ends the search.
        advance: Is called now and then with how many states were explored, and how many are known.

    Raises:
        SpecError: Its data contradict each other.
    """
    search = _Search(composition, max_states)
    search.go(frozenset(until), advance)
    return search.result()


class _Properties:
    """Properties of states: each is looked at once for what its places are."""

    def __init__(self, steps: Steps, properties: Sequence[Condition]) -> None:
        self._steps = steps
        self._seen: list[tuple[Condition, Callable[[State], Hashable], dict[Hashable, bool]]] = [
            (claim, steps.numbers(claim.places), {}) for claim in properties
        ]

    def holding(self, state: State) -> Iterator[Condition]:
        """Those that hold in a state."""
        for claim, numbers, seen in self._seen:
            key = numbers(state)
            known = seen.get(key)
            if known is None:
                known = claim.holds(*self._steps.hosts(state, claim.places))
                seen[key] = known
            if known:
                yield claim


_TOLD: Final = 1000
"""States after which the progress is told again."""


class _Search:
    """One exploration."""

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
        """Explore all there is, or until there is too much, or one of these faults is found."""
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
        good = self._backwards([*self._ends, *self._rests])
        for number in range(len(self._states)):
            if not good[number]:
                self._add(Fault.LIVELOCK, "", number)

    def _enter_all(self, steps: Sequence[Next], number: int) -> bool:
        """Enter the states after `number`; False: there are too many."""
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
        """Return the number of a new state."""
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

    def _counts(self, claim: Condition, state: State) -> bool:
        return claim.faults is None or claim.faults is not self._steps.is_clean(state)

    def _backwards(self, goals: Iterable[int]) -> bytearray:
        """Return the states from which fair steps alone lead to one of `goals`."""
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
        """The result."""
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
        last = None if refusal is None else _take_step(self._steps, state, refusal)
        path = tuple(_take_step(self._steps, *taken) for taken in self._path(number))
        return Run(path, last, self._steps.under_way(state))

    def _path(self, number: int) -> Sequence[tuple[State, Next]]:
        path: list[tuple[State, Next]] = []
        while (parent := self._parents[number]) >= 0:
            before, state = self._states[parent], self._states[number]
            steps, _ = self._steps.of(before)
            path.append((before, next(step for step in steps if step[3] == state)))
            number = parent
        return path[::-1]
