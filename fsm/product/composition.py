"""A composition: participants, the channels between them, and faults.

Its *places* hold the real cores (`Host`), its *channels* carry what they say, and
its *events* are what else happens to a place: something that the surroundings want, a fault of
theirs, or what a place does by itself. What must never be is a `Never`, where everything may
come to rest is an `End`. Something went wrong if a message was lost or came twice, a fault
happened, or a deadline was over while something else went on; `Bounds` says how much of that
one run may have.

What moves, moves one at a time: a step takes one message from one channel (or a deadline, or
an event), lets the cores of one place decide, and nothing comes between. A step whose messages
find no space in a network waits until there is some.

A host does for the cores of one place what an actor does: it feeds them what arrives, and puts
what they decide on channels. It has no I/O and no clock of its own: `now` is advanced to a
deadline when that is over. It shares nothing with other hosts, so that what becomes of it is a
function of what it is and of what happens, which the explorer computes once and remembers.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from enum import Enum, unique
from typing import ClassVar, Final, TypeAlias, TypeVar, final

import attrs

from fsm.engine import Step
from specs.errors import ProtoflyError, SpecError
from specs.jsonvalue import JsonObject


@final
class UnsafeError(ProtoflyError):
    """A core decided what it must not decide; the text is the property that is broken."""


@final
@attrs.frozen(slots=True)
class Sent:
    """A message that was put on a channel."""

    channel: str
    message: Hashable


Output: TypeAlias = Sent | Step


class Host(ABC):
    """The cores of one place.

    Attributes:
        now: Seconds of the place's own clock.
        out: What the last input led to, in order.
        counters: Names of what only counts up, in the host or its cores, and is not looked at
            to know a host again: the host must show by other means what depends on it.
        durations: Names of seconds that are no time of the clock.
    """

    counters: ClassVar[frozenset[str]] = frozenset()
    durations: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        self.now = 0.0
        self.out: list[Output] = []

    @abstractmethod
    def take(self, happened: Hashable) -> None:
        """Take a message, or a local event.

        Raises:
            UndeclaredTransitionError: A core's table has no row for it.
            UnsafeError: A property of this place is broken.
        """

    def deadline(self) -> float:
        """The time at which `time_over` is due; infinity: never."""
        return math.inf

    def time_over(self) -> None:
        """Note that the deadline is over: `now` is at it.

        Raises:
            NotImplementedError: The subclass has a deadline and no reaction to it.
        """
        raise NotImplementedError

    @final
    def pass_time(self) -> None:
        """Let the deadline be over."""
        self.now = max(self.now, self.deadline())
        self.time_over()

    @final
    def send(self, channel: str, message: Hashable) -> None:
        """Put a message on a channel.

        Args:
            channel: Name of the channel.
            message: The message.
        """
        self.out.append(Sent(channel, message))

    @final
    def moved(self, steps: Iterable[object]) -> None:
        """Note the steps among the effects of a core."""
        self.out += [each for each in steps if isinstance(each, Step)]


# --- what is composed -------------------------------------------------------------------


@final
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


HostT = TypeVar("HostT", bound=Host)


@final
class Situation:
    """The hosts of some places, to be looked at and not to be touched."""

    __slots__ = ("_hosts",)

    def __init__(self, hosts: Mapping[str, Host]) -> None:
        self._hosts = hosts

    def at(self, place: str, kind: type[HostT]) -> HostT:
        """Return the host of a place.

        Args:
            place: Name of the place.
            kind: Class of its host.
        """
        host = self._hosts[place]
        assert isinstance(host, kind)  # noqa: S101 - what the composition has put there
        return host


@final
@attrs.frozen(slots=True)
class Place:
    """The place of cores: a participant of drawings, a process of traces.

    Attributes:
        name: A short word.
        host: Makes the host as it is in the beginning.
    """

    name: str
    host: Callable[[], Host]


@unique
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


@final
@attrs.frozen(slots=True)
class Channel:
    """One direction between two places."""

    name: str
    source: str
    target: str
    medium: Medium = Medium.NETWORK


def _always(_: Situation) -> bool:
    return True


Holds: TypeAlias = Callable[[Situation], bool]


@final
@attrs.frozen(slots=True)
class Event:
    """An input of a place that is no message and no deadline.

    Attributes:
        happened: What its host takes.
        when: Whether it may happen now; it is shown the place and no other.
        budget: How often in one run; None: without limit, and it does at last: none needs to
            want it.
        is_fault: It is a fault of the surroundings, not an act of a participant.
        done: The line of a scenario file that brings it about; None: the player of scenarios
            cannot, and it is only a remark there.
    """

    name: str
    place: str
    happened: Hashable
    when: Holds = attrs.field(default=_always, kw_only=True)
    budget: int | None = attrs.field(default=1, kw_only=True)
    is_fault: bool = attrs.field(default=False, kw_only=True)
    done: JsonObject | None = attrs.field(default=None, kw_only=True)


@final
@attrs.frozen(slots=True)
class Never:
    """A condition that must not be.

    Attributes:
        name: What is wrong then, as a sentence.
        places: What must be looked at to see it.
        holds: Whether it is so.
        unless_faults: It is wrong only while nothing went wrong before.
    """

    name: str
    cite: str
    places: tuple[str, ...]
    holds: Holds
    unless_faults: bool = False


@final
@attrs.frozen(slots=True)
class End:
    """A state in which everything may come to rest; no message is under way then.

    Attributes:
        places: What must be looked at to see it.
        holds: Whether it is so.
        after_faults: It is an end only if something went wrong before.
    """

    name: str
    places: tuple[str, ...]
    holds: Holds
    after_faults: bool = False


@unique
class Patience(Enum):
    """The moment at which a deadline is over.

    Attributes:
        NONE: A deadline may be over at any moment: messages may be slower than any timer.
            All there is happens so, and more.
        AT_REST: Deadlines come only when nothing else goes on: every message is faster than
            every timer. So is shown what is reached when nothing goes wrong.
    """

    NONE = "none"
    AT_REST = "at rest"


@unique
class Haste(Enum):
    """The speed of messages within one process.

    Attributes:
        NONE: They may be slower than any network.
        LOCAL_FIRST: They are there before anything else happens.
    """

    NONE = "none"
    LOCAL_FIRST = "local first"


@final
@attrs.frozen(slots=True)
class Wire:
    """The wire form of a message, for scenario files (protocol page 09).

    Attributes:
        hop: The hops it takes, as in `RA.sm>..>PH`.
        message: `type`, `from`, `to`, `body` in normal form; its id is put in.
        answers: Name of the message whose answer it is; empty: it is none.
        is_event: No answer is expected.
    """

    hop: str
    message: JsonObject
    answers: str = ""
    is_event: bool = False


def _unwritten(_channel: str, _message: Hashable) -> Wire | None:
    return None


LONG: Final = 3_600.0


@final
@attrs.frozen(slots=True, kw_only=True)
class Composition:
    """Machines that meet.

    Attributes:
        about: One sentence.
        early: Deadlines that are over in one run while something else goes on, if otherwise they
            come at rest.
        horizon: Seconds after which no core distinguishes how long ago something was.
        wire: How a message looks on the wire; None: it never is on a wire, it is a notice.
        given: The lines of a scenario file that list the participants at the beginning.
    """

    name: str
    about: str
    places: Sequence[Place]
    channels: Sequence[Channel]
    events: Sequence[Event] = ()
    never: Sequence[Never] = ()
    ends: Sequence[End]
    bounds: Bounds
    patience: Patience = Patience.NONE
    early: int = 0
    haste: Haste = Haste.NONE
    horizon: float = LONG
    wire: Callable[[str, Hashable], Wire | None] = _unwritten
    given: Sequence[JsonObject] = ()


@final
@attrs.frozen(slots=True)
class Plan:
    """The maker of a composition, with its default bounds."""

    name: str
    compose: Callable[[Bounds], Composition]
    bounds: Bounds
