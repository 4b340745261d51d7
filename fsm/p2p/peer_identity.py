"""Whether the offer or answer of a peer is believed: by what it shows, and what is required.

The signature, the assertion of an identity provider and the statement of a domain are verified
before; what was found is the input here. Nothing of an offer or answer counts before it is
believed: no candidate is dialled, no certificate is accepted.
"""

import math
from typing import Final, TypeAlias

import attrs

from specs.identity import SenderIdentity, VouchedBy


@attrs.frozen(slots=True, kw_only=True)
class Vouching:
    """What an identity provider or a domain has said of a key, and it was verified.

    Attributes:
        thumbprint: Name of the key.
        until: Seconds on the host's clock; from then on it counts no more.
        user: Address of the user for whom the key speaks; None: it names none.
        runtime: The only runtime for which the key speaks; None: it names none, so it vouches for
            none.
    """

    thumbprint: str
    until: float = math.inf
    user: str | None = None
    runtime: str | None = None


@attrs.frozen(slots=True, kw_only=True)
class Shown:
    """What an offer or answer shows, verified as far as cryptography goes.

    Attributes:
        is_signed: Whether its key has signed it, as it is and for this link.
        thumbprint: Name of its key.
        certificate: The certificate that its end will show, as it is written there; empty: none.
        fingerprint: Of the certificate that it will show at a data channel; empty: none.
        assertion: What an identity provider says; or why it is not believed; None: nothing.
        statement: The same of the peer's domain.
    """

    is_signed: bool
    thumbprint: str
    certificate: str
    fingerprint: str = ""
    assertion: Vouching | str | None = None
    statement: Vouching | str | None = None


@attrs.frozen(slots=True)
class Unsigned:
    """It is not signed yet: nothing of it counts."""


UNSIGNED: Final = Unsigned()


@attrs.frozen(slots=True)
class Believed:
    """It is of the peer.

    Attributes:
        identity: Who the peer is.
        certificate: The only certificate that is accepted of it; empty: none.
        until: Seconds on the host's clock; from then on nobody vouches for the peer.
        fingerprint: Of the only certificate that is accepted at a data channel; empty: none.
    """

    identity: SenderIdentity
    certificate: str
    until: float = math.inf
    fingerprint: str = ""

    def is_same_end(self, other: "Believed") -> bool:
        """Return whether another offer or answer names one of the same certificates, and no other.

        An end may have a data channel in one negotiation, and none in another one.
        """
        pairs = ((self.certificate, other.certificate), (self.fingerprint, other.fingerprint))
        named = [one == two for one, two in pairs if one and two]
        return bool(named) and all(named)


@attrs.frozen(slots=True)
class Distrusted:
    """It is not of the peer, or too little is known of the peer."""

    why: str


Standing: TypeAlias = Unsigned | Believed | Distrusted

_RANKS: Final = (VouchedBy.NONE, VouchedBy.DOMAIN, VouchedBy.IDENTITY_PROVIDER)
_WORDS: Final = {
    VouchedBy.DOMAIN: "its domain",
    VouchedBy.IDENTITY_PROVIDER: "an identity provider",
}


def standing_of(shown: Shown, remote: str, require: VouchedBy) -> Believed | Distrusted:
    """Return whether an offer or answer is believed.

    What an identity provider says comes first, if it names the runtime: who has an account there
    can have any key of his named, and without a runtime that key would be every runtime's. If a
    domain says something else of the user, one of the two is wrong, and neither is believed.

    Args:
        shown: What it shows.
        remote: Address of the runtime that it must be of.
        require: Who has to vouch for that runtime, at least.
    """
    if not shown.is_signed:
        return Distrusted("what the peer offers is not signed by the key that it names")
    assertion = _usable(shown.assertion, shown.thumbprint, remote)
    statement = _usable(shown.statement, shown.thumbprint, remote)
    match assertion, statement:
        case Vouching(user=one), Vouching(user=other) if other not in {None, one}:
            return Distrusted("its domain and its identity provider name different users")
    assertion, statement = _bound(assertion), _bound(statement)
    vouched_by, said = VouchedBy.NONE, None
    if isinstance(assertion, Vouching):
        vouched_by, said = VouchedBy.IDENTITY_PROVIDER, assertion
    elif isinstance(statement, Vouching):
        vouched_by, said = VouchedBy.DOMAIN, statement
    if _RANKS.index(vouched_by) < _RANKS.index(require):
        found = assertion if require is VouchedBy.IDENTITY_PROVIDER else statement
        why = found if isinstance(found, str) else "it shows nothing of the kind"
        return Distrusted(f"{_WORDS[require]} has to vouch for the peer: {why}")
    if said is None:
        return Believed(SenderIdentity(remote), shown.certificate, fingerprint=shown.fingerprint)
    identity = SenderIdentity(remote, said.user, vouched_by)
    return Believed(identity, shown.certificate, said.until, shown.fingerprint)


def _usable(said: Vouching | str | None, thumbprint: str, remote: str) -> Vouching | str | None:
    """Return what was said of this key and this runtime, or why it does not count."""
    if not isinstance(said, Vouching):
        return said
    if said.thumbprint != thumbprint:
        return "it is about another key"
    if said.runtime not in {None, remote}:
        return f"it is about {said.runtime}"
    return said


def _bound(said: Vouching | str | None) -> Vouching | str | None:
    """Return what was said of this very runtime, or why it does not count."""
    if isinstance(said, Vouching) and said.runtime is None:
        return "it names no runtime"
    return said
