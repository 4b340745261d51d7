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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum, unique
from typing import Final, TypeAlias, final

import attrs

from fsm.engine import Step
from fsm.product.composition import Call, Composition, End, Never, Sent
from fsm.product.steps import FAIR, Kind, Next, Refusal, State, Steps
from specs.trace import ABSENT


@final
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
        moved = [f"{one.machine} {one.key} {one.old or ABSENT} -> {one.new}" for one in self.moved]
        sent = [f"sends {one.message}" for one in self.sent]
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


@final
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
        for one in self.steps:
            found |= {(one.place, each.machine, each.key): each for each in one.moved}
        yield from ((place, step) for (place, _, _), step in found.items())


def _run_of(steps: Steps, path: Sequence[tuple[State, Next]]) -> tuple[Taken, ...]:
    """Return the run that a path of steps is.

    Args:
        steps: The steps of the composition.
        path: Each step, with the state before it.
    """
    return tuple(_taken(steps, state, step) for state, step in path)


def _taken(steps: Steps, state: State, step: Next | Refusal) -> Taken:
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
        sent=steps.sent(reaction),
        refused=reaction.undeclared or reaction.broken,
    )


# --- the exploration --------------------------------------------------------------------


MAX_STATES: Final = 2_000_000
"""States after which an exploration stops: about a gigabyte."""


@unique
class Fault(StrEnum):
    """The kinds of faults."""

    UNSPECIFIED = "unspecified-reception"
    UNSAFE = "unsafe"
    DEADLOCK = "deadlock"
    LIVELOCK = "livelock"


@final
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


@final
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


@final
class _Troubles:
    """The faults, each kind and subject once, where it was found first."""

    def __init__(self) -> None:
        self.first: dict[tuple[Fault, str], tuple[int, Refusal | None]] = {}
        self.times: dict[tuple[Fault, str], int] = {}
        self.faults: set[Fault] = set()

    def add(self, fault: Fault, subject: str, state: int, refusal: Refusal | None = None) -> None:
        """Note that it is so in a state."""
        key = fault, subject
        self.faults.add(fault)
        self.first.setdefault(key, (state, refusal))
        self.times[key] = self.times.get(key, 0) + 1


_Seen: TypeAlias = dict[tuple[int, ...], bool]


@final
class _Looks:
    """Properties of states: each is looked at once for what its places are."""

    def __init__(self, steps: Steps, properties: Sequence[Never | End]) -> None:
        self._steps = steps
        self._seen: list[tuple[Never | End, _Seen]] = [(one, {}) for one in properties]

    def holding(self, state: State) -> Iterator[Never | End]:
        """Those that hold in a state."""
        for one, seen in self._seen:
            key = self._steps.numbers(state, one.places)
            known = seen.get(key)
            if known is None:
                known = one.holds(*self._steps.hosts(state, one.places))
                seen[key] = known
            if known:
                yield one


_TOLD: Final = 1000
"""States after which the progress is told again."""


