"""Policies for direct links: permitted candidates, trust in a peer's offer or answer.

A candidate is an address at which a runtime can be dialled; a peer lists its own in the offer or
answer by which a link is negotiated. The module decides which candidates may be dialled and
offered, depending on where they can be reached, and proves that two runtimes are on the same
machine (T10). A hostile peer could list `10.0.0.7:22`, so that this runtime tries a port of its own
network, or `127.0.0.1:22`, a port of its own machine.

The signature of an offer or answer, the assertion of an identity provider and the statement of a
domain are verified elsewhere; the results are inputs here. An offer or answer has no effect before
it is trusted: no candidate is dialled, no certificate is accepted.
"""

import hmac
import math
from collections.abc import Iterable
from enum import Enum
from ipaddress import IPv6Address, ip_address
from typing import Final, TypeAlias, assert_never

import attrs

from fsm.p2p.link_policy import NO_LINKS, LinkPolicy
from specs.addresses.address import (
    host_in,
    is_numeric,
    is_public_address,
    is_public_host,
)
from specs.bodies.object import Candidate, IceCandidate
from specs.bodies.sdp import read_ice
from specs.errors import BadMessageError
from specs.identity import SenderIdentity, VouchedBy

_UNIX: Final = "unix"
_WEBRTC: Final = "webrtc"
_MULTICAST_DNS: Final = ".local"
_LOCALHOST: Final = "localhost"
_PROOF_CHARACTERS: Final = 32
"""Length of the proof that a candidate is from a machine: 128 bits in hexadecimal digits."""


class Place(Enum):
    """The range from which a network address can be reached."""

    MACHINE = "machine"
    """The address can be reached only from the same machine."""

    NETWORK = "network"
    """The address can be reached from the same network, or is a name of an unknown address."""

    ANYWHERE = "anywhere"
    """The address is public."""

    NOWHERE = "nowhere"
    """The text is no valid address, or is ambiguous."""


def place_of(kind: str, address: str) -> Place:
    """Return the range from which a candidate's address can be reached.

    Args:
        kind: Kind of the candidate.
        address: Address of the candidate.
    """
    if kind == _UNIX:
        return Place.MACHINE
    host = host_in(address if "://" in address else f"//{address}")
    if not host:
        return Place.NOWHERE
    if is_public_address(host):
        return Place.ANYWHERE
    return Place.MACHINE if host == _LOCALHOST else _place_of_host(host)


def _place_of_host(host: str) -> Place:
    try:
        address = ip_address(host)
    except ValueError:
        # Some resolvers read `127.1` and `0x7f000001` as addresses.
        is_name = host[0].isalpha() or is_public_host(host)
        return Place.NETWORK if is_name else Place.NOWHERE
    if address.is_loopback:
        return Place.MACHINE
    is_mapped = isinstance(address, IPv6Address) and address.ipv4_mapped is not None
    is_odd = address.is_unspecified or address.is_multicast or address.is_global or is_mapped
    return Place.NOWHERE if is_odd else Place.NETWORK


def _place_of_ice(candidate: str) -> Place:
    """Return the range from which an ICE candidate can be reached; only UDP is used.

    A browser hides its private network addresses behind names of multicast DNS.
    """
    try:
        fields = read_ice(candidate)
    except BadMessageError:
        return Place.NOWHERE
    if fields is None:
        return Place.ANYWHERE
    if fields.protocol != "udp":
        return Place.NOWHERE
    if fields.host.lower().endswith(_MULTICAST_DNS):
        return Place.NETWORK
    if is_public_address(fields.host):
        return Place.ANYWHERE
    return _place_of_host(fields.host) if is_numeric(fields.host) else Place.NOWHERE


def _machine_proof(machine: bytes, kind: str, address: str, secret: str) -> str:
    """Return the proof that a candidate is from a machine: a digest with the machine's secret."""
    text = f"protofly-machine/1|{kind}|{address}|{secret}"
    return hmac.new(machine, text.encode(), "sha256").hexdigest()[:_PROOF_CHARACTERS]


