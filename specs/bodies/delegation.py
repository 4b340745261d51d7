"""Bodies by which a data object changes hands (M-54; all but the request are ours)."""

from typing import Annotated, Final

import attrs

from specs.bodies.sync import DataObject, Lease
from specs.bodies.word import AddressWish
from specs.limits.protocol import MAX_ID
from specs.limits.sync import HAND_OVER_PART, HAND_OVER_PARTS
from specs.schema.field import Address, Addresses, checked, wire
from specs.schema.shape import Size, Whole

__all__ = ["HandOver", "MoveAddress", "Watching"]

_PART: Final = HAND_OVER_PART


@attrs.frozen(slots=True, field_transformer=checked)
class Watching:
    """One observer of an object, and the sync manager that asked for it.

    Attributes:
        lease: How long its subscription lasts from now on, unless it is renewed; absent:
            without end.
    """

    observer: Address
    manager: Address
    lease: Lease | None = None


@attrs.frozen(slots=True, field_transformer=checked)
class HandOver:
    """Hand an object over, in parts; with the last of them it may be taken.

    Attributes:
        resource: The object.
        number: Of the attempt; rises with each of this object.
        part: Which part, from 1.
        parts: How many there are.
        value: The object; in the first part.
        observers: Who observes, as far as this part holds it.
        allowed: Who may observe unasked, the same.
        expelled: Who may not even if everybody may, the same.
        public: Whether everybody may.
        last_id: Ids of the object's messages go on above it; in the first part.
    """

    resource: Address
    number: Annotated[int, Whole(1, MAX_ID)]
    part: Annotated[int, Whole(1, HAND_OVER_PARTS)]
    parts: Annotated[int, Whole(1, HAND_OVER_PARTS)]
    value: DataObject | None = None
    observers: Annotated[tuple[Watching, ...], Size(0, _PART)] = ()
    allowed: Annotated[tuple[Address, ...], Size(0, _PART)] = ()
    expelled: Annotated[tuple[Address, ...], Size(0, _PART)] = ()
    public: bool | None = None
    last_id: Annotated[int, Whole(1, MAX_ID)] | None = attrs.field(
        default=None, metadata=wire("lastId")
    )


@attrs.frozen(slots=True, field_transformer=checked)
class MoveAddress:
    """Let another runtime have an address, take that back, or take the address.

    Attributes:
        resource: The address.
        operation: `offer`, `withdraw` or `take`.
        number: Of the offer; rises with each of this address.
        delegate: Offered to: a hyperty, whose runtime may take it.
        observers: Of who takes: those who observe in the runtime that had it.
    """

    resource: Address
    operation: Annotated[str, AddressWish]
    number: Annotated[int, Whole(1, MAX_ID)]
    delegate: Address | None = None
    observers: Addresses | None = None
