"""Bodies of calls to runtimes that sleep (PFY-09); ours, beside the catalogue's messages.

They are sent to `MN(d)/push`: a runtime registers its device by `create` and removes it by
`delete`; `read` returns the key that its push service needs; `execute` wakes a runtime.
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
        endpoint: URL that receives the calls (RFC 8030).
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
        value: Content for the device, encrypted for it alone.
    """

    resource: Address
    value: Json = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class Call:
    """The content that the device of a sleeping runtime receives.

    Attributes:
        to: The address that was called.
        from_: Address of the caller, which accepts requests.
        user: User of the caller, if the node knows it.
        vouched_by: The party that vouches for the user.
        value: The caller's content.
    """

    to: Address
    from_: Address = attrs.field(metadata=wire("from"))
    vouched_by: Filled = attrs.field(metadata=wire("vouchedBy"))
    user: Address | None = None
    value: Json = None
