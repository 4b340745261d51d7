"""A composition: machines that meet, as data.

It has *parts* (each one entity of a declared table), *variables* (what the cores keep
besides the state, as few values as possible), *channels* with the *messages* they carry,
*wishes* of the surroundings, and *rules* (`fsm.product.rule`). What must never be is a
`Never`, where everything may come to rest is an `End`.

A composition is made by a function `compose(tables, bounds)`, so that other tables than
the declared ones can be tried: the parts take theirs from `tables`.

What moves, moves one at a time: a step takes one message from one channel (or a deadline,
a wish, a local event), makes the moves and sends of one rule, and nothing comes between.
A step whose messages find no room in a network waits until there is room.
"""

from collections.abc import Callable, Mapping
from enum import Enum, unique
from typing import TypeAlias, final

import attrs

from fsm.product.bounds import Bounds
from fsm.product.condition import Case
from fsm.product.rule import Rule
from fsm.table import Table
from specs.jsonvalue import JsonObject

__all__ = [
    "Channel",
    "Compose",
    "Composition",
    "End",
    "Haste",
    "Medium",
    "Message",
    "Never",
    "Part",
    "Patience",
    "Plan",
    "Variable",
    "Wire",
    "Wish",
]


@final
@attrs.frozen(slots=True)
class Part:
    """One entity.

    Attributes:
        name: As rules call it.
        table: Its machine, taken from the tables that the composition is made with.
        place: Whose it is: participant of drawings, process of traces. A short word.
        key: As traces write it; `{n}` is the number of times it has begun, 1, 2, ...
    """

    name: str
    table: Table
    place: str
    key: str


@final
@attrs.frozen(slots=True)
class Variable:
    """What is kept besides the states.

    Attributes:
        values: All there are; the first is where it begins.
    """

    name: str
    values: tuple[str, ...]


@unique
class Medium(Enum):
    """What a channel may do to messages; every channel keeps their order.

    Attributes:
        LOCAL: Nothing: within one process.
        RELIABLE: Nothing either, but it is between processes.
        NETWORK: It loses some and delivers some twice, and its room is bounded.
    """

    LOCAL = "local"
    RELIABLE = "reliable"
    NETWORK = "network"


@final
@attrs.frozen(slots=True)
class Channel:
    """One direction between two places."""

    name: str
    source: str
    target: str
    medium: Medium = Medium.NETWORK


@final
@attrs.frozen(slots=True)
class Wire:
    """How a message looks on the wire, for scenario files (protocol page 09).

    Attributes:
        hop: The ways it goes, as in `RA.sm>..>PH`.
        message: `type`, `from`, `to`, `body` in normal form; its id is put in.
        answers: Name of the message whose answer it is; empty: it is none.
        is_event: No answer is expected.
        done: The line of a scenario file that has it sent; None: actors send it themselves.
    """

    hop: str
    message: JsonObject
    answers: str = ""
    is_event: bool = False
    done: JsonObject | None = None


@final
@attrs.frozen(slots=True)
class Message:
    """A class of messages.

    Attributes:
        cite: Its id in the catalogue, or what it stands for.
        wire: Its form; None: it never is on a wire, it is a notice.
    """

    name: str
    cite: str
    wire: Wire | None = None


@final
@attrs.frozen(slots=True)
class Wish:
    """What the surroundings may want.

    Attributes:
        budget: How often in one run.
        is_fault: It is a fault of the surroundings, not something anybody wants.
        done: The line of a scenario file that brings it about; None: the player of scenarios
            cannot, and it is only a remark there.
    """

    name: str
    budget: int
    is_fault: bool = False
    done: JsonObject | None = None


@final
@attrs.frozen(slots=True)
class Never:
    """What must not be in any state.

    Attributes:
        name: What is wrong then, as a sentence.
        cases: Each one is wrong.
    """

    name: str
    cases: tuple[Case, ...]
    cite: str


@final
@attrs.frozen(slots=True)
class End:
    """Where everything may come to rest; no message is under way then.

    Attributes:
        cases: Each one will do.
    """

    name: str
    cases: tuple[Case, ...]


@unique
class Patience(Enum):
    """When time is over.

    Attributes:
        NONE: A deadline may be over at any moment: messages may be slower than any timer.
            All there is happens so, and more.
        AT_REST: Deadlines and timers come only when nothing else goes on: every message is
            faster than every timer. So is shown what is reached when nothing goes wrong.
    """

    NONE = "none"
    AT_REST = "at rest"


@unique
class Haste(Enum):
    """How fast messages within one process are.

    Attributes:
        NONE: They may be slower than any network.
        LOCAL_FIRST: They are there before anything else happens.
    """

    NONE = "none"
    LOCAL_FIRST = "local first"


@final
@attrs.frozen(slots=True, kw_only=True)
class Composition:
    """Machines that meet.

    Attributes:
        about: One sentence: who meets, and what may go wrong.
        bounds: How much goes wrong in one run.
        patience: When deadlines are over.
        haste: How fast messages within one process are.
        given: The lines with which its scenario files begin.
    """

    name: str
    about: str
    parts: tuple[Part, ...]
    variables: tuple[Variable, ...] = ()
    channels: tuple[Channel, ...] = ()
    messages: tuple[Message, ...] = ()
    wishes: tuple[Wish, ...] = ()
    rules: tuple[Rule, ...]
    never: tuple[Never, ...] = ()
    ends: tuple[End, ...]
    bounds: Bounds
    patience: Patience = Patience.NONE
    haste: Haste = Haste.NONE
    given: tuple[JsonObject, ...] = ()


Compose: TypeAlias = Callable[[Mapping[str, Table], Bounds], Composition]
"""Makes a composition of these tables."""


@final
@attrs.frozen(slots=True)
class Plan:
    """A composition that can be checked.

    Attributes:
        compose: Makes it.
        bounds: What is explored unless told otherwise.
    """

    name: str
    compose: Compose
    bounds: Bounds
