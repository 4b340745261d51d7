"""Steps of a composition: computes the states that can follow a state, by calling the real cores.

A state is a tuple: one number for the host of each participant, one number for the messages in each
channel, and the remaining budgets of faults and events. The reaction of a host to an input is
computed once, by the real cores, and then remembered.

A host is stored as bytes and restored from them for each further input. Hosts are compared by keys:
two hosts with equal keys react equally to any input. Times in a key are relative to the host's
clock; times that are older than the horizon of the composition count as equal.
"""

import math
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from enum import Enum, StrEnum
from operator import itemgetter
from types import FunctionType, MethodType
from typing import Final, TypeAlias

import attrs

from fsm.engine import Entity, Step
from fsm.explore.composition import Call, Composition, Host, Medium, Sent, UnsafeError
from fsm.frozen import pickle_state, restore
from fsm.table import Table, UndeclaredTransitionError
from specs.trace import ABSENT

Key: TypeAlias = Hashable

_DIGITS: Final = 6
"""Number of decimals of a second to which times are compared."""


# --- keys of hosts -------------------------------------------------------------------------------


_PLAIN: Final = frozenset({str, int, bool, bytes, type(None)})


class _Freezer:
    """Converts a host to a hashable key, by which equal hosts are recognised."""

    def __init__(self, host: Host, horizon: float) -> None:
        self._host = host
        self._skipped = host.counters | {"now", "out", "place"}
        self._now = host.now
        self._horizon = horizon
        self._seen: dict[int, int] = {id(host): 0}

    def of_host(self) -> Key:
        """Return the key of the whole host."""
        return tuple(self._fields(vars(self._host)))

    def _fields(self, fields: Mapping[str, object]) -> list[Key]:
        return [self(item) for name, item in fields.items() if name not in self._skipped]

    def __call__(self, item: object) -> Key:
        if type(item) in _PLAIN:
            return item
        match item:
            case float():
                return self._time(item)
            case str() | int() | bytes() | Enum() | type() | FunctionType():
                return item
            case list() | tuple() | deque():
                return tuple([self(each) for each in item])
            case Entity():
                return item.key, item.state
            case _:
                return self._other(item)

    def _other(self, item: object) -> Key:
        match item:
            case Mapping():
                return tuple([(self(key), self(value)) for key, value in item.items()])
            case set() | frozenset():
                return tuple(sorted([self(each) for each in item], key=repr))
            case Table():
                return item.name
            case MethodType():
                return item.__func__.__qualname__, self(item.__self__)
            case _:
                return self._instance(item)

    def _time(self, when: float) -> Key:
        if not math.isfinite(when):
            return when
        return "t", round(max(when - self._now, -self._horizon), _DIGITS)

    def _instance(self, item: object) -> Key:
        kind = type(item)
        if not _is_value(kind):
            if id(item) in self._seen:
                return "seen", self._seen[id(item)]
            self._seen[id(item)] = len(self._seen)
        return kind.__name__, *self._fields(_fields_of(item))


def _fields_of(item: object) -> Mapping[str, object]:
    """Return the fields of an object, as copying and pickling see them."""
    state = item.__getstate__()
    fields, slots = state if isinstance(state, tuple) else (state, None)
    return {**(slots or {}), **(fields or {})}


def _is_value(kind: type) -> bool:
    """Return whether instances of a class are compared by contents, not by identity."""
    method = getattr(kind, "__hash__", None)
    return method is not None and method is not object.__hash__


State: TypeAlias = tuple[int, ...]


class Kind(StrEnum):
    """Kind of a step from one state of a composition to the next."""

    DELIVERED = "delivered"
    DELIVERED_AND_KEPT = "delivered, and once more"
    LOST = "lost"
    DEADLINE = "deadline"
    EARLY = "deadline, while something else goes on"
    LOCAL = "local"
    REQUEST = "request"


FAIR: Final = frozenset({Kind.DELIVERED, Kind.DEADLINE, Kind.LOCAL})
"""Kinds of steps that happen by themselves: neither faults nor external requests."""
_IDLE: Final = frozenset({Kind.LOCAL, Kind.DEADLINE})
"""Kinds of steps that are ignored if they change nothing."""
Next: TypeAlias = tuple[Kind, int, int, State]
"""Possible step: kind; index of its channel, participant or event; message number; new state."""

