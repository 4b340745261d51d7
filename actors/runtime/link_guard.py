"""Signatures of what this runtime offers for direct links, and checks of what peers offer.

An offer or answer is signed by the key of its runtime (`specs.bodies.object.LinkSecurity`). A copy
is of no use elsewhere: the signature covers both runtimes, the object, the offer that an answer
belongs to, and the number of the negotiation. The guard verifies what identity providers and
domains state about the key; `fsm.p2p.dialling` decides whether this is enough.
"""

import hashlib
import math
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import attrs
import orjson
import trio

from actors.keys.base64url import read_base64url, write_base64url
from actors.keys.key_set import BadKeysError, Keys
from actors.keys.key_source import KeyRing, KeysAwayError, KeyUrl
from actors.keys.runtime_key import SEED_BYTES, is_signed, make_runtime_key, thumbprint_of
from actors.keys.token import (
    BadStatementError,
    BadTokenError,
    SignedToken,
    read_statement,
    read_token,
    read_verified,
)
from actors.runtime.own_identity import OwnIdentity
from fsm.p2p.dialling import (
    UNSIGNED,
    Distrusted,
    Shown,
    Standing,
    Vouching,
    standing_of,
)
from fsm.p2p.link_end import FIRST
from fsm.session.assertion import AssertionCore, AssertionTerms, Unacceptable
from specs.addresses.address import domain_of, is_below, message_node
from specs.bodies.object import ConnectionData, IceCandidate, LinkSecurity
from specs.bodies.sdp import read_description
from specs.errors import BadMessageError
from specs.identity import SenderIdentity, VouchedBy, said_by
from specs.jsonvalue import JsonObject
from specs.limits.node import KEYS_PAUSE, SESSION_LIFE
from specs.limits.webrtc import MAX_ICE_CANDIDATES
from transports.tls import OwnCertificate, PinnedTls

if TYPE_CHECKING:
    from actors.catalogue.trust_file import IssuerTrust, Trust


@attrs.frozen(slots=True, kw_only=True)
class Scope:
    """The link and the two runtimes for which the signature of an offer or answer is valid.

    Attributes:
        signer: Address of the runtime that signs.
        reader: Address of the other runtime.
        object: Address of the Connection object with the offer or answer.
        answers: Address of the object with the offer that an answer belongs to; empty: an offer.
        negotiation: Number of the negotiation.
    """

    signer: str
    reader: str
    object: str
    answers: str = ""
    negotiation: int = FIRST

    @property
    def purpose(self) -> str:
        """Text that the signature covers too, so that it is valid for one purpose only."""
        return "p2p-answer" if self.answers else "p2p-offer"


_ICE_PURPOSE: Final = "p2p-ice"
_NOTHING: Final = hashlib.sha256(b"").hexdigest()


