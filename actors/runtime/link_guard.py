"""Signs what this runtime offers at direct links, and verifies what peers offer.

An offer or answer is signed by the key of its runtime (`specs.bodies.object.LinkSecurity`). A copy
of one is of no use elsewhere: the signature covers both runtimes, the object, the offer that an
answer answers, and the number of the negotiation. What identity providers and domains say of that
key is verified here; `fsm.p2p.dialling` decides whether it is enough.
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
from fsm.p2p.dialling import UNSIGNED, Distrusted, Shown, Standing, Vouching, standing_of
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
class Bond:
    """What an offer or answer is good for.

    Attributes:
        signer: Address of the runtime whose it is.
        reader: Address of the other runtime.
        object: Address of the Connection object that holds it.
        answers: Address of the object with the offer that it answers; empty: it is an offer.
        negotiation: Number of the negotiation.
    """

    signer: str
    reader: str
    object: str
    answers: str = ""
    negotiation: int = FIRST

    @property
    def purpose(self) -> str:
        """What its signature is for."""
        return "p2p-answer" if self.answers else "p2p-offer"


_ICE_PURPOSE: Final = "p2p-ice"
_NOTHING: Final = hashlib.sha256(b"").hexdigest()


class LinkGuard:
    """What a runtime shows at its direct links, and whom it believes.

    Args:
        identity: The runtime's key, and what was said of it; None: a key of its own, of which
            nothing was said.
        domain: Its own domain, whose keys it has from its node.
        trust: Other domains, and identity providers; None: none are believed.
        require: Who has to vouch for a peer, at least.
        clock_offset: Seconds from the Trio clock to the epoch.
        entropy: Source of random bytes for the key of its certificate.
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
        self._asked: dict[str, float] = {}

    def tls(self) -> PinnedTls:
        """Return the TLS of one link: it shows the certificate of this runtime."""
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

    # --- what is shown ----------------------------------------------------------------------

    def sign(self, data: ConnectionData, bond: Bond) -> LinkSecurity:
        """Sign what an object of this runtime holds.

        Args:
            data: What it holds, but for the signature.
            bond: What it is good for.
        """
        from actors.keys.certificate import fingerprint_of  # noqa: PLC0415 - as above

        identity, has_sdp = self._identity, _sdp_of(data) is not None
        shown = LinkSecurity(
            key=identity.key.public,
            signature="-",
            certificate=write_base64url(self.certificate().der),
            fingerprint=fingerprint_of(self.channel_certificate()) if has_sdp else None,
            assertion=identity.assertion,
            statement=identity.statement,
        )
        covered = list(_signed_texts(data, shown, bond))
        return attrs.evolve(shown, signature=identity.key.signature(bond.purpose, covered))

    def signed_ice(self, candidate: IceCandidate, sdp: str, bond: Bond) -> IceCandidate:
        """Sign a candidate of ICE of this runtime.

        Args:
            candidate: The candidate.
            sdp: The session description that it belongs to.
            bond: What that is good for.
        """
        covered = _covered_of_ice(candidate, sdp, bond)
        return attrs.evolve(
            candidate, signature=self._identity.key.signature(_ICE_PURPOSE, covered)
        )

    def believed_ice(self, data: ConnectionData, bond: Bond) -> tuple[IceCandidate, ...]:
        """Return the candidates of ICE that the key of a peer's object has signed.

        Args:
            data: What the object holds; its own signature is believed, and so is what its session
                description lists.
            bond: What it is good for.
        """
        sdp, shown = _sdp_of(data), data.security
        if sdp is None or shown is None:
            return ()
        described = read_description(sdp, "answer" if bond.answers else "offer")
        return (
            *(IceCandidate(candidate, shown.signature) for candidate in described.candidates),
            *self._signed_ice_of(data, shown, sdp, bond),
        )

    def _signed_ice_of(
        self, data: ConnectionData, shown: LinkSecurity, sdp: str, bond: Bond
    ) -> tuple[IceCandidate, ...]:
        return tuple(
            candidate
            for candidate in data.ice_candidates[:MAX_ICE_CANDIDATES]
            if is_signed(
                shown.key, _ICE_PURPOSE, _covered_of_ice(candidate, sdp, bond), candidate.signature
            )
        )

    # --- whom it believes -------------------------------------------------------------------

    def standing(self, data: ConnectionData, bond: Bond) -> Standing:
        """Return whether what a peer's object holds is believed.

        Args:
            data: What it holds.
            bond: What it must be good for.
        """
        shown = data.security
        if shown is None:
            return UNSIGNED
        try:
            thumbprint = thumbprint_of(shown.key)
        except BadKeysError:
            return Distrusted("the peer offers no key")
        objection = _objection_to_certificates(data, shown, bond)
        if objection is not None:
            return Distrusted(objection)
        covered = list(_signed_texts(data, shown, bond))
        found = Shown(
            is_signed=is_below(data.owner, bond.signer)
            and is_signed(shown.key, bond.purpose, covered, shown.signature),
            thumbprint=thumbprint,
            certificate=shown.certificate or "",
            fingerprint=shown.fingerprint or "",
        )
        if found.is_signed:
            found = attrs.evolve(
                found,
                assertion=self._verify_assertion(shown.assertion, bond.signer, thumbprint),
                statement=self._verify_statement(shown.statement, bond.signer),
            )
        return standing_of(found, bond.signer, self._require)

    def _now(self) -> float:
        return trio.current_time() + self._clock_offset

    def _verify_statement(self, text: str | None, runtime: str) -> Vouching | str | None:
        """Return the domain's verified statement about a key, or why it is not believed."""
        if text is None:
            return None
        domain = domain_of(runtime)
        keys = self._keys_of(domain)
        if not keys:
            return f"the keys of {domain} are not known here"
        try:
            said = read_statement(text, domain, keys, self._now())
        except BadStatementError as exc:
            return exc.reason
        user = said.user
        if domain != self._domain:
            believed = said_by(domain, SenderIdentity(said.runtime, user))
            user = None if believed is None else believed.user
        return Vouching(
            thumbprint=said.thumbprint,
            until=said.until - self._clock_offset,
            user=user,
            runtime=said.runtime,
        )

    def _keys_of(self, domain: str) -> Keys:
        """Return the keys by which a domain states things: the operator's word comes first."""
        trust, identity = self._trust, self._identity
        said = None if trust is None else trust.of(domain)
        if said is not None and said.statements:
            return said.statements
        is_own = domain == self._domain
        return identity.domain_keys if is_own else identity.foreign_keys.get(domain, {})

    def _verify_assertion(self, text: str | None, runtime: str, key: str) -> Vouching | str | None:
        """Return an identity provider's verified assertion, or why it is not believed."""
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
        meant = issuer.audience or frozenset({domain, message_node(domain)})
        terms = AssertionTerms(
            meant,
            frozenset({name}),
            issuer.clients,
            is_one_of_several=self._trust is not None and len(self._trust.issuers) > 1,
        )
        at, over = _login_of(claims, self._now())
        # A token is shown at many links: only the node that it opens a session at counts its uses.
        verdict = AssertionCore(terms).judge(claims, token.digest, at, key)
        if isinstance(verdict, Unacceptable):
            return verdict.why
        if verdict.identity.key is None:
            return "it is bound to no key"
        return Vouching(
            thumbprint=verdict.identity.key,
            until=over - self._clock_offset,
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
        return {} if ring is None else ring.at_hand()

    # --- keys that have to be fetched -------------------------------------------------------

    def lacks_keys(self, data: ConnectionData) -> bool:
        """Return whether keys can be fetched by which an offer or answer may be verified."""
        return self._find_issuer(data) is not None

    async def fetch_keys(self, data: ConnectionData) -> None:
        """Get these keys, if they are to be had; each source is asked once in a while only.

        Args:
            data: What the object of a peer holds.

        If cancelled, some keys may be missing until the next attempt.
        """
        wanted = self._find_issuer(data)
        if wanted is None:
            return
        name, key = wanted
        with suppress(KeysAwayError):
            await self._rings[name].keys_for(key)
        self._asked[name] = trio.current_time()

    def _find_issuer(self, data: ConnectionData) -> tuple[str, str | None] | None:
        """Return the issuer whose keys are fetched now, and the name of the wanted key."""
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
        held, asked = ring.at_hand(), self._asked.get(name, -math.inf)
        is_held = token.key_name in held if token.key_name is not None else bool(held)
        is_late = trio.current_time() - asked >= KEYS_PAUSE
        return (name, token.key_name) if is_late and not is_held else None

    async def aclose(self) -> None:
        """Close the connections to identity providers.

        If cancelled, some are closed by force.
        """
        for ring in self._rings.values():
            await ring.aclose()


def _login_of(claims: JsonObject, now: float) -> tuple[float, float]:
    """Return the time at which a token is judged, and when the login that it proved is over.

    As at a node, a login outlives its token, by which the runtime has opened a session.

    Args:
        claims: What the token says.
        now: Seconds since the epoch.
    """
    issued, ends = claims.get("iat"), claims.get("exp")
    if not isinstance(issued, int | float) or not isinstance(ends, int | float):
        return now, now
    over = issued + SESSION_LIFE
    return (min(now, ends) if now < over else now), over


def _sdp_of(data: ConnectionData) -> str | None:
    described = data.connection_description
    return None if described is None else described.sdp


def _objection_to_certificates(data: ConnectionData, shown: LinkSecurity, bond: Bond) -> str | None:
    """Return why the certificates that an object names are refused; None: they are not."""
    sdp = _sdp_of(data)
    if shown.certificate is None and sdp is None:
        return "the peer offers no certificate"
    if shown.certificate is not None and not _is_certificate(shown.certificate):
        return "the peer offers no certificate"
    if sdp is None:
        return None
    try:
        described = read_description(sdp, "answer" if bond.answers else "offer")
    except BadMessageError as exc:
        return exc.reason
    if described.fingerprint != shown.fingerprint:
        return "the session description names another certificate than the one that is signed"
    return None


def _is_certificate(text: str) -> bool:
    # Certificates are slow to import, and not needed without direct links.
    from actors.keys.certificate import is_certificate  # noqa: PLC0415

    try:
        return is_certificate(read_base64url(text))
    except ValueError:
        return False


def _covered_of_ice(candidate: IceCandidate, sdp: str, bond: Bond) -> list[str]:
    """Return what the signature of a candidate of ICE covers, in order."""
    line = candidate.sdp_m_line_index
    return [
        bond.signer,
        bond.reader,
        bond.object,
        str(bond.negotiation),
        hashlib.sha256(sdp.encode()).hexdigest(),
        candidate.candidate,
        candidate.sdp_mid or "",
        "" if line is None else str(line),
    ]


def _signed_texts(data: ConnectionData, shown: LinkSecurity, bond: Bond) -> Iterator[str]:
    """Return what a signature covers, in order; candidates come last, as their number varies."""
    yield from (bond.signer, bond.reader, data.owner, bond.object, bond.answers)
    yield str(bond.negotiation)
    yield hashlib.sha256(read_base64url(shown.certificate or "")).hexdigest()
    for said in (shown.assertion, shown.statement, _sdp_of(data)):
        yield _NOTHING if said is None else hashlib.sha256(said.encode()).hexdigest()
    yield shown.fingerprint or ""
    for candidate in data.candidates:
        yield orjson.dumps(
            [candidate.kind, candidate.address, candidate.secret, candidate.host]
        ).decode()
