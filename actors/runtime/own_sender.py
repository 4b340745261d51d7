"""The identity of a runtime as the sender of messages between its own hyperties."""

from contextlib import suppress

import attrs

from specs.identity import SenderIdentity
from specs.jsonvalue import JsonObject


@attrs.define(slots=True, eq=False)
class OwnSender:
    """The runtime and its user as senders; the stub of the own node updates both at each session.

    Attributes:
        identity: The identity that the node states to the receivers of this runtime's messages.
            Before the first session, and if the node states none: the runtime, with no user.
        issuer: Issuer of the token of the last login in this process; None: there was no login.
        until: Seconds since the epoch at which that token expires; None: the token names no time.
    """

    identity: SenderIdentity
    issuer: str | None = None
    until: float | None = None

    @classmethod
    def of(cls, runtime: str) -> "OwnSender":
        """Return the sender of a runtime that has no session yet."""
        return cls(SenderIdentity(runtime))

    def set_identity(self, stated: SenderIdentity | None) -> None:
        """Record the identity that the node states to the receivers of this runtime's messages.

        Args:
            stated: The identity; None: the node states none, so the runtime is known, and no user.
        """
        self.identity = stated or SenderIdentity(self.identity.runtime)

    def record_login(self, token: str | None) -> None:
        """Record the issuer and the end of the token of a login; the token is not kept.

        Args:
            token: The token, which the node has accepted; None: the login had none.
        """
        claims = _claims_of(token) if token else {}
        issuer, until = claims.get("iss"), claims.get("exp")
        self.issuer = issuer if isinstance(issuer, str) else None
        self.until = float(until) if isinstance(until, int | float) else None


def _claims_of(token: str) -> JsonObject:
    """Return the claims of a login token, without verifying its signature."""
    # Keys are slow to import, and no stub in a sandbox process logs in by itself.
    from actors.keys.token import BadTokenError, read_token  # noqa: PLC0415

    with suppress(BadTokenError):
        return read_token(token).claims
    return {}