Refusal: TypeAlias = tuple[Kind, int, int]
"""Input that a core refuses: its kind and numbers, as in `Next`."""


@attrs.frozen(slots=True)
class Reaction:
    """Result of an input to the host of a participant.

    Attributes:
        host: Number of the host after the input.
        sends: Pairs of the index of a channel and the number of a message.
        moved: The state machine transitions.
        undeclared: The transition that no row of a table allows; empty: all are allowed.
        broken: The property that the host found violated; empty: none.
    """

    host: int
    sends: tuple[tuple[int, int], ...] = ()
    moved: tuple[Step, ...] = ()
    undeclared: str = ""
    broken: str = ""

    @property
    def is_refused(self) -> bool:
        """True if the cores refused the input, as undeclared or unsafe."""
        return bool(self.undeclared or self.broken)


class _Hosts:
    """All states of one participant's host that were reached so far, numbered."""

    def __init__(self, composition: Composition, place: str) -> None:
        self._horizon = composition.horizon
        self._numbers: dict[Key, int] = {}
        self._kept: list[bytes] = []
        self.looks: list[Host] = []
        self.waits: list[bool] = []
        self.events: list[tuple[int, ...]] = []
        self._own = [
            (number, event)
            for number, event in enumerate(composition.events)
            if event.place == place
        ]
        self.number(composition.places[place](place))

    def number(self, host: Host) -> int:
        """Return the number of a host; a host that is not known yet gets a new number."""
        # This call may remove outdated entries of the host, so the key is computed afterwards.
        waits = host.deadline() != math.inf
        key = _Freezer(host, self._horizon).of_host()
        number = self._numbers.setdefault(key, len(self.looks))
        if number == len(self.looks):
            self._kept.append(pickle_state(host))
            self.looks.append(host)
            self.waits.append(waits)
            self.events.append(tuple(n for n, event in self._own if event.when(host)))
        return number

    def again(self, number: int) -> Host:
        """Return a copy of the host with a number; the copy may be changed."""
        return restore(self._kept[number], Host)


