"""The identity of a runtime as the sender of messages between its own hyperties."""

from contextlib import suppress

import attrs

from specs.identity import SenderIdentity
from specs.jsonvalue import JsonObject


@attrs.define(slots=True, eq=False)
class OwnSender:
    """The runtime and its user; the stub of the own node writes it at each session.

    Attributes:
        identity: What the node tells the receivers of this runtime's messages. Before the first
            session, and of a node that does not say so: the runtime, with no user.
        issuer: Issuer of the token of the last login in this process; None: there was no login.
        until: Seconds since the epoch at which that token is over; None: it does not say.
    """

    identity: SenderIdentity
    issuer: str | None = None
    until: float | None = None

    @classmethod
    def of(cls, runtime: str) -> "OwnSender":
        """Return that of a runtime that has no session yet."""
        return cls(SenderIdentity(runtime))

    def set_identity(self, said: SenderIdentity | None) -> None:
        """Note what the node tells the receivers of this runtime's messages.

        Args:
            said: What it says; None: nothing, so the runtime is known, and no user.
        """
        self.identity = said or SenderIdentity(self.identity.runtime)

    def logged_in(self, token: str | None) -> None:
        """Note who has issued the token of a login, and its end; the token is not kept.

        Args:
            token: The token, which the node has accepted; None: there was none.
        """
        claims = _claims_of(token) if token else {}
        issuer, until = claims.get("iss"), claims.get("exp")
        self.issuer = issuer if isinstance(issuer, str) else None
        self.until = float(until) if isinstance(until, int | float) else None


def _claims_of(token: str) -> JsonObject:
    """Return what a token claims; no signature is verified."""
    # Keys are slow to import, and no stub in a sandbox process logs in by itself.
    from actors.keys.token import BadTokenError, read_token  # noqa: PLC0415

    with suppress(BadTokenError):
        return read_token(token).claims
    return {}
