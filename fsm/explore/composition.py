"""A composition: places with the real cores, channels between them, and events.

A place has a host, which passes inputs to its cores and puts their messages on channels. A host
shares nothing with other hosts and has no I/O, so its next state is a function of its state and the
input: the explorer computes it once. An `Event` is a request of the surroundings, a fault of
theirs, or an act of a place by itself. A `Condition` describes states that must never occur, or
states in which everything may come to rest; its predicate gets the hosts of its places.

A step takes one message from one channel (or a deadline, or an event) and lets one place handle it,
without interruption. A step whose messages find no room in a network waits until there is room.
Something went wrong if a message was lost or came twice, a fault happened, or a deadline was over
while something else was going on; `Bounds` limits how often that happens in one run.
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
    """A core made a decision that it must never make; the text is the broken property."""


# --- hosts ------------------------------------------------------------------------------------


class Call(NamedTuple):
    """An input of a place: the name of a method of its host, or of the host's core, and arguments.

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
    """A message that was put on a channel."""

    channel: str
    message: Call


@cache
def _is_timed(method: Untyped) -> bool:
    return "now" in signature(method).parameters


class Host:
    """The cores of one place, and their port: each call of a core is a method here.

    The core `core`, if the host has one, gets the deadlines, and the inputs for which the host has
    no method.

    Attributes:
        place: Name of the place.
        now: Seconds of the place's own clock.
        out: The messages and steps that the last input led to, in order.
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
        """Return a function that does nothing, for a silent call."""
        if name in type(self).silent:
            return _nothing
        raise AttributeError(name)

    def take(self, call: Call) -> None:
        """Take a message, or an event.

        Raises:
            UndeclaredTransitionError: A core's table has no row for it.
            UnsafeError: A property of this place is broken.
        """
        if hasattr(type(self), call.name):
            getattr(self, call.name)(*call.args)
        else:
            self.give(vars(self)["core"], call)

    def give(self, core: object, call: Call) -> None:
        """Pass an input to a core."""
        method = getattr(core, call.name)
        time_argument = {"now": self.now} if _is_timed(method.__func__) else {}
        method(*call.args, **time_argument)

    def deadline(self) -> float:
        """Return the time at which `time_over` is due; infinity: never."""
        core = vars(self).get("core")
        return math.inf if core is None else core.deadline()

    def time_over(self) -> None:
        """Let the core handle its deadline, which is now."""
        vars(self)["core"].time_over(self.now)

    @final
    def pass_time(self) -> None:
        """Advance the clock to the deadline and handle its end."""
        self.now = max(self.now, self.deadline())
        self.time_over()

    def send(self, target: str, name: str, *args: Hashable) -> None:
        """Put a message on the channel to a place, or on a channel that has that name."""
        self.out.append(Sent(f"{self.place} to {target}", Call(name, args)))

    def step(self, step: Step) -> None:
        """Note a step of a machine."""
        self.out.append(step)

    def steps(self, effects: Iterable[object]) -> None:
        """Note the steps among the effects of a core."""
        self.out += [effect for effect in effects if isinstance(effect, Step)]


def _nothing(*_: object, **__: object) -> None:
    """Ignore a call."""


# --- parts of a composition -------------------------------------------------------------------


@attrs.frozen(slots=True, kw_only=True)
class Bounds:
    """The bounds of one run; every run within them is explored.

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
    """The behaviour of a channel.

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
        """True if messages may be lost, or come twice."""
        return self in {Medium.NETWORK, Medium.UNORDERED}


@attrs.frozen(slots=True)
class Channel:
    """One direction between two places.

    Attributes:
        suffix: Distinguishes channels between the same places.
    """

    source: str
    target: str
    medium: Medium = Medium.NETWORK
    suffix: str = ""

    @property
    def name(self) -> str:
        """The name of the channel."""
        return f"{self.source} to {self.target}{self.suffix}"


def both_ways(
    first: str, second: str, medium: Medium = Medium.NETWORK, suffix: str = ""
) -> Iterator[Channel]:
    """Yield the channels of two places in both directions."""
    yield Channel(first, second, medium, suffix)
    yield Channel(second, first, medium, suffix)


def _always(_: Host) -> bool:
    return True


def _as_call(call: str | Call) -> Call:
    return Call(call) if isinstance(call, str) else call


@attrs.frozen(slots=True)
class Event:
    """An input of one core of a composition that is neither a message nor a deadline.

    Attributes:
        call: The input, or its name.
        when: Whether it may happen now, given the host of the place.
        budget: How often it may happen in one run; None: without limit, and then it happens sooner
            or later by itself.
        is_fault: Whether it is a fault of the surroundings, not an act of a participant.
        done: The line of a scenario file that brings it about; None: the player of scenarios
            cannot, so it is only a remark there.
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
    """States that must never occur, or in which everything may rest, with no message under way.

    Attributes:
        name: The condition in words, as a sentence.
        places: The places whose hosts the predicate gets.
        holds: The predicate.
        faults: True: it counts only after something went wrong; False: only if nothing did; None:
            always.
    """

    name: str
    places: Sequence[str]
    holds: Holds
    faults: bool | None = None


@attrs.frozen(slots=True)
class Wire:
    """The wire form of a message, for scenario files (protocol page 09).

    Attributes:
        hop: The hops it takes, as in `RA.sm>..>PH`.
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
    """Places whose machines interact, with the bounds that are explored by default.

    Attributes:
        places: Factories of the initial hosts, by the names of their places: participants of
            drawings, processes of traces.
        is_timely: Whether deadlines are over only when nothing else is going on: every message is
            faster than every timer. That shows what can be reached when nothing goes wrong.
            Otherwise a deadline may be over at any moment, which includes all behaviour.
        early: Number of deadlines in one run that are over while something else is going on, if
            deadlines otherwise come at rest.
        is_local_first: Whether messages within a process arrive before anything else happens.
        horizon: Age in seconds after which no core distinguishes how old a time is.
        wire: Returns the wire form of a message; None: it is never on a wire, but a notice.
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