class Steps:
    """Computes the steps of a composition and decodes its states.

    Attributes:
        held_back: Number of steps that waited for room in a network so far.
        reactions: Number of calls of cores.
    """

    def __init__(self, composition: Composition) -> None:
        self.composition = composition
        self.held_back = 0
        self._channels = [channel.name for channel in composition.channels]
        self._hosts = [_Hosts(composition, place) for place in composition.places]
        self._place = {place: number for number, place in enumerate(composition.places)}
        self._names = list(composition.places)
        self._first = len(self._hosts)
        self._losses = self._first + len(self._channels)
        self._early = self._losses + 2
        self._budget = self._losses + 3
        self._messages: list[Call] = []
        self._message_numbers: dict[Call, int] = {}
        self._contents: list[tuple[int, ...]] = [()]
        self._content_numbers: dict[tuple[int, ...], int] = {(): 0}
        self._reactions: dict[tuple[int, int, Kind, int, int], Reaction] = {}
        self._found: list[Next] = []
        self._refused: list[Refusal] = []
        self._blocked: list[Next] = []
        media = [channel.medium for channel in composition.channels]
        self._inner = [n for n, medium in enumerate(media) if medium is Medium.LOCAL]
        self._outer = [n for n, medium in enumerate(media) if medium is not Medium.LOCAL]
        self._is_lossy = [medium.is_lossy for medium in media]
        self._is_ordered = [medium is not Medium.UNORDERED for medium in media]
        self._target = [self._place[channel.target] for channel in composition.channels]
        self._waits = composition.is_timely
        self._hastes = composition.is_local_first
        faults = [n for n, event in enumerate(composition.events) if event.is_fault]
        places = [*range(self._losses, self._budget), *(self._budget + n for n in faults)]
        self._faultless = [(place, self.start[place]) for place in places]

    # --- states ---------------------------------------------------------------------------

    @property
    def start(self) -> State:
        """The state at the beginning of every run."""
        bounds = self.composition.bounds
        budgets = [event.budget or 0 for event in self.composition.events]
        channels = [0] * len(self._channels)
        faults = (bounds.losses, bounds.duplicates, self.composition.early)
        return (*([0] * self._first), *channels, *faults, *budgets)

    @property
    def reactions(self) -> int:
        """The number of calls of cores so far."""
        return len(self._reactions)

    def hosts(self, state: State, places: Sequence[str]) -> list[Host]:
        """Return the hosts of some participants in a state, to be read only."""
        numbers = [self._place[place] for place in places]
        return [self._hosts[number].looks[state[number]] for number in numbers]

    def numbers(self, places: Sequence[str]) -> Callable[[State], Hashable]:
        """Return a function that maps a state to the numbers of the hosts of some participants."""
        return itemgetter(*[self._place[place] for place in places])

    def is_quiet(self, state: State) -> bool:
        """Return whether no message is under way in a state."""
        return not any(state[self._first : self._losses])

    def is_clean(self, state: State) -> bool:
        """Return whether no fault led to a state; False if deadlines may end at any time."""
        return self._waits and all(state[place] == budget for place, budget in self._faultless)

    def under_way(self, state: State) -> dict[str, tuple[Call, ...]]:
        """Return the messages in the channels that are not empty, by channel."""
        return {
            name: tuple(self._messages[number] for number in self._contents[state[self._first + n]])
            for n, name in enumerate(self._channels)
            if state[self._first + n]
        }

    # --- what may happen ------------------------------------------------------------------

    def of(self, state: State) -> tuple[list[Next], list[Refusal]]:
        """Return the steps that are possible in `state`, and the inputs that cores refuse."""
        self._found, self._refused, self._blocked = [], [], []
        for channel in self._inner:
            if state[self._first + channel]:
                self._deliveries(state, channel)
        if not self._hastes or not (self._found or self._refused):
            self._steps_between_processes(state)
        if self._blocked and not self._has_fair_step():
            # Otherwise two participants could wait for each other, each with a full network.
            for step in self._blocked:
                self._try(*step, has_room=True)
        return self._found, self._refused

    def _steps_between_processes(self, state: State) -> None:
        for channel in self._outer:
            if state[self._first + channel]:
                self._deliveries(state, channel)
        self._events(state)
        is_rest = not self._waits or not (self._blocked or self._has_fair_step())
        if is_rest or state[self._early]:
            next_state = state if is_rest else _less(state, self._early)
            kind = Kind.DEADLINE if is_rest else Kind.EARLY
            for place, hosts in enumerate(self._hosts):
                if hosts.waits[state[place]]:
                    self._try(kind, place, 0, next_state)

    def _has_fair_step(self) -> bool:
        return any(step[0] in FAIR for step in self._found)

    def _deliveries(self, state: State, channel: int) -> None:
        place = self._first + channel
        content = self._contents[state[place]]
        heads = content[:1] if self._is_ordered[channel] else tuple(dict.fromkeys(content))
        for message in heads:
            index = content.index(message)
            rest = content[:index] + content[index + 1 :]
            after_delivery = _with(state, place, self._content(rest, channel))
            self._try(Kind.DELIVERED, channel, message, after_delivery)
            if self._is_lossy[channel] and state[self._losses]:
                after_loss = _less(after_delivery, self._losses)
                self._found.append((Kind.LOST, channel, message, after_loss))
            if self._is_lossy[channel] and state[self._losses + 1]:
                after_repeat = _less(state, self._losses + 1)
                self._try(Kind.DELIVERED_AND_KEPT, channel, message, after_repeat)

    def _events(self, state: State) -> None:
        for place, hosts in enumerate(self._hosts):
            for number in hosts.events[state[place]]:
                event = self.composition.events[number]
                remaining, kind = state, Kind.LOCAL
                if event.budget is not None:
                    if not state[self._budget + number]:
                        continue
                    remaining, kind = _less(state, self._budget + number), Kind.REQUEST
                self._try(kind, number, 0, remaining)

    def _try(
        self, kind: Kind, subject: int, message: int, state: State, *, has_room: bool = False
    ) -> None:
        """Add a step to the possible ones; a step that changes nothing is ignored."""
        place, reaction = self._reaction(kind, subject, message, state)
        if reaction.is_refused:
            self._refused.append((kind, subject, message))
            return
        after = self._enter(state, place, reaction, has_room=has_room)
        if after is None:
            self.held_back += 1
            if kind is Kind.DELIVERED:
                self._blocked.append((kind, subject, message, state))
        elif after != state or kind not in _IDLE:
            self._found.append((kind, subject, message, after))

    def _enter(
        self, state: State, place: int, reaction: Reaction, *, has_room: bool
    ) -> State | None:
        """Return the state after a reaction, or None if a network has no room for its messages."""
        if not reaction.sends:
            return (*state[:place], reaction.host, *state[place + 1 :])
        entries = list(state)
        room = math.inf if has_room else self.composition.bounds.channel
        entries[place] = reaction.host
        for channel, message in reaction.sends:
            index = self._first + channel
            content = (*self._contents[entries[index]], message)
            if self._is_lossy[channel] and len(content) > room:
                return None
            entries[index] = self._content(content, channel)
        return tuple(entries)

    def _content(self, messages: tuple[int, ...], channel: int) -> int:
        in_order = messages if self._is_ordered[channel] else tuple(sorted(messages))
        number = self._content_numbers.setdefault(in_order, len(self._contents))
        if number == len(self._contents):
            self._contents.append(in_order)
        return number

    # --- what cores do --------------------------------------------------------------------

    def reaction(self, state: State, step: Next | Refusal) -> tuple[str, Reaction]:
        """Return the participant that a step concerns, and its reaction.

        Args:
            state: The state.
            step: The step.
        """
        kind, subject, message = step[:3]
        if kind is Kind.LOST:
            place = self._target[subject]
            return self._names[place], Reaction(state[place])
        place, reaction = self._reaction(kind, subject, message, state)
        return self._names[place], reaction

    def messages_of(self, reaction: Reaction) -> tuple[Sent, ...]:
        """Return the messages that a reaction sends."""
        return tuple(Sent(self._channels[c], self._messages[m]) for c, m in reaction.sends)

    def input(self, step: Next | Refusal) -> Call | None:
        """Return the input of a step: a message or an event; None if a deadline is over."""
        kind, subject, message = step[:3]
        if kind in {Kind.DEADLINE, Kind.EARLY}:
            return None
        if kind not in {Kind.LOCAL, Kind.REQUEST}:
            return self._messages[message]
        return self.composition.events[subject].call

    def _reaction(self, kind: Kind, index: int, number: int, state: State) -> tuple[int, Reaction]:
        match kind:
            case Kind.DEADLINE | Kind.EARLY:
                place, kind = index, Kind.DEADLINE
            case Kind.LOCAL | Kind.REQUEST:
                place = self._place[self.composition.events[index].place]
            case _:
                # Cores do not know the channel of a message, so reactions are shared.
                place, kind, index = self._target[index], Kind.DELIVERED, 0
        key = place, state[place], kind, index, number
        known = self._reactions.get(key)
        if known is None:
            known = self._reactions[key] = self._react(place, state[place], (kind, index, number))
        return place, known

    def _react(self, place: int, number: int, token: Refusal) -> Reaction:
        hosts = self._hosts[place]
        host = hosts.again(number)
        try:
            call = self.input(token)
            if call is None:
                host.pass_time()
            else:
                host.take(call)
        except UndeclaredTransitionError as exc:
            return Reaction(number, undeclared=_without_key(exc))
        except UnsafeError as exc:
            return Reaction(number, broken=str(exc))
        sends = tuple(self._number_message(each) for each in host.out if isinstance(each, Sent))
        moved = tuple(each for each in host.out if isinstance(each, Step))
        host.out.clear()
        return Reaction(hosts.number(host), sends, moved)

    def _number_message(self, sent: Sent) -> tuple[int, int]:
        number = self._message_numbers.setdefault(sent.message, len(self._messages))
        if number == len(self._messages):
            self._messages.append(sent.message)
        return self._channels.index(sent.channel), number


def _without_key(exc: UndeclaredTransitionError) -> str:
    return f"{exc.machine}: no row for {exc.trigger!r} in {str(exc.state or ABSENT)!r}"


def _with(state: State, place: int, value: int) -> State:
    return (*state[:place], value, *state[place + 1 :])


def _less(state: State, place: int) -> State:
    return _with(state, place, state[place] - 1)
