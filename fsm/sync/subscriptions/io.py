"""What the table of subscriptions is told, and what it tells."""

from typing import Final, TypeAlias, final

import attrs

from fsm.effects import RowChanged
from fsm.engine import Step
from fsm.refused import Refused

__all__ = [
    "AddressGone",
    "Consent",
    "Consented",
    "Declined",
    "Effect",
    "Ending",
    "Input",
    "Lapsed",
    "Moved",
    "Opened",
    "RuntimeGone",
    "Subscribe",
    "Unsubscribe",
    "Withdrawn",
    "entity_of",
]

_ENTITY_SLASHES: Final = 4


def entity_of(address: str) -> str:
    """Return the entity an address is part of: scheme, domain, first path segment."""
    return "/".join(address.split("/", _ENTITY_SLASHES)[:_ENTITY_SLASHES])


@final
@attrs.frozen(slots=True)
class Subscribe:
    """Deliver what goes to `resources` to `runtime` as well; all or none.

    Attributes:
        asking: Those of them whose owner has to consent first.
    """

    runtime: str
    resources: tuple[str, ...]
    asking: frozenset[str] = frozenset()


@final
@attrs.frozen(slots=True)
class Unsubscribe:
    """No longer deliver what goes to `resources` to `runtime`."""

    runtime: str
    resources: tuple[str, ...]


@final
@attrs.frozen(slots=True)
class Consented:
    """The owner of an object said yes to an observer that lives in `runtime`."""

    entity: str
    runtime: str
    observer: str


@final
@attrs.frozen(slots=True)
class Declined:
    """The owner of an object said no to an observer that lives in `runtime`."""

    entity: str
    runtime: str
    observer: str


@final
@attrs.frozen(slots=True)
class Withdrawn:
    """An observer that lives in `runtime` left, or was expelled (M-43, M-45)."""

    entity: str
    runtime: str
    observer: str


@final
@attrs.frozen(slots=True)
class Lapsed:
    """The lease of an observer in `runtime` is over: nobody may be there any more."""

    entity: str
    runtime: str
    observer: str


@final
@attrs.frozen(slots=True)
class Opened:
    """An object belongs to somebody now who is never asked for consent."""

    entity: str


@final
@attrs.frozen(slots=True)
class Moved:
    """An object belongs to another runtime now, and the paths of its owner with it (SYN-26).

    Attributes:
        old: Whose it was; it hears the object like others from now on.
        new: Whose it is; it hears what goes to the object, and needs nobody's consent.
        observers: Who observes in the old one's runtime, as the new owner says.
    """

    entity: str
    old: str
    new: str
    observers: tuple[str, ...] = ()


@final
@attrs.frozen(slots=True)
class RuntimeGone:
    """The session of `runtime` is over (I-M4)."""

    runtime: str


@final
@attrs.frozen(slots=True)
class AddressGone:
    """An address was released: nobody is delivered what goes to it or below (MN-12)."""

    address: str


Consent: TypeAlias = Consented | Declined | Withdrawn | Lapsed | Opened
Ending: TypeAlias = Unsubscribe | RuntimeGone | AddressGone

Input: TypeAlias = Subscribe | Consent | Moved | Ending

Effect: TypeAlias = Step | RowChanged | Refused
