"""Identities: the user and runtime of a session, and of the sender of a message (MN-05, CON-01).

On the wire the identity of a sender is the field `identity` of the body. Only the node of the
receiver's domain writes this field. The field is removed from messages of anyone else; in a message
from the node of another domain it is trusted as far as `said_by` permits.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final, final

import attrs

from specs.addresses.address import RUNTIME_SCHEME, canonical, domain_of, host_of, parse
from specs.errors import BadUrlError
from specs.jsonvalue import Json, JsonObject

IDENTITY: Final = "identity"
"""Key of a body for the identity of the sender; upstream's peers use the key differently."""


@attrs.frozen(slots=True, kw_only=True)
class Identity:
    """The user and rights that a validated login token grants to its bearer.

    Attributes:
        user: Address of the user, such as user://idp.ex/alice.
        issuer: Issuer of the token, as the token names it.
        until: Seconds since the epoch, from which on the session has no valid credentials.
            Infinity: the issuer sets no end.
        roles: Roles of the user: `admin` may manage policies (POL-05).
        runtime: The only runtime, or node of another domain, for which the token is valid; None:
            any runtime, but no node.
        addresses: Addresses, with all below them, that the issuer states to be the runtime's own;
            valid at nodes of other domains, if the issuer speaks for the runtime's domain.
        key: Thumbprint of the only key whose holder may use the token (RFC 7800); None: any bearer
            may.
        login: SHA-256 of the token, in hexadecimal digits; None: unknown.
    """

    user: str
    issuer: str
    until: float
    roles: frozenset[str] = frozenset()
    runtime: str | None = None
    addresses: frozenset[str] = frozenset()
    key: str | None = None
    login: str | None = attrs.field(default=None, eq=False, repr=False)


@final
class VouchedBy(StrEnum):
    """Parties that may vouch that a message was sent for a certain user."""

    IDENTITY_PROVIDER = "identity-provider"
    """A token of the user's identity provider, which the receiving side has verified."""

    DOMAIN = "domain"
    """The domain of the sending runtime."""

    NONE = "none"
    """Nobody: the sending runtime has no login."""


@final
@attrs.frozen(slots=True, cache_hash=True)
class SenderIdentity:
    """The sender of a message, as the receiver's own node or link has established it.

    Attributes:
        runtime: Address of the sending runtime.
        user: Address of the user who is logged in there; None: no login.
        vouched_by: The party that vouches for the user.
    """

    runtime: str
    user: str | None = None
    vouched_by: VouchedBy = VouchedBy.NONE


@attrs.frozen(slots=True)
class Stamp:
    """Rule for a link or pipe: which sender's identity its incoming messages get.

    Attributes:
        identity: Identity that each message gets; None: the identity is unknown.
        is_read: Whether the identity is read from the body of each message instead, because the
            other end is trusted: a node, or the process that started this one.
        is_kept: Whether the field `identity` stays in the body, for peers of upstream.
    """

    identity: SenderIdentity | None = None
    is_read: bool = False
    is_kept: bool = False

    def of(self, body: Mapping[str, Json]) -> SenderIdentity | None:
        """Return the sender's identity for a message with this body, by the rule."""
        return read_sender(body[IDENTITY]) if self.is_read else self.identity


NOBODY: Final = Stamp()
"""Rule for an unknown sender: messages get no identity, and the one in their bodies is removed."""

READ: Final = Stamp(is_read=True)
"""Rule for a trusted other end: the identity is read from the body of each message."""


def speaks_for(issuer: str, domain: str) -> bool:
    """Return whether an issuer of tokens may speak for a domain: its host must be in that domain.

    Args:
        issuer: The issuer, a URL or the name of a host.
        domain: The domain.
    """
    host = host_of_issuer(issuer)
    return host == domain or host.endswith(f".{domain}")


def host_of_issuer(issuer: str) -> str:
    """Return the host of an issuer of tokens, which is named by a URL or by its host alone."""
    authority = issuer.partition("://")[2] or issuer
    return authority.partition("/")[0].partition(":")[0]


def read_sender(value: Json) -> SenderIdentity | None:
    """Read the sender's identity from the value of `identity` in a body; None if malformed."""
    entry = value if isinstance(value, dict) else {}
    runtime, user, vouched_by = entry.get("runtime"), entry.get("user"), entry.get("vouchedBy")
    if not isinstance(runtime, str) or not isinstance(vouched_by, str):
        return None
    try:
        return _sender(runtime, user if isinstance(user, str) else None, vouched_by)
    except (BadUrlError, ValueError):
        return None


@lru_cache(maxsize=4096)
def _sender(runtime: str, user: str | None, vouched_by: str) -> SenderIdentity:
    """Return the identity with checked addresses; equal arguments share one cached object.

    Raises:
        BadUrlError: One of the addresses is invalid.
        ValueError: `vouched_by` is unknown, or does not fit: a user needs a voucher.
    """
    url, by = parse(runtime), VouchedBy(vouched_by)
    if url.scheme != RUNTIME_SCHEME or len(url.path) != 1:
        raise BadUrlError(runtime, "the address of no runtime")
    if (user is None) is not (by is VouchedBy.NONE):
        raise ValueError(vouched_by)
    return SenderIdentity(url.text, None if user is None else canonical(user), by)


def write_sender(identity: SenderIdentity) -> JsonObject:
    """Return a sender's identity as the JSON value of `identity` in a body."""
    written: JsonObject = {"runtime": identity.runtime}
    if identity.user is not None:
        written["user"] = identity.user
    written["vouchedBy"] = identity.vouched_by.value
    return written


def said_by(domain: str, stated: SenderIdentity | None) -> SenderIdentity | None:
    """Return the trusted part of the identity that another domain's node states for a sender.

    That node may speak for the runtimes of its domain, and for users whose addresses are of its
    domain or of a host below it. Its statement about any other user is ignored: the runtime has no
    user then.

    Args:
        domain: Domain of that node.
        stated: The sender's identity according to that node; None: no statement.

    Returns:
        The sender, vouched for by its domain at most; None: nothing is believed.
    """
    return None if stated is None else _believe(domain, stated)


@lru_cache(maxsize=4096)
def _believe(domain: str, stated: SenderIdentity) -> SenderIdentity | None:
    if domain_of(stated.runtime) != domain:
        return None
    host = None if stated.user is None else host_of(stated.user)
    if host is None or not (host == domain or host.endswith(f".{domain}")):
        return SenderIdentity(stated.runtime)
    return SenderIdentity(stated.runtime, stated.user, VouchedBy.DOMAIN)