@attrs.frozen(slots=True)
class DialPolicy:
    """Decides which candidates a runtime may dial, and which it offers to others (T10).

    Attributes:
        kinds: Kinds of candidates, best first.
        machine: A secret that the processes of this machine share; None: unknown, so that no peer
            counts as being on the same machine.
        links: The link policy: only peers named in it get private addresses of this network, and
            only their private addresses are dialled.
    """

    kinds: tuple[str, ...]
    machine: bytes | None = None
    links: LinkPolicy = NO_LINKS

    def offers(self, kind: str, address: str, remote: str) -> bool:
        """Return whether an address of this runtime may be offered to another runtime.

        Args:
            kind: Kind of the candidate.
            address: Address of the candidate.
            remote: The other runtime.
        """
        return self._offers(place_of(kind, address), remote)

    def _offers(self, place: Place, remote: str) -> bool:
        match place:
            case Place.MACHINE:
                return self.machine is not None
            case Place.NETWORK:
                return self.links.names(remote)
            case Place.ANYWHERE:
                return True
            case Place.NOWHERE:
                return False
            case _:
                assert_never(place)

    def allows(self, candidate: Candidate, remote: str) -> bool:
        """Return whether a candidate that another runtime offers may be dialled.

        Args:
            candidate: The candidate.
            remote: The runtime that offers it.
        """
        if candidate.kind not in self.kinds:
            return False
        if place_of(candidate.kind, candidate.address) is Place.MACHINE:
            words = (candidate.kind, candidate.address, candidate.secret)
            return self._is_of_this_machine(candidate.host, *words)
        return self.offers(candidate.kind, candidate.address, remote)

    def sign_candidate(self, candidate: Candidate) -> Candidate:
        """Return a candidate of this runtime, with the proof of its machine if needed."""
        is_near = place_of(candidate.kind, candidate.address) is Place.MACHINE
        if self.machine is None or not is_near:
            return candidate
        words = (candidate.kind, candidate.address, candidate.secret)
        return attrs.evolve(candidate, host=_machine_proof(self.machine, *words))

    def _is_of_this_machine(self, host: str | None, *words: str) -> bool:
        if self.machine is None or host is None:
            return False
        expected = _machine_proof(self.machine, *words)
        return hmac.compare_digest(expected.encode(), host.encode())

    # --- data channels ----------------------------------------------------------------------

    def offers_ice(self, candidate: str, remote: str) -> bool:
        """Return whether an ICE candidate of this runtime may be offered to another runtime.

        Args:
            candidate: The candidate.
            remote: The other runtime.
        """
        return self._offers(_place_of_ice(candidate), remote)

    def allows_ice(self, candidate: IceCandidate, remote: str) -> bool:
        """Return whether an ICE candidate of another runtime may be used.

        Args:
            candidate: The candidate.
            remote: The runtime that offers it.
        """
        place = _place_of_ice(candidate.candidate)
        if place is Place.MACHINE:
            return self._is_of_this_machine(candidate.host, _WEBRTC, candidate.candidate, "")
        return self._offers(place, remote)

    def ice_proof(self, candidate: str) -> str | None:
        """Return the proof that an ICE candidate is from this machine, or None if not needed."""
        if self.machine is None or _place_of_ice(candidate) is not Place.MACHINE:
            return None
        return _machine_proof(self.machine, _WEBRTC, candidate, "")


@attrs.frozen(slots=True)
class ChannelAnswer:
    """The peer's answer (SDP) to the data channel that this runtime has offered."""

    sdp: str


