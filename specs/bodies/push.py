"""Bodies of requests that wake sleeping runtimes by push notifications (PFY-09).

These requests are an addition of this project to the protocol. They are sent to `MN(d)/push`: a
runtime registers its device by `create` and removes the device by `delete`; `read` returns the key
that the push service of the device needs; `execute` wakes a runtime.
"""

import attrs

from specs.jsonvalue import Json
from specs.schema.field import Address, Filled, add_checks, wire


@attrs.frozen(slots=True, field_transformer=add_checks)
class PushKeys:
    """The keys with which a push message to a device is encrypted, named as browsers name them.

    Attributes:
        p256dh: Public key, an uncompressed point on P-256 in base64url.
        auth: Secret of 16 bytes in base64url.
    """

    p256dh: Filled = attrs.field(repr=False)
    auth: Filled = attrs.field(repr=False)


@attrs.frozen(slots=True, field_transformer=add_checks)
class PushSubscription:
    """The registration of a device at a push service, in the form that browsers return.

    Attributes:
        endpoint: URL of the push service that receives messages for the device (RFC 8030).
    """

    endpoint: Filled = attrs.field(repr=False)
    keys: PushKeys


@attrs.frozen(slots=True, field_transformer=add_checks)
class RegisterDevice:
    """Body of the request to register the sending runtime's device, in place of its former one."""

    value: PushSubscription


@attrs.frozen(slots=True, field_transformer=add_checks)
class Wake:
    """Body of the request to wake a runtime, or all devices of a user, by a push message.

    Attributes:
        resource: Address of the runtime or user.
        value: Content for the device, encrypted for it alone.
    """

    resource: Address
    value: Json = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class Call:
    """The content of the push message that the device of a sleeping runtime receives.

    Attributes:
        to: The address that was called.
        from_: Address of the caller, at which the caller accepts requests.
        user: User of the caller, if the node knows the user.
        vouched_by: The party that vouches for the user.
        value: The caller's content.
    """

    to: Address
    from_: Address = attrs.field(metadata=wire("from"))
    vouched_by: Filled = attrs.field(metadata=wire("vouchedBy"))
    user: Address | None = None
    value: Json = None
