"""Bodies of address allocation (M-18..M-20)."""

from typing import Annotated

import attrs

from specs.limits.protocol import MAX_ALLOCATION
from specs.schema.field import Addresses, Filled, checked, wire
from specs.schema.rule import OneOf, ruled
from specs.schema.shape import Whole


@attrs.frozen(slots=True, field_transformer=checked)
class AllocationWish:
    """How many addresses (C-45), and under which key they are freed together."""

    number: Annotated[int, Whole(1, MAX_ALLOCATION)]
    allocation_key: Filled | None = attrs.field(default=None, metadata=wire("allocationKey"))


@attrs.frozen(slots=True, field_transformer=checked)
class Allocate:
    """Ask for addresses of a scheme (M-18)."""

    scheme: Filled
    value: AllocationWish


@attrs.frozen(slots=True, field_transformer=checked)
class Allocated:
    """The addresses a node allocated."""

    allocated: Addresses


@attrs.frozen(slots=True, field_transformer=checked)
@ruled(OneOf("resource", "children_resources"))
class Free:
    """Give addresses back: by block key (M-19) or by list (M-20)."""

    resource: Filled | None = None
    children_resources: Addresses | None = attrs.field(
        default=None, metadata=wire("childrenResources")
    )
