"""Bodies of messages about subscriptions, P2P links, changes of registries, and requests."""

from typing import Annotated

import attrs

from specs.bodies.word import AttributeType, LinkValue, Operation, StubMethod
from specs.limits.protocol import MAX_ID
from specs.schema.field import Address, Addresses, add_checks, wire
from specs.schema.shape import Whole


@attrs.frozen(slots=True, field_transformer=add_checks)
class Path:
    """Set or remove routing paths (M-01..M-05, M-08, M-10, M-29, M-35, M-37, M-44).

    Attributes:
        resources: Addresses whose messages should be delivered.
        source: The actual subscriber; absent: the sender.
    """

    resources: Addresses
    source: Address | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class LinkStatus:
    """A step of a P2P link, reported by its stub (M-06, M-07).

    Attributes:
        value: State entered, as a word of the machine.
        resource: The remote runtime (I-S11).
        link: Name of the link.
        description: The reason for people, as half a sentence.
    """

    value: Annotated[str, LinkValue]
    resource: Address
    description: str | None = None
    link: str | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class ListChange:
    """Addresses that were added to a list, or removed (M-09).

    Attributes:
        value: The addresses.
        attribute_type: Always `array`.
    """

    value: Addresses
    operation: Annotated[str, Operation]
    attribute_type: Annotated[str, AttributeType] = attrs.field(
        default=AttributeType.ARRAY.value, metadata=wire("attributeType")
    )


@attrs.frozen(slots=True, field_transformer=add_checks)
class Command:
    """Order a stub to connect, disconnect, yield, resume, or send (M-11, M-12, STB-09).

    Attributes:
        params: The handler to connect to, or the remote runtime to leave.
        link: The link, or session, that is meant; absent: all links to that runtime.
        negotiation: The negotiation of the link that is meant; in any other the order is stale and
            ignored.
    """

    method: Annotated[str, StubMethod]
    params: tuple[Address, ...] = ()
    link: Address | None = None
    negotiation: Annotated[int, Whole(1, MAX_ID)] | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class RequestGivenUp:
    """Tell a hyperty that nobody waits for its answer to a request (M-59).

    Attributes:
        given_up: Id of the request, whose sender is that of this message.
    """

    given_up: Annotated[int, Whole(1, MAX_ID)] = attrs.field(metadata=wire("givenUp"))


@attrs.frozen(slots=True, field_transformer=add_checks)
class Nothing:
    """A body without fields of its own (M-41, M-47, M-58); other keys are ignored."""
