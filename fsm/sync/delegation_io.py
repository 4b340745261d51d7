"""What happens while a data object is handed over, and what is to be done about it."""

from typing import TypeAlias, final

import attrs

from fsm.engine import Step
from specs.bodies.sync import DataObject
from specs.reply_code import Code

__all__ = [
    "AddressClaimed",
    "AddressOffered",
    "AddressTaken",
    "AddressWithdrawn",
    "Answered",
    "Begun",
    "DelegationEffect",
    "DelegationInput",
    "Dropped",
    "GivenAway",
    "HandedOver",
    "Kept",
    "Left",
    "ObjectHanded",
    "OfferDropped",
    "OtherAsked",
    "Passed",
    "TakeOverEffect",
    "TookOver",
    "Watcher",
]


@final
@attrs.frozen(slots=True)
class Watcher:
    """An observer, and the sync manager that asked for it.

    Attributes:
        lease: Seconds for which its subscription is granted; None: it lasts.
    """

    observer: str
    manager: str
    lease: int | None = None


@final
@attrs.frozen(slots=True)
class HandedOver:
    """All that the reporter's end of an object knows of it.

    Attributes:
        thing: The object, version included.
        watchers: Who observes.
        authorised: Who may, without being asked about.
        public: Whether everybody may.
        expelled: Who may not even then.
    """

    thing: DataObject
    watchers: tuple[Watcher, ...] = ()
    authorised: tuple[str, ...] = ()
    public: bool = False
    expelled: tuple[str, ...] = ()


# --- what happens -----------------------------------------------------------------------


@final
@attrs.frozen(slots=True)
class Begun:
    """The hand-over begins."""


@final
@attrs.frozen(slots=True)
class Answered:
    """What was asked last is answered, or nobody did (408).

    Attributes:
        code: Below 300 it is a yes.
        is_here: Whether whoever said it lives in the same runtime.
    """

    code: int
    why: str = ""
    is_here: bool = False


@final
@attrs.frozen(slots=True)
class Left:
    """The runtime leaves, whatever becomes of the hand-over."""


DelegationInput: TypeAlias = Begun | Answered | Left


# --- what is to be done -----------------------------------------------------------------


@final
@attrs.frozen(slots=True)
class OtherAsked:
    """Ask the other hyperty whether it takes the object."""


@final
@attrs.frozen(slots=True)
class Passed:
    """The other lives in the same runtime: let it be the reporter, in one step."""


@final
@attrs.frozen(slots=True)
class AddressOffered:
    """Write no more; tell the node who may take the address."""


@final
@attrs.frozen(slots=True)
class ObjectHanded:
    """Give the object to the other runtime, which then takes the address."""


@final
@attrs.frozen(slots=True)
class AddressWithdrawn:
    """Take the offer back at the node, which says whose the address is.

    Attributes:
        pause: Seconds to wait before.
    """

    pause: float = 0.0


@final
@attrs.frozen(slots=True)
class OfferDropped:
    """Take the offer back, too, if it was noted; whatever the node answers."""


@final
@attrs.frozen(slots=True)
class AddressClaimed:
    """The node has forgotten everything, and nobody has come for the address: claim it."""


@final
@attrs.frozen(slots=True)
class Kept:
    """All is as it was; tell the reporter why, who writes on."""

    code: Code
    why: str


@final
@attrs.frozen(slots=True)
class GivenAway:
    """The object is not reported here any more.

    Attributes:
        code: OK: the other reports it; else it is not known what became of it.
    """

    code: Code = Code.OK
    why: str = ""


@final
@attrs.frozen(slots=True)
class AddressTaken:
    """Take the address at the node.

    Attributes:
        pause: Seconds to wait before.
    """

    pause: float = 0.0


@final
@attrs.frozen(slots=True)
class TookOver:
    """The address is ours: report the object, with its next version."""


@final
@attrs.frozen(slots=True)
class Dropped:
    """The object stays with who had it."""

    code: Code
    why: str


DelegationEffect: TypeAlias = (
    Step
    | OtherAsked
    | Passed
    | AddressOffered
    | OfferDropped
    | ObjectHanded
    | AddressWithdrawn
    | AddressClaimed
    | Kept
    | GivenAway
)

TakeOverEffect: TypeAlias = Step | AddressTaken | TookOver | Dropped
