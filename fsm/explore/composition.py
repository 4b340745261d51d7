"""A composition: places with the real cores, channels between them, and what else happens.

A place has a host, which gives its cores what arrives and puts what they decide on channels. It
shares nothing with other hosts and has no I/O, so that what it becomes is a function of what it is
and of what happens: the explorer computes it once. `Event`s are requests of the surroundings,
their faults, and what a place does by itself. What must never be is a `Condition`, and so
is a state in which all may come to rest; its predicate is given the hosts of its places.

A step takes one message from one channel (or a deadline, or an event) and lets one place decide;
nothing comes between. A step whose messages find no space in a network waits until there is some.
Something went wrong if a message was lost or came twice, a fault happened, or a deadline was over
while something else went on; `Bounds` says how much of that one run may have.
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
    """A core decided what it must not decide; the text is the property that is broken."""


# --- hosts ------------------------------------------------------------------------------------


class Call(NamedTuple):
    """An input of a place: a method of its host, or of the core of that, and its arguments.

    A method of the core that has a parameter `now` gets the time, too.
    """

    name: str
    args: tuple[Hashable, ...] = ()

    @override
    def __str__(self) -> str:
        """The input in words."""
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
    """The cores of one place, and the port of them: a call of a core is a method here.

    The core `core`, if there is one, gets the inputs that have no method here, and the deadlines.

    Attributes:
        place: Name of the place.
        now: Seconds of the place's own clock.
        out: What the last input led to, in order.
        counters: Names of what only counts up, in the host or its cores, and is not looked at
            to know a host again: the host must show by other means what depends on it.
        silent: Calls of ports that nobody looks at.
    """

    counters: ClassVar[frozenset[str]] = frozenset()
    silent: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, place: str) -> None:
        self.place = place
        self.now = 0.0
        self.out: list[Sent | Step] = []

    def __getattr__(self, name: str) -> Untyped:
        """Do nothing for a silent call."""
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
        """Give an input to a core."""
        method = getattr(core, call.name)
        timed = {"now": self.now} if _is_timed(method.__func__) else {}
        method(*call.args, **timed)

    def deadline(self) -> float:
        """The time at which `time_over` is due; infinity: never."""
        core = vars(self).get("core")
        return math.inf if core is None else core.deadline()

    def time_over(self) -> None:
        """Note that the deadline is over: `now` is at it."""
        vars(self)["core"].time_over(self.now)

    @final
    def pass_time(self) -> None:
        """Let the deadline be over."""
        self.now = max(self.now, self.deadline())
        self.time_over()

    def send(self, target: str, name: str, *args: Hashable) -> None:
        """Put a message on the channel to a place, or on the channel that has this name there."""
        self.out.append(Sent(f"{self.place} to {target}", Call(name, args)))

    def step(self, step: Step) -> None:
        """Note a step of a machine."""
        self.out.append(step)

    def steps(self, effects: Iterable[object]) -> None:
        """Note the steps among the effects of a core."""
        self.out += [effect for effect in effects if isinstance(effect, Step)]


def _nothing(*_: object, **__: object) -> None:
    """Nobody looks at that."""


# --- what is composed -------------------------------------------------------------------------


@attrs.frozen(slots=True, kw_only=True)
class Bounds:
    """The bounds of one run; every run within them is explored.

    Attributes:
        losses: Messages that networks lose.
        duplicates: Messages that networks deliver once more.
        channel: Messages under way in one direction of a network at a time.

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
        LOCAL: Nothing: within one process.
        RELIABLE: Nothing either, but it is between processes.
        NETWORK: It loses some and delivers some twice, keeps their order, and its room is
            bounded.
        UNORDERED: The same, and a message may overtake others: they come by several routes.
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
        """The name."""
        return f"{self.source} to {self.target}{self.suffix}"


def both_ways(
    first: str, second: str, medium: Medium = Medium.NETWORK, suffix: str = ""
) -> Iterator[Channel]:
    """Yield the channels of two places to each other."""
    yield Channel(first, second, medium, suffix)
    yield Channel(second, first, medium, suffix)


def _always(_: Host) -> bool:
    return True


def _as_call(given: str | Call) -> Call:
    return Call(given) if isinstance(given, str) else given


@attrs.frozen(slots=True)
class Event:
    """An input of a place that is no message and no deadline.

    Attributes:
        call: The input, or its name.
        when: Whether it may happen now, by the host of the place.
        budget: How often in one run; None: without limit, and it does at last: none needs to
            want it.
        is_fault: It is a fault of the surroundings, not an act of a participant.
        done: The line of a scenario file that brings it about; None: the player of scenarios
            cannot, and it is only a remark there.
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
    """What must not be; or where everything may come to rest, with no message under way.

    Attributes:
        name: What is so then, as a sentence.
        places: What must be looked at to see it.
        holds: Whether it is so.
        faults: It counts only if something went wrong before; False: only if nothing did; None:
            in either case.
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
        message: `type`, `from`, `to`, `body` in normal form; its id is put in.
        request: What a request and its answers have in common.
    """

    hop: str
    message: JsonObject
    request: str


def _unwritten(_channel: str, _message: Call) -> Wire | None:
    return None


LONG: Final = 3_600.0


@attrs.frozen(slots=True, kw_only=True)
class Composition:
    """Machines that meet, with the bounds that are explored by default.

    Attributes:
        places: Makers of the hosts as they are in the beginning, by the names of their places:
            participants of drawings, processes of traces.
        is_timely: Deadlines are over only when nothing else goes on: every message is faster than
            every timer. So is shown what is reached when nothing goes wrong. Else a deadline may
            be over at any moment: all there is happens so, and more.
        early: Deadlines that are over in one run while something else goes on, if otherwise they
            come at rest.
        is_local_first: Messages within a process are there before anything else happens.
        horizon: Seconds after which no core distinguishes how long ago something was.
        wire: How a message looks on the wire; None: it never is on a wire, it is a notice.
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
