"""Bodies about the observers of a data object: let in, shut out, told of (SYN-21, SYN-23, M-53)."""

from typing import Annotated

import attrs

from specs.bodies.sync import Version
from specs.bodies.word import AttributeType, Operation
from specs.limits.protocol import MAX_ID
from specs.limits.sync import MAX_GUESTS
from specs.schema.field import Address, Addresses, checked, wire
from specs.schema.shape import Size, Whole

__all__ = ["CutPath", "ObserverList", "ObserverName", "ObserversChange"]


@attrs.frozen(slots=True, field_transformer=checked)
class ObserverName:
    """Name an observer of one object.

    Its reporter asks the own sync manager to let it in unasked (`create`), or to shut it
    out (`unsubscribe`). That one tells the observer's sync manager the same.
    """

    resource: Address
    observer: Address


@attrs.frozen(slots=True, field_transformer=checked)
class CutPath:
    """Have what an observer's runtime hears of own objects end at the node.

    Attributes:
        resources: The objects.
        observer: Who was shut out.
        runtime: Where it lives, if that is known; absent: where the node thinks.
        expired: Its subscription was not renewed: the paths of its runtime are removed, too,
            unless another there observes, or asks to.
    """

    resources: Addresses
    observer: Address
    runtime: Address | None = None
    expired: bool | None = None


@attrs.frozen(slots=True, field_transformer=checked)
class ObserversChange:
    """Who observes an object from now on, or no more (M-53).

    Attributes:
        value: Who came or left.
        version: Rises by one with each of these of an object; absent: the sender counts none.
        attribute_type: Always `array`.
    """

    value: Addresses
    operation: Annotated[str, Operation]
    version: Version | None = None
    attribute_type: Annotated[str, AttributeType] = attrs.field(
        default=AttributeType.ARRAY.value, metadata=wire("attributeType")
    )


@attrs.frozen(slots=True, field_transformer=checked)
class ObserverList:
    """All who observe an object: the value of its observers resource.

    Attributes:
        version: Of the last `ObserversChange`; 0: there was none.
    """

    version: Annotated[int, Whole(0, MAX_ID)]
    observers: Annotated[tuple[Address, ...], Size(0, MAX_GUESTS)]
