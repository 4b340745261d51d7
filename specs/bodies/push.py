"""Bodies of calls to runtimes that sleep (PFY-09); ours, beside the catalogue's messages.

They are sent to `MN(d)/push`: a runtime registers its device by `create` and takes it back by
`delete`; `read` gives the key that its push service has to know; `execute` wakes.
"""

import attrs

from specs.jsonvalue import Json
from specs.schema.field import Address, Filled, add_checks, wire


@attrs.frozen(slots=True, field_transformer=add_checks)
class PushKeys:
    """The keys of a device, as `PushSubscription.toJSON()` of browsers names them.

    Attributes:
        p256dh: Public key, an uncompressed point on P-256 in base64url.
        auth: Secret of 16 bytes in base64url.
    """

    p256dh: Filled = attrs.field(repr=False)
    auth: Filled = attrs.field(repr=False)


@attrs.frozen(slots=True, field_transformer=add_checks)
class PushSubscription:
    """A device at its push service, in the form of `PushSubscription.toJSON()` of browsers.

    Attributes:
        endpoint: URL that takes the calls (RFC 8030).
    """

    endpoint: Filled = attrs.field(repr=False)
    keys: PushKeys


@attrs.frozen(slots=True, field_transformer=add_checks)
class RegisterDevice:
    """Register the device of the sending runtime; it replaces the former one."""

    value: PushSubscription


@attrs.frozen(slots=True, field_transformer=add_checks)
class Wake:
    """Wake a runtime, or all devices of a user.

    Attributes:
        resource: Address of the runtime or user.
        value: What its device is told, encrypted for it alone.
    """

    resource: Address
    value: Json = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class Call:
    """What the device of a sleeping runtime reads.

    Attributes:
        to: Address that was called.
        from_: Address of the caller, which can be asked.
        user: User of the caller, if the node knows it.
        vouched_by: Who vouches for the user.
        value: What the caller had to say.
    """

    to: Address
    from_: Address = attrs.field(metadata=wire("from"))
    vouched_by: Filled = attrs.field(metadata=wire("vouchedBy"))
    user: Address | None = None
    value: Json = None