class DialPlan:
    """Chooses the next candidate of a peer to dial; each is tried once in a round."""

    def __init__(self, policy: DialPolicy, remote: str) -> None:
        self._policy = policy
        self._remote = remote
        self._known: dict[tuple[str, str], Candidate] = {}
        self._tried: set[tuple[str, str]] = set()
        self._answer: ChannelAnswer | None = None
        self._is_answer_tried = False

    @property
    def is_blank(self) -> bool:
        """True if no candidate of the peer is known yet."""
        return not self._known and self._answer is None

    @property
    def is_repeatable(self) -> bool:
        """True unless the peer offers only a data channel, which cannot be dialled twice."""
        if self._answer is None:
            return True
        return any(self._policy.allows(each, self._remote) for each in self._known.values())

    def learn_answer(self, sdp: str) -> None:
        """Add the peer's answer to the offered data channel; only the first answer is used."""
        self._answer = self._answer or ChannelAnswer(sdp)

    def learn(self, candidates: Iterable[Candidate]) -> None:
        """Add candidates of the peer; known candidates are ignored."""
        for candidate in candidates:
            self._known.setdefault((candidate.kind, candidate.address), candidate)

    def next(self) -> Candidate | ChannelAnswer | None:
        """Return the best candidate to dial next; None: all were tried in this round."""
        rank, key, candidate = self._best_listener()
        if self._is_answer_before(rank if candidate is not None else len(self._policy.kinds)):
            self._is_answer_tried = True
            return self._answer
        if candidate is not None:
            self._tried.add(key)
        return candidate

    def _is_answer_before(self, rank: int) -> bool:
        if self._answer is None or self._is_answer_tried or _WEBRTC not in self._policy.kinds:
            return False
        return self._policy.kinds.index(_WEBRTC) < rank

    def _best_listener(self) -> tuple[int, tuple[str, str], Candidate | None]:
        untried = [
            (self._policy.kinds.index(candidate.kind), key, candidate)
            for key, candidate in self._known.items()
            if key not in self._tried and self._policy.allows(candidate, self._remote)
        ]
        return min(untried, key=lambda entry: entry[0], default=(0, ("", ""), None))

    def restart(self) -> None:
        """Begin a new round: every candidate may be tried again."""
        self._tried.clear()

    def forget(self) -> None:
        """Forget all candidates, since a new negotiation begins."""
        self._known.clear()
        self._tried.clear()
        self._answer = None
        self._is_answer_tried = False


# Decision whether the offer or answer of a peer is trusted, by its proofs and the requirements.


@attrs.frozen(slots=True, kw_only=True)
class Vouching:
    """A verified statement of an identity provider or a domain about the owner of a key.

    Attributes:
        thumbprint: Thumbprint of the key.
        until: Time at which the statement expires, in seconds on the host's clock.
        user: Address of the user who owns the key; None: not stated.
        runtime: The only runtime that owns the key; None: not stated, so the statement is useless
            as a proof of a runtime.
    """

    thumbprint: str
    until: float = math.inf
    user: str | None = None
    runtime: str | None = None


@attrs.frozen(slots=True, kw_only=True)
class Shown:
    """The verified proofs in a peer's offer or answer.

    Attributes:
        is_signed: Whether the named key has signed the offer or answer, unchanged, for this link.
        thumbprint: Thumbprint of the key.
        certificate: The certificate that the peer will present, as text; empty: none.
        fingerprint: Fingerprint of the certificate for a data channel; empty: none.
        assertion: The statement of an identity provider, or the reason why it is not valid; None:
            the peer shows none.
        statement: The statement of the peer's domain, in the same form.
    """

    is_signed: bool
    thumbprint: str
    certificate: str
    fingerprint: str = ""
    assertion: Vouching | str | None = None
    statement: Vouching | str | None = None


@attrs.frozen(slots=True)
class Unsigned:
    """Result of the trust decision: the peer's object is not signed yet, so it is not used."""


UNSIGNED: Final = Unsigned()


