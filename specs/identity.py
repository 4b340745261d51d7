"""The identity behind a session, as its provider has confirmed it (MN-05, CON-01)."""

from typing import final

import attrs

__all__ = ["Identity"]


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
    """

    user: str
    issuer: str
    until: float
    roles: frozenset[str] = frozenset()
    runtime: str | None = None
