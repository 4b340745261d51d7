"""Building blocks of a composition: participants with real cores, channels, events, conditions.

A participant, called place, has a host, which passes inputs to its cores and sends their messages
over channels. A host shares nothing with other hosts and has no input or output, so its next state
is a function of its state and the input: the explorer computes it once. An `Event` is a request or
a fault from outside, or an act of a participant by itself. A `Condition` describes states that must
never occur, or states in which a run may end; its predicate gets the hosts of its places.

A step takes one message from one channel (or a deadline, or an event) and lets one place handle it,
without interruption. A step whose messages find no room in a network waits until room is available.
A run has faults if a message was lost or came twice, a fault event happened, or a deadline passed
while other steps were possible; `Bounds` limits how often that happens in one run.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from inspect import signature
from typing import ClassVar, Final, NamedTuple, TypeAlias, final

import attrs
from typing_extensions import override

from fsm.engine import Step
from specs.errors import ProtoflyError, SpecError
from specs.jsonvalue import JsonObject

Untyped: TypeAlias = Callable[..., None]  # type: ignore[explicit-any] # any method of any port
Holds: TypeAlias = Callable[..., bool]  # type: ignore[explicit-any] # of hosts of any classes


class UnsafeError(ProtoflyError):
    """Error: a core made a decision that it must never make; the text is the violated property."""


# --- hosts ------------------------------------------------------------------------------------


class Call(NamedTuple):
    """Input of a participant: the name of a method of its host or core, and arguments.

    A method of the core that has a parameter `now` gets the time, too.
    """

    name: str
    args: tuple[Hashable, ...] = ()

    @override
    def __str__(self) -> str:
        """Return the input as text."""
        words = [self.name.replace("_", " "), *map(str, self.args)]
        return " ".join(words).replace("hyperty-runtime://", "")


class Sent(NamedTuple):
    """Message that was sent over a channel."""

    channel: str
    message: Call


@cache
def _is_timed(method: Untyped) -> bool:
    return "now" in signature(method).parameters


class Host:
    """Host of one participant's cores: passes inputs to them, and implements their port.

    The core `core`, if the host has it, handles deadlines, and inputs for which the host has no
    method.

    Attributes:
        place: Name of the participant.
        now: Seconds of the participant's own clock.
        out: The messages and transitions that the last input caused, in order.
        counters: Names of counters, in the host or its cores, that are ignored when hosts are
            compared: the behaviour that depends on them must show in other attributes.
        silent: Names of port calls that are ignored.
    """

    counters: ClassVar[frozenset[str]] = frozenset()
    silent: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, place: str) -> None:
        self.place = place
        self.now = 0.0
        self.out: list[Sent | Step] = []

    def __getattr__(self, name: str) -> Untyped:
        """Return a function that does nothing, for a port call listed in `silent`."""
        if name in type(self).silent:
            return _nothing
        raise AttributeError(name)

    def take(self, call: Call) -> None:
        """Handle a message or an event.

        Raises:
            UndeclaredTransitionError: A core's table has no row for it.
            UnsafeError: A property of this place is broken.
        """
        if hasattr(type(self), call.name):
            getattr(self, call.name)(*call.args)
        else:
            self.give(vars(self)["core"], call)

    def give(self, core: object, call: Call) -> None:
        """Pass an input to a core by calling the core's method of that name."""
        method = getattr(core, call.name)
        time_argument = {"now": self.now} if _is_timed(method.__func__) else {}
        method(*call.args, **time_argument)

    def deadline(self) -> float:
        """Return the time at which `time_over` must be called; infinity: never."""
        core = vars(self).get("core")
        return math.inf if core is None else core.deadline()

    def time_over(self) -> None:
        """Let the core handle its deadline, which is reached now."""
        vars(self)["core"].time_over(self.now)

    @final
    def pass_time(self) -> None:
        """Advance the clock to the deadline, and let the core handle the deadline."""
        self.now = max(self.now, self.deadline())
        self.time_over()

    def send(self, target: str, name: str, *args: Hashable) -> None:
        """Send a message over the channel to a participant, or over the channel with that name."""
        self.out.append(Sent(f"{self.place} to {target}", Call(name, args)))

    def step(self, step: Step) -> None:
        """Record a state machine transition of a core."""
        self.out.append(step)

    def steps(self, effects: Iterable[object]) -> None:
        """Record the state machine transitions among the results of a core."""
        self.out += [effect for effect in effects if isinstance(effect, Step)]


def _nothing(*_: object, **__: object) -> None:
    """Ignore a call of a port method."""


# --- parts of a composition -------------------------------------------------------------------