@final
class _Search:
    """One exploration."""

    def __init__(self, composition: Composition, max_states: int) -> None:
        self._whole = composition
        self._steps = Steps(composition)
        self._max = max_states
        start = self._steps.start
        self._states: list[State] = [start]
        self._numbers: dict[State, int] = {start: 0}
        self._parents = array("q", [-1])
        self._fair = array("q")
        self._fair_from = array("q", [0])
        self._rests: list[int] = []
        self._ends: list[int] = []
        self._transitions = 0
        self._is_complete = True
        self._troubles = _Troubles()
        self._never = _Looks(self._steps, composition.never)
        self._goals = _Looks(self._steps, composition.ends)

    def go(self, until: frozenset[Fault], advance: Callable[[int, int], None] | None) -> None:
        """Explore all there is, or until there is too much, or one of these faults is found."""
        self._look_at(self._states[0], 0)
        for number, state in enumerate(self._watched(advance)):
            if not until.isdisjoint(self._troubles.faults):
                self._is_complete = False
                return
            steps, refusals = self._steps.of(state)
            if not self._enter_all(steps, number):
                return
            self._fair_from.append(len(self._fair))
            for refusal in refusals:
                self._refuse(state, refusal, number)
            if self._is_end(state):
                self._ends.append(number)
            elif refusals:
                self._rests.append(number)
            elif self._fair_from[-1] == self._fair_from[-2]:
                self._rests.append(number)
                self._troubles.add(Fault.DEADLOCK, "", number)
        self._judge_progress()

    def _watched(self, advance: Callable[[int, int], None] | None) -> Iterator[State]:
        """Yield the states, also those that become known meanwhile."""
        for number, state in enumerate(self._states):
            if advance is not None and number % _TOLD == 0:
                advance(number, len(self._states))
            yield state

    def _enter_all(self, steps: Sequence[Next], number: int) -> bool:
        """Enter the states after `number`; False: there are too many."""
        self._transitions += len(steps)
        for kind, _, _, state in steps:
            after = self._enter(state, number)
            if after is None:
                return False
            if kind in FAIR:
                self._fair.append(after)
        return True

    def _enter(self, state: State, parent: int) -> int | None:
        """The number of a state, known or new; None: that would be too many."""
        known = self._numbers.get(state)
        if known is not None:
            return known
        number = len(self._states)
        if number >= self._max:
            self._is_complete = False
            return None
        self._numbers[state] = number
        self._states.append(state)
        self._parents.append(parent)
        self._look_at(state, number)
        return number

    # --- properties -----------------------------------------------------------------------

    def _look_at(self, state: State, number: int) -> None:
        for one in self._never.holding(state):
            if isinstance(one, Never) and one.unless_faults and not self._steps.is_clean(state):
                continue
            self._troubles.add(Fault.UNSAFE, one.name, number)

    def _refuse(self, state: State, refusal: Refusal, number: int) -> None:
        _, reaction = self._steps.reaction(state, refusal)
        if reaction.broken:
            self._troubles.add(Fault.UNSAFE, reaction.broken, number, refusal)
        else:
            last = _taken(self._steps, state, refusal)
            subject = f"{reaction.undeclared} at {last.what}"
            self._troubles.add(Fault.UNSPECIFIED, subject, number, refusal)

    def _is_end(self, state: State) -> bool:
        if not self._steps.is_quiet(state):
            return False
        is_clean = self._steps.is_clean(state)
        ends = self._goals.holding(state)
        return any(isinstance(one, End) and not (one.after_faults and is_clean) for one in ends)

    def _judge_progress(self) -> None:
        """Find a state from which neither an end nor a trouble already reported is in reach."""
        good = self._backwards([*self._ends, *self._rests])
        stuck = [number for number in range(len(self._states)) if not good[number]]
        for number in stuck:
            self._troubles.add(Fault.LIVELOCK, "", number)

    def _backwards(self, goals: Iterable[int]) -> bytearray:
        """Return the states from which fair steps alone lead to one of `goals`."""
        before, starts = self._reversed()
        reached = bytearray(len(self._states))
        waiting = list(dict.fromkeys(goals))
        for number in waiting:
            reached[number] = 1
        while waiting:
            number = waiting.pop()
            for source in before[starts[number] : starts[number + 1]]:
                if not reached[source]:
                    reached[source] = 1
                    waiting.append(source)
        return reached

    def _reversed(self) -> tuple[Sequence[int], Sequence[int]]:
        """The fair steps reversed: sources, and where each target's begin."""
        count = len(self._states)
        starts = array("q", bytes(8 * (count + 1)))
        for target in self._fair:
            starts[target + 1] += 1
        for number in range(count):
            starts[number + 1] += starts[number]
        free, before = array("q", starts), array("q", bytes(8 * len(self._fair)))
        for source in range(count):
            for target in self._fair[self._fair_from[source] : self._fair_from[source + 1]]:
                before[free[target]] = source
                free[target] += 1
        return before, starts

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
        for (fault, subject), (number, refusal) in self._troubles.first.items():
            times = self._troubles.times[fault, subject]
            yield Finding(fault, subject, times, self._run(number, refusal))

    def _run(self, number: int, refusal: Refusal | None) -> Run:
        state = self._states[number]
        last = None if refusal is None else _taken(self._steps, state, refusal)
        return Run(_run_of(self._steps, self._path(number)), last, self._steps.under_way(state))

    def _path(self, number: int) -> Sequence[tuple[State, Next]]:
        path: list[tuple[State, Next]] = []
        while (parent := self._parents[number]) >= 0:
            before, state = self._states[parent], self._states[number]
            steps, _ = self._steps.of(before)
            path.append((before, next(step for step in steps if step[3] == state)))
            number = parent
        return path[::-1]
