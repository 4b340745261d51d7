"""Who is behind a session and behind a message (MN-05, CON-01)."""

from enum import StrEnum, unique
from typing import final

import attrs

__all__ = ["Identity", "SenderIdentity", "VouchedBy"]


@final
@attrs.frozen(slots=True, kw_only=True)
class Identity:
    """The claims of a validated token about its bearer.

    Attributes:
        user: Address of the user, such as user://idp.ex/alice.
        issuer: Issuer of the token, as the token names it.
        until: Seconds since the epoch; from then on the session has no valid credentials.
            Infinity: the issuer sets no end.
        roles: What the user may be, beside itself: `admin` may manage policies (POL-05).
        runtime: The only runtime, or node of another domain, that the token is good for; None:
            any runtime, but no node.
        key: Thumbprint of the only key whose holder may use the token (RFC 7800); None: each
            bearer may.
    """

    user: str
    issuer: str
    until: float
    roles: frozenset[str] = frozenset()
    runtime: str | None = None
    key: str | None = None


@final
@unique
class VouchedBy(StrEnum):
    """Who says that a user sent a message."""

    IDENTITY_PROVIDER = "identity-provider"
    """A token of the user's identity provider, which the receiving side has verified."""

    DOMAIN = "domain"
    """The domain of the sending runtime."""

    NONE = "none"
    """Nobody: the sending runtime has no login."""


@final
@attrs.frozen(slots=True)
class SenderIdentity:
    """The sender of a message, as the receiver's own node or link has established it.

    Attributes:
        runtime: Address of the sending runtime.
        user: Address of the user who is logged in there; None: nobody is.
        vouched_by: Who says so.
    """

    runtime: str
    user: str | None = None
    vouched_by: VouchedBy = VouchedBy.NONE