@attrs.frozen(slots=True)
class Believed:
    """Result of the trust decision: the offer or answer is proven to be the peer's.

    Attributes:
        identity: The identity of the peer.
        certificate: The only certificate that is accepted from the peer; empty: none.
        until: Time at which the proof expires, in seconds on the host's clock.
        fingerprint: Fingerprint of the only certificate for a data channel; empty: none.
    """

    identity: SenderIdentity
    certificate: str
    until: float = math.inf
    fingerprint: str = ""

    def is_same_end(self, other: "Believed") -> bool:
        """Return whether another offer or answer is from the same peer, by its certificates.

        At least one certificate must be the same, and none may differ. A peer may offer a data
        channel, with a certificate of its own, in one negotiation and not in another.
        """
        pairs = ((self.certificate, other.certificate), (self.fingerprint, other.fingerprint))
        matches = [pair == two for pair, two in pairs if pair and two]
        return bool(matches) and all(matches)


@attrs.frozen(slots=True)
class Distrusted:
    """Result of the trust decision: the object is not the peer's, or the proof is insufficient."""

    why: str


Standing: TypeAlias = Unsigned | Believed | Distrusted

_RANKS: Final = (VouchedBy.NONE, VouchedBy.DOMAIN, VouchedBy.IDENTITY_PROVIDER)
_WORDS: Final = {
    VouchedBy.DOMAIN: "its domain",
    VouchedBy.IDENTITY_PROVIDER: "an identity provider",
}


def standing_of(shown: Shown, remote: str, require: VouchedBy) -> Believed | Distrusted:
    """Decide whether an offer or answer is trusted.

    The assertion of an identity provider has precedence over the statement of a domain. It counts
    only if it names the runtime: an assertion for the key alone would be valid for every runtime.
    If both name different users, neither is trusted.

    Args:
        shown: The verified proofs in the offer or answer.
        remote: Address of the runtime that must be its author.
        require: The party that must vouch for that runtime, at least.
    """
    if not shown.is_signed:
        return Distrusted("what the peer offers is not signed by the key that it names")
    assertion = _usable(shown.assertion, shown.thumbprint, remote)
    statement = _usable(shown.statement, shown.thumbprint, remote)
    match assertion, statement:
        case Vouching(user=one), Vouching(user=other) if other not in {None, one}:
            return Distrusted("its domain and its identity provider name different users")
    assertion, statement = _vouching_for(assertion), _vouching_for(statement)
    vouched_by, said = VouchedBy.NONE, None
    if isinstance(assertion, Vouching):
        vouched_by, said = VouchedBy.IDENTITY_PROVIDER, assertion
    elif isinstance(statement, Vouching):
        vouched_by, said = VouchedBy.DOMAIN, statement
    if _RANKS.index(vouched_by) < _RANKS.index(require):
        required = assertion if require is VouchedBy.IDENTITY_PROVIDER else statement
        why = required if isinstance(required, str) else "it shows nothing of the kind"
        return Distrusted(f"{_WORDS[require]} has to vouch for the peer: {why}")
    if said is None:
        return Believed(SenderIdentity(remote), shown.certificate, fingerprint=shown.fingerprint)
    identity = SenderIdentity(remote, said.user, vouched_by)
    return Believed(identity, shown.certificate, said.until, shown.fingerprint)


def _usable(vouching: Vouching | str | None, thumbprint: str, remote: str) -> Vouching | str | None:
    """Return a statement about this key and runtime; otherwise the reason why it is not valid."""
    if not isinstance(vouching, Vouching):
        return vouching
    if vouching.thumbprint != thumbprint:
        return "it is about another key"
    if vouching.runtime not in {None, remote}:
        return f"it is about {vouching.runtime}"
    return vouching


def _vouching_for(vouching: Vouching | str | None) -> Vouching | str | None:
    """Return a statement that names a runtime; otherwise the reason why it is not valid."""
    if isinstance(vouching, Vouching) and vouching.runtime is None:
        return "it names no runtime"
    return vouching