@attrs.frozen(slots=True, kw_only=True)
class Bounds:
    """Limits of the faults of one run; every run within them is explored.

    Attributes:
        losses: Number of messages that networks lose.
        duplicates: Number of messages that networks deliver twice.
        channel: Largest number of messages under way in one direction of a network.

    Raises:
        SpecError: A number is too small.
    """

    losses: int = 1
    duplicates: int = 1
    channel: int = 3

    def __attrs_post_init__(self) -> None:
        if self.losses < 0 or self.duplicates < 0:
            raise SpecError("losses and duplicates cannot be negative: use 0 or more")
        if self.channel < 1:
            raise SpecError("a channel without space carries nothing: use 1 or more")


class Medium(Enum):
    """Kind of a channel, which decides on its faults.

    Attributes:
        LOCAL: Within one process: no faults.
        RELIABLE: Between processes, without faults.
        NETWORK: Loses some messages and delivers some twice, keeps their order, and has limited
            room.
        UNORDERED: Like NETWORK, but a message may overtake others, since they come by several
            routes.
    """

    LOCAL = "local"
    RELIABLE = "reliable"
    NETWORK = "network"
    UNORDERED = "unordered"

    @property
    def is_lossy(self) -> bool:
        """True if a channel of this kind may lose messages or deliver them twice."""
        return self in {Medium.NETWORK, Medium.UNORDERED}


@attrs.frozen(slots=True)
class Channel:
    """Channel that carries messages in one direction between two participants.

    Attributes:
        suffix: Distinguishes channels between the same participants.
    """

    source: str
    target: str
    medium: Medium = Medium.NETWORK
    suffix: str = ""

    @property
    def name(self) -> str:
        """The name of the channel, made from its two participants."""
        return f"{self.source} to {self.target}{self.suffix}"


def both_ways(
    first: str, second: str, medium: Medium = Medium.NETWORK, suffix: str = ""
) -> Iterator[Channel]:
    """Yield the two channels between two participants, for both directions."""
    yield Channel(first, second, medium, suffix)
    yield Channel(second, first, medium, suffix)


def _always(_: Host) -> bool:
    return True


def _as_call(call: str | Call) -> Call:
    return Call(call) if isinstance(call, str) else call


@attrs.frozen(slots=True)
class Event:
    """Input of a participant that is neither a message nor a deadline.

    Attributes:
        call: The input, or its name.
        when: Whether it may happen now, given the host of the participant.
        budget: How often it may happen in one run; None: without limit, and then it happens sooner
            or later by itself.
        is_fault: Whether it is a fault from outside, not an act of a participant.
        done: The line of a scenario file that causes it; None: the player of scenarios cannot cause
            it, so it is only a remark there.
    """

    name: str
    place: str
    call: Call = attrs.field(converter=_as_call)
    when: Holds = _always
    budget: int | None = 1
    is_fault: bool = attrs.field(default=False, kw_only=True)
    done: JsonObject | None = attrs.field(default=None, kw_only=True)


@attrs.frozen(slots=True)
class Condition:
    """Set of states that must never occur, or in which a run may end with no message under way.

    Attributes:
        name: The condition in words, as a sentence.
        places: The participants whose hosts the predicate gets.
        holds: The predicate.
        faults: True: it counts only after a fault; False: only if no fault occurred; None: always.
    """

    name: str
    places: Sequence[str]
    holds: Holds
    faults: bool | None = None


@attrs.frozen(slots=True)
class Wire:
    """Form of a message between processes, for scenario files (protocol page 09).

    Attributes:
        hop: The route that it takes, as in `RA.sm>..>PH`.
        message: `type`, `from`, `to` and `body` in normal form; its id is added.
        request: The key that a request and its answers have in common.
    """

    hop: str
    message: JsonObject
    request: str


def _unwritten(_channel: str, _message: Call) -> Wire | None:
    return None


LONG: Final = 3_600.0


@attrs.frozen(slots=True, kw_only=True)
class Composition:
    """Participants whose machines interact, with the limits that are explored by default.

    Attributes:
        places: Factories of the initial hosts, by the names of the participants, which are also
            used in drawings and traces.
        is_timely: Whether deadlines pass only when no other step is possible: every message is
            faster than every timer. That shows which states are reached without faults.
            Otherwise a deadline may pass at any moment, which includes all behaviour.
        early: Number of deadlines in one run that pass while other steps are possible, if
            `is_timely`.
        is_local_first: Whether messages within a process arrive before any other step.
        horizon: Age in seconds after which no core distinguishes how old a time is.
        wire: Returns the wire form of a message; None: it never leaves a process.
        given: The lines of a scenario file that list the participants at the beginning.
    """

    name: str
    places: Mapping[str, Callable[[str], Host]]
    channels: Sequence[Channel]
    events: Sequence[Event] = ()
    never: Sequence[Condition] = ()
    ends: Sequence[Condition]
    bounds: Bounds
    is_timely: bool = False
    early: int = 0
    is_local_first: bool = False
    horizon: float = LONG
    wire: Callable[[str, Call], Wire | None] = _unwritten
    given: Sequence[JsonObject] = ()
