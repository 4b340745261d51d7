"""Bodies about the status of stubs, sessions of runtimes, and back ends of a node.

The messages of the catalogue are M-13..M-17 and M-55..M-58.
"""

from typing import Annotated, Final

import attrs

from specs.bodies.word import SessionMethod, StatusValue
from specs.jsonvalue import JsonObject
from specs.limits.protocol import MAX_ID
from specs.reply_code import Code
from specs.schema.field import Address, Filled, WordNeeds, add_checks, obeys, wire
from specs.schema.shape import Number, Size, Whole

SESSION_TOKEN: Final = "sessionToken"  # noqa: S105 - a key, no token
"""Key of a body for the token of the sender's session.

A message needs no token. A node refuses a message with the token of another session, and removes
the token of the right session from the message (MN-05, C-64)."""

IDENTITY_GUI: Final = "identity-gui"
"""Name of the component of a runtime that asks the user for a login (ADR-03)."""

OPEN_POPUP: Final = "openPopup"
"""Method of the component `identity-gui` that shows a login page."""

LOGIN_TOKEN: Final = "idToken"  # noqa: S105 - a key, no token
"""Key of a body for the login token with which the sender's session was opened.

A node with logins refuses a message with another token, and removes the token (MN-05, C-64)."""


@attrs.frozen(slots=True, field_transformer=add_checks)
class Status:
    """A status event of a stub (M-13); readers accept one of a P2P link as well.

    Attributes:
        value: State entered, as a word of the machine.
        resource: Remote runtime; present for P2P links only (I-S11).
        link: Name of the link or session.
        description: The reason for people, as half a sentence.
    """

    value: Annotated[str, StatusValue]
    resource: Address | None = None
    description: str | None = None
    link: str | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class SessionParams:
    """Arguments of session control.

    Attributes:
        runtime_url: The runtime of the session (MN-21), or whose name is released; absent: the
            session's own.
        token: Session token; required for a re-open.
        key: The runtime's public key for Ed25519, in base64url.
        proof: Its signature over the node's challenge on this link.
    """

    runtime_url: Address | None = attrs.field(default=None, metadata=wire("runtimeURL"))
    token: str | None = attrs.field(default=None, repr=False)
    key: str | None = None
    proof: str | None = attrs.field(default=None, repr=False)


@attrs.frozen(slots=True, field_transformer=add_checks)
@obeys(
    WordNeeds("method", (SessionMethod.OPEN, SessionMethod.REOPEN), "params.runtime_url"),
    WordNeeds("method", (SessionMethod.REOPEN,), "params.token", Code.UNAUTHENTICATED),
)
class SessionControl:
    """Open, re-open, close or ping a session (M-14..M-17), or renew the statement about it.

    `release` releases the name of a runtime.
    """

    method: Annotated[str, SessionMethod]
    params: SessionParams = SessionParams()


@attrs.frozen(slots=True, field_transformer=add_checks)
class SessionGranted:
    """The answer of a node to an open or re-open.

    Attributes:
        session_token: The token that resumes the session from now on.
        emptied: Whether the node was restarted meanwhile: the session is the same, but its
            addresses and subscriptions are lost.
        recovered: Whether no waiting message of a resumed session was lost, as far as the node
            knows; absent: the session is new.
        missing: Number of messages for it that were given up, as far as the node knows; absent:
            none.
        statement: The domain's signed statement about the runtime and its key.
        domain_keys: The public keys of the domain, as a JSON Web Key Set.
        identity: The runtime and its user, as the node names them to the receivers of its messages.
        rate: Messages a second that the node accepts from the session; absent: it has no limit.
        burst: Number of messages that it accepts at once after a rest.
    """

    session_token: Filled = attrs.field(metadata=wire(SESSION_TOKEN))
    emptied: bool | None = None
    recovered: bool | None = None
    missing: Annotated[int, Whole(1, MAX_ID)] | None = None
    statement: str | None = None
    domain_keys: JsonObject | None = attrs.field(default=None, metadata=wire("domainKeys"))
    identity: JsonObject | None = None
    rate: Annotated[float, Number(0.0, MAX_ID)] | None = None
    burst: Annotated[int, Whole(1, MAX_ID)] | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class StatementGiven:
    """The domain's present statement about a runtime and its key.

    Attributes:
        statement: The statement, signed.
        domain_keys: The public keys of the domain, as a JSON Web Key Set.
    """

    statement: Filled
    domain_keys: JsonObject = attrs.field(metadata=wire("domainKeys"))


@attrs.frozen(slots=True, field_transformer=add_checks)
class SessionChallenge:
    """The value of a refused open or re-open: a text for the runtime's key to sign.

    Attributes:
        challenge: The text; valid once, on the link by which it came.
    """

    challenge: Filled


# ---- back ends of a node


@attrs.frozen(slots=True, field_transformer=add_checks)
class IdentityCall:
    """Call a method of an identity provider (M-55).

    Attributes:
        method: `validateAssertion`, `generateAssertion`, `getLoginEndpoint` or others.
        params: Arguments, with the provider's names.
    """

    method: Filled
    params: JsonObject = attrs.field(factory=dict)


@attrs.frozen(slots=True, field_transformer=add_checks)
class GlobalRecord:
    """Publish a signed record of a user (M-57).

    Attributes:
        resource: The user's global address.
        value: The record, as a JSON Web Token.
    """

    resource: Address
    value: Filled


@attrs.frozen(slots=True, field_transformer=add_checks)
class QualityRequest:
    """The client and media type for which network resources are reserved (C-60)."""

    csp_id: Filled = attrs.field(metadata=wire("cspId"))
    media_type: Filled = attrs.field(metadata=wire("mediaType"))
    client_name: Filled = attrs.field(metadata=wire("clientName"))


@attrs.frozen(slots=True, field_transformer=add_checks)
class AskQuality:
    """Ask for network resources (M-58)."""

    value: QualityRequest


@attrs.frozen(slots=True, field_transformer=add_checks)
class QualityClient:
    """The client for which network resources are reserved (M-58)."""

    resource: Filled


@attrs.frozen(slots=True, field_transformer=add_checks)
class TurnServer:
    """A relay, with its credentials (M-58)."""

    turn: Filled
    username: Filled
    credential: Filled = attrs.field(repr=False)


@attrs.frozen(slots=True, field_transformer=add_checks)
class IceServer:
    """A STUN or TURN server, in the form of WebRTC's `RTCIceServer` (M-58).

    Attributes:
        urls: Its URLs, such as `turn:turn.a.example:3478?transport=udp` (RFC 7065).
        username: The user name for it; absent for a STUN server.
        credential: The password of that user name.
    """

    urls: Annotated[tuple[Filled, ...], Size(1)]
    username: Filled | None = None
    credential: Filled | None = attrs.field(default=None, repr=False)


@attrs.frozen(slots=True, field_transformer=add_checks)
class IceServers:
    """The STUN and TURN servers that a direct link may use (M-58).

    Attributes:
        ttl: Seconds for which the credentials are valid; absent: without end. After that the client
            asks again.
    """

    servers: tuple[IceServer, ...]
    ttl: Annotated[int, Whole(1, MAX_ID)] | None = None