class LinkGuard:
    """Signs the offers of a runtime for direct links, and verifies those of its peers.

    Args:
        identity: The runtime's key, and the statements about the key; None: a new key without
            statements.
        domain: The own domain, whose keys come from its node.
        trust: Trusted other domains and identity providers; None: there are none.
        require: Lowest level of vouching that a peer needs.
        clock_offset: Seconds from the Trio clock to the epoch.
        entropy: Source of random bytes for the keys of certificates.
    """

    def __init__(
        self,
        identity: OwnIdentity | None = None,
        *,
        domain: str = "",
        trust: "Trust | None" = None,
        require: VouchedBy = VouchedBy.NONE,
        clock_offset: float = 0.0,
        entropy: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self._entropy = entropy
        self._identity = identity or OwnIdentity(make_runtime_key())
        self._domain = domain
        self._trust = trust
        self._require = require
        self._clock_offset = clock_offset
        self._certificate: OwnCertificate | None = None
        self._channel: OwnCertificate | None = None
        self._rings: dict[str, KeyRing] = {}
        self._fetched_at: dict[str, float] = {}

    def tls(self) -> PinnedTls:
        """Return the TLS settings of one link, with the certificate of this runtime."""
        return PinnedTls(self.certificate)

    def certificate(self) -> OwnCertificate:
        """Return the certificate of this runtime; it is made at the first call."""
        if self._certificate is None:
            # Certificates are slow to import, and not needed without direct links.
            from actors.keys.certificate import make_certificate  # noqa: PLC0415

            self._certificate = make_certificate(self._entropy(SEED_BYTES))
        return self._certificate

    def channel_certificate(self) -> OwnCertificate:
        """Return the certificate that this runtime shows at data channels; made when first used."""
        if self._channel is None:
            from actors.keys.certificate import make_channel_certificate  # noqa: PLC0415 - as above

            self._channel = make_channel_certificate(self._entropy(SEED_BYTES))
        return self._channel

    # --- own offers and answers -------------------------------------------------------------------

    def sign(self, data: ConnectionData, scope: Scope) -> LinkSecurity:
        """Return the signature of a Connection object of this runtime, with certificates.

        Args:
            data: Value of the object, without the signature.
            scope: The scope that the signature covers.
        """
        from actors.keys.certificate import fingerprint_of  # noqa: PLC0415 - as above

        identity, has_sdp = self._identity, _sdp_of(data) is not None
        security = LinkSecurity(
            key=identity.key.public,
            signature="-",
            certificate=write_base64url(self.certificate().der),
            fingerprint=fingerprint_of(self.channel_certificate()) if has_sdp else None,
            assertion=identity.assertion,
            statement=identity.statement,
        )
        covered = list(_signed_texts(data, security, scope))
        return attrs.evolve(security, signature=identity.key.signature(scope.purpose, covered))

    def signed_ice(self, candidate: IceCandidate, sdp: str, scope: Scope) -> IceCandidate:
        """Return a signed message with an ICE candidate (network address) of this runtime.

        Args:
            candidate: The candidate.
            sdp: The session description that the candidate belongs to.
            scope: The scope that the signature covers.
        """
        covered = _ice_texts(candidate, sdp, scope)
        return attrs.evolve(
            candidate, signature=self._identity.key.signature(_ICE_PURPOSE, covered)
        )

    def believed_ice(self, data: ConnectionData, scope: Scope) -> tuple[IceCandidate, ...]:
        """Return the ICE candidates (network addresses) with a valid signature of the peer's key.

        Args:
            data: Value of the object. Its own signature was verified, which covers the candidates
                that its session description lists.
            scope: The scope that the signatures cover.
        """
        sdp, security = _sdp_of(data), data.security
        if sdp is None or security is None:
            return ()
        description = read_description(sdp, "answer" if scope.answers else "offer")
        return (
            *(IceCandidate(candidate, security.signature) for candidate in description.candidates),
            *self._signed_ice_of(data, security, sdp, scope),
        )

    def _signed_ice_of(
        self, data: ConnectionData, security: LinkSecurity, sdp: str, scope: Scope
    ) -> tuple[IceCandidate, ...]:
        return tuple(
            candidate
            for candidate in data.ice_candidates[:MAX_ICE_CANDIDATES]
            if is_signed(
                security.key, _ICE_PURPOSE, _ice_texts(candidate, sdp, scope), candidate.signature
            )
        )

    # --- verification of peers --------------------------------------------------------------------

    def standing(self, data: ConnectionData, scope: Scope) -> Standing:
        """Verify a peer's Connection object; return the proven identity of the peer, or the reason.

        Args:
            data: Value of the object.
            scope: The scope that the signature must cover.
        """
        security = data.security
        if security is None:
            return UNSIGNED
        try:
            thumbprint = thumbprint_of(security.key)
        except BadKeysError:
            return Distrusted("the peer offers no key")
        objection = _check_certificates(data, security, scope)
        if objection is not None:
            return Distrusted(objection)
        covered = list(_signed_texts(data, security, scope))
        proof = Shown(
            is_signed=is_below(data.owner, scope.signer)
            and is_signed(security.key, scope.purpose, covered, security.signature),
            thumbprint=thumbprint,
            certificate=security.certificate or "",
            fingerprint=security.fingerprint or "",
        )
        if proof.is_signed:
            proof = attrs.evolve(
                proof,
                assertion=self._verify_assertion(security.assertion, scope.signer, thumbprint),
                statement=self._verify_statement(security.statement, scope.signer),
            )
        return standing_of(proof, scope.signer, self._require)

    def _now(self) -> float:
        return trio.current_time() + self._clock_offset

    def _verify_statement(self, text: str | None, runtime: str) -> Vouching | str | None:
        """Return the domain's verified statement about a key, or why it is rejected."""
        if text is None:
            return None
        domain = domain_of(runtime)
        keys = self._keys_of(domain)
        if not keys:
            return f"the keys of {domain} are not known here"
        try:
            statement = read_statement(text, domain, keys, self._now())
        except BadStatementError as exc:
            return exc.reason
        user = statement.user
        if domain != self._domain:
            confirmed = said_by(domain, SenderIdentity(statement.runtime, user))
            user = None if confirmed is None else confirmed.user
        return Vouching(
            thumbprint=statement.thumbprint,
            until=statement.until - self._clock_offset,
            user=user,
            runtime=statement.runtime,
        )

    def _keys_of(self, domain: str) -> Keys:
        """Return the keys that sign statements of a domain; those in the trust file come first."""
        trust, identity = self._trust, self._identity
        configured = None if trust is None else trust.of(domain)
        if configured is not None and configured.statements:
            return configured.statements
        is_own = domain == self._domain
        return identity.domain_keys if is_own else identity.foreign_keys.get(domain, {})

    def _verify_assertion(self, text: str | None, runtime: str, key: str) -> Vouching | str | None:
        """Return an identity provider's verified assertion, or why it is rejected."""
        if text is None:
            return None
        try:
            token = read_token(text)
            issuer = self._issuer(token)
            if issuer is None:
                return "the trust file does not name its issuer"
            name = str(token.claims["iss"])
            claims = read_verified(token, self._keys_of_issuer(name, issuer))
        except BadTokenError as exc:
            return exc.reason
        domain = domain_of(runtime)
        audience = issuer.audience or frozenset({domain, message_node(domain)})
        terms = AssertionTerms(
            audience,
            frozenset({name}),
            issuer.clients,
            is_one_of_several=self._trust is not None and len(self._trust.issuers) > 1,
        )
        judged_at, login_ends = _login_of(claims, self._now())
        # A token is used at many links: only the node where it opens a session counts its uses.
        verdict = AssertionCore(terms).judge(claims, token.digest, judged_at, key)
        if isinstance(verdict, Unacceptable):
            return verdict.why
        if verdict.identity.key is None:
            return "it is bound to no key"
        return Vouching(
            thumbprint=verdict.identity.key,
            until=login_ends - self._clock_offset,
            user=verdict.identity.user,
            runtime=verdict.identity.runtime,
        )

    def _issuer(self, token: SignedToken) -> "IssuerTrust | None":
        name, trust = token.claims.get("iss"), self._trust
        return trust.issuers.get(name) if trust is not None and isinstance(name, str) else None

    def _keys_of_issuer(self, name: str, issuer: "IssuerTrust") -> Keys:
        if isinstance(issuer.keys, Mapping):
            return issuer.keys
        ring = self._rings.get(name)
        return {} if ring is None else ring.known_keys()

    # --- fetched keys -----------------------------------------------------------------------------

    def lacks_keys(self, data: ConnectionData) -> bool:
        """Return whether keys to verify an object are missing and can be fetched now."""
        return self._find_issuer(data) is not None

    async def fetch_keys(self, data: ConnectionData) -> None:
        """Fetch the keys that the verification of an object needs, at most once per `KEYS_PAUSE`.

        Args:
            data: Value of the peer's object.

        If cancelled, some keys may be missing until the next attempt.
        """
        wanted = self._find_issuer(data)
        if wanted is None:
            return
        name, key = wanted
        with suppress(KeysAwayError):
            await self._rings[name].keys_for(key)
        self._fetched_at[name] = trio.current_time()

    def _find_issuer(self, data: ConnectionData) -> tuple[str, str | None] | None:
        """Return the issuer whose keys must be fetched, and the key's name; None: fetch no keys."""
        text = None if data.security is None else data.security.assertion
        try:
            token = None if text is None else read_token(text)
        except BadTokenError:
            return None
        issuer = None if token is None else self._issuer(token)
        if token is None or issuer is None or isinstance(issuer.keys, Mapping):
            return None
        name = str(token.claims["iss"])
        ring = self._rings.setdefault(name, KeyRing(KeyUrl(issuer.keys)))
        cached, fetched_at = ring.known_keys(), self._fetched_at.get(name, -math.inf)
        is_cached = token.key_name in cached if token.key_name is not None else bool(cached)
        is_due = trio.current_time() - fetched_at >= KEYS_PAUSE
        return (name, token.key_name) if is_due and not is_cached else None

    async def aclose(self) -> None:
        """Close the connections to identity providers.

        If cancelled, some are closed by force.
        """
        for ring in self._rings.values():
            await ring.aclose()


def _login_of(claims: JsonObject, now: float) -> tuple[float, float]:
    """Return the time at which to judge a token, and the time at which its login ends.

    As at a node, a login outlives the token by which the runtime has opened a session.

    Args:
        claims: The claims of the token.
        now: Seconds since the epoch.
    """
    issued, ends = claims.get("iat"), claims.get("exp")
    if not isinstance(issued, int | float) or not isinstance(ends, int | float):
        return now, now
    login_ends = issued + SESSION_LIFE
    return (min(now, ends) if now < login_ends else now), login_ends


def _sdp_of(data: ConnectionData) -> str | None:
    description = data.connection_description
    return None if description is None else description.sdp


def _check_certificates(data: ConnectionData, security: LinkSecurity, scope: Scope) -> str | None:
    """Return why the certificates of an object are refused; None: they are accepted."""
    sdp = _sdp_of(data)
    if security.certificate is None and sdp is None:
        return "the peer offers no certificate"
    if security.certificate is not None and not _is_certificate(security.certificate):
        return "the peer offers no certificate"
    if sdp is None:
        return None
    try:
        description = read_description(sdp, "answer" if scope.answers else "offer")
    except BadMessageError as exc:
        return exc.reason
    if description.fingerprint != security.fingerprint:
        return "the session description names another certificate than the one that is signed"
    return None


def _is_certificate(text: str) -> bool:
    # Certificates are slow to import, and not needed without direct links.
    from actors.keys.certificate import is_certificate  # noqa: PLC0415

    try:
        return is_certificate(read_base64url(text))
    except ValueError:
        return False


def _ice_texts(candidate: IceCandidate, sdp: str, scope: Scope) -> list[str]:
    """Return the fields of an ICE candidate that its signature covers, in order."""
    line = candidate.sdp_m_line_index
    return [
        scope.signer,
        scope.reader,
        scope.object,
        str(scope.negotiation),
        hashlib.sha256(sdp.encode()).hexdigest(),
        candidate.candidate,
        candidate.sdp_mid or "",
        "" if line is None else str(line),
    ]


def _signed_texts(data: ConnectionData, security: LinkSecurity, scope: Scope) -> Iterator[str]:
    """Yield the texts that a signature covers; candidates come last, as their number varies."""
    yield from (scope.signer, scope.reader, data.owner, scope.object, scope.answers)
    yield str(scope.negotiation)
    yield hashlib.sha256(read_base64url(security.certificate or "")).hexdigest()
    for text in (security.assertion, security.statement, _sdp_of(data)):
        yield _NOTHING if text is None else hashlib.sha256(text.encode()).hexdigest()
    yield security.fingerprint or ""
    for candidate in data.candidates:
        yield orjson.dumps(
            [candidate.kind, candidate.address, candidate.secret, candidate.host]
        ).decode()
