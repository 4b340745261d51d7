"""Rules: what the parts of a composition do when something happens to them.

A rule never says where a part goes: it says which trigger of its table is pulled, and
the table's row says the rest. So a row that is missing, changed or added in a table is
seen by the composition at once.

`Rule(cause, act, cite)`, for instance

    Rule(got("to-b", "refused 1"), act({"requester": "not [*]|failed"}, move("requester", "refused")), "M-34")
    Rule(after("requester", "refused"), act({}, move("requester", "refused"), send("to-b", "gone 1")), "3.1 t3")
    Rule(got("to-b", "refused 1"), ignore({"requester": "failed"}, "it has ended"), "3.1")

If several rules of one cause hold, each is a way things may go.
"""  # noqa: E501 - a rule is one line

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final, TypeAlias, final

import attrs
from typing_extensions import override

from fsm.product.condition import Case, Conditions, both, read

__all__ = [
    "Act",
    "After",
    "Cause",
    "Got",
    "Happens",
    "Move",
    "Rule",
    "Send",
    "Wished",
    "act",
    "after",
    "begin",
    "chain",
    "got",
    "happens",
    "ignore",
    "in_time",
    "move",
    "rules",
    "send",
    "wished",
]


@final
@attrs.frozen(slots=True)
class Got:
    """A message is next in a channel; every message must have such a rule when it comes."""

    channel: str
    message: str

    @override
    def __str__(self) -> str:
        return f"{self.message} comes by {self.channel}"


@final
@attrs.frozen(slots=True)
class After:
    """The deadline of a part's state is over.

    It happens only in states whose deadline, in the part's table, has this trigger.
    """

    part: str
    trigger: str

    @override
    def __str__(self) -> str:
        return f"the deadline of {self.part} is over: {self.trigger}"


@final
@attrs.frozen(slots=True)
class Wished:
    """The surroundings want something, as often as the wish's budget says."""

    wish: str

    @override
    def __str__(self) -> str:
        return f"wish: {self.wish}"


@final
@attrs.frozen(slots=True)
class Happens:
    """Something local happens by itself, whenever the conditions hold.

    Attributes:
        is_late: It is a timer that no table declares, so it waits as deadlines do.
    """

    what: str
    is_late: bool = False

    @override
    def __str__(self) -> str:
        return self.what


Cause: TypeAlias = Got | After | Wished | Happens


@final
@attrs.frozen(slots=True)
class Move:
    """Pull a trigger of a part's table.

    Attributes:
        given: Conditions of the table's guards that are true; all others are not.
        begins: A new entity of that name begins; the one before must be absent or in a
            state that may end.
    """

    part: str
    trigger: str
    given: frozenset[str] = frozenset()
    begins: bool = False


@final
@attrs.frozen(slots=True)
class Send:
    """Put a message into a channel."""

    channel: str
    message: str


@final
@attrs.frozen(slots=True)
class Act:
    """What is done, and when: a rule without its cause.

    Attributes:
        when: Must hold before.
        moves: Taken one after the other.
        sends: In this order.
        sets: New values of variables.
        ignored: Why nothing at all is done; empty: something is.
    """

    when: Conditions
    moves: tuple[Move, ...] = ()
    sends: tuple[Send, ...] = ()
    sets: Mapping[str, str] = attrs.field(factory=dict)
    ignored: str = ""

    def also(self, other: "Act") -> Iterator["Act"]:
        """Do both, this first, as one step; none, if they cannot hold together."""
        joined = both(self.when, other.when)
        if joined is not None:
            yield Act(
                joined,
                self.moves + other.moves,
                self.sends + other.sends,
                {**self.sets, **other.sets},
                self.ignored or other.ignored,
            )


@final
@attrs.frozen(slots=True)
class Rule:
    """What is done at a cause.

    Attributes:
        cite: Where the protocol, or which core, says so.
    """

    cause: Cause
    act: Act
    cite: str


_NOTHING: Final[Mapping[str, str]] = {}


def got(channel: str, message: str) -> Got:
    """Return the cause: `message` is next in `channel`."""
    return Got(channel, message)


def after(part: str, trigger: StrEnum | str) -> After:
    """Return the cause: the deadline of `part` is over."""
    return After(part, str(trigger))


def wished(wish: str) -> Wished:
    """Return the cause: the surroundings want it."""
    return Wished(wish)


def happens(what: str) -> Happens:
    """Return the cause: it happens by itself."""
    return Happens(what)


def in_time(what: str) -> Happens:
    """Return the cause: it happens by itself, by a timer that no table declares."""
    return Happens(what, is_late=True)


def move(part: str, trigger: StrEnum | str, *given: StrEnum) -> Move:
    """Return the move of `part` by `trigger`."""
    return Move(part, str(trigger), frozenset(map(str, given)))


def begin(part: str, trigger: StrEnum | str, *given: StrEnum) -> Move:
    """Return the first move of a new entity of the name `part`."""
    return Move(part, str(trigger), frozenset(map(str, given)), begins=True)


def send(channel: str, message: str) -> Send:
    """Return the sending of `message` by `channel`."""
    return Send(channel, message)


def act(when: Case, *does: Move | Send, sets: Mapping[str, str] = _NOTHING) -> Act:
    """Return what is done `when`."""
    return Act(
        read(when),
        tuple(one for one in does if isinstance(one, Move)),
        tuple(one for one in does if isinstance(one, Send)),
        dict(sets),
    )


def ignore(when: Case, why: str) -> Act:
    """Return that nothing is done `when`, and why that is right."""
    return Act(read(when), ignored=why)


def chain(*alternatives: Iterable[Act]) -> list[Act]:
    """Do one of each, in order, in one step; what cannot hold together is left out.

    All conditions are those before the step.
    """
    done = [Act({})]
    for following in alternatives:
        choices = tuple(following)
        done = [both for one in done for other in choices for both in one.also(other)]
    return done


def rules(cause: Cause, acts: Iterable[Act], cite: str) -> tuple[Rule, ...]:
    """Return one rule per act."""
    return tuple(Rule(cause, one, cite) for one in acts)
