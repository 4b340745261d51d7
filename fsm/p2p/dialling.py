"""Which peers are dialled and by which of their candidates, and which are believed.

From where a candidate can be reached, and the proof that two ends are on one machine (T10).

A peer writes a candidate: `10.0.0.7:22` in it would have this end try a port
of its own network, and `127.0.0.1:22` one of its own machine.

The signature of an offer or answer, the assertion of an identity provider and the statement of a
domain are verified before; what was found is the input here. Nothing of an offer or answer counts
before it is believed: no candidate is dialled, no certificate is accepted.
"""

import hmac
import math
from collections.abc import Iterable
from enum import Enum, StrEnum
from ipaddress import IPv6Address, ip_address
from typing import Final, TypeAlias, assert_never, final

import attrs

from specs.addresses.address import (
    domain_of,
    host_in,
    is_below,
    is_numeric,
    is_public_address,
    is_public_host,
)
from specs.bodies.object import Candidate, IceCandidate
from specs.bodies.sdp import read_ice
from specs.errors import BadMessageError
from specs.identity import SenderIdentity, VouchedBy

# Preferences for direct links: use, peers, and the wait of messages (RES-06, RES-09).

_ANY_BELOW: Final = "*."


class P2pUse(StrEnum):
    """Use of direct links."""

    REQUIRED = "required"
    """A message without a link is not sent: none goes by a node that could go by a link."""

    WHENEVER_POSSIBLE = "whenever-possible"

    WHEN_ASKED = "when-asked"
    """By a message that says so: `body.p2p` is `true`."""

    NEVER = "never"


class P2pWait(StrEnum):
    """Handling of messages while a link is being set up (C-20)."""

    OPPORTUNISTIC = "opportunistic"
    """They go by the node."""

    AWAIT = "await"
    """They wait for the link, at most `P2P_TIMEOUT`; then they go by the node."""


@final
@attrs.frozen(slots=True)
class PeerPolicy:
    """The use of links to some peers.

    Attributes:
        peer: A domain, `*.` and a domain for those below it, or a runtime's address.
    """

    peer: str
    use: P2pUse

    def covers(self, address: str) -> bool:
        """Return whether an address of a runtime, or of what lives in one, is meant."""
        if "://" in self.peer:
            return is_below(address, self.peer)
        domain = domain_of(address)
        if self.peer.startswith(_ANY_BELOW):
            return domain.endswith(self.peer[1:])
        return domain == self.peer


@final
@attrs.frozen(slots=True)
class LinkPolicy:
    """The preferences of one runtime.

    Attributes:
        use: For peers that no entry names.
        peers: Entries of peers; the first that covers a peer counts.
        wait: Handling of messages during set-up.
    """

    use: P2pUse = P2pUse.NEVER
    peers: tuple[PeerPolicy, ...] = ()
    wait: P2pWait = P2pWait.OPPORTUNISTIC

    def of(self, *addresses: str) -> P2pUse:
        """Return the use for a peer, named by its runtime or by what lives there."""
        covering = (
            peer.use for peer in self.peers if any(peer.covers(address) for address in addresses)
        )
        return next(covering, self.use)

    def names(self, address: str) -> bool:
        """Return whether a peer is named as one that a link is wanted to."""
        covering = (peer.use for peer in self.peers if peer.covers(address))
        return next(covering, P2pUse.NEVER) is not P2pUse.NEVER

    @property
    def holds_messages(self) -> bool:
        """True if a message to some peer may wait for a link, or may not be sent without one."""
        is_required = any(peer.use is P2pUse.REQUIRED for peer in self.peers)
        return self.wait is P2pWait.AWAIT or self.use is P2pUse.REQUIRED or is_required

    @property
    def wants_any(self) -> bool:
        """True if there may be a link to any peer."""
        return any(
            use is not P2pUse.NEVER for use in (self.use, *(peer.use for peer in self.peers))
        )


WHENEVER_POSSIBLE: Final = LinkPolicy(P2pUse.WHENEVER_POSSIBLE)
"""The default of a runtime."""

NO_LINKS: Final = LinkPolicy()
"""The policy of a runtime without P2P."""


_UNIX: Final = "unix"
_WEBRTC: Final = "webrtc"
_MULTICAST_DNS: Final = ".local"
_LOCALHOST: Final = "localhost"
_PROOF_CHARACTERS: Final = 32
"""128 bits in hexadecimal digits."""


class Place(Enum):
    """The hosts from which an address leads to the same place."""

    MACHINE = "machine"
    """From this machine only."""

    NETWORK = "network"
    """From the same network, or it is a name, which may stand for anything."""

    ANYWHERE = "anywhere"

    NOWHERE = "nowhere"
    """It is no address, or has more than one meaning."""


def place_of(kind: str, address: str) -> Place:
    """Return from where a candidate's address can be reached.

    Args:
        kind: Kind of the candidate.
        address: Its address.
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
    """Return from where a candidate of ICE can be reached; only UDP is used.

    A browser hides its addresses in a private network behind names of multicast DNS.
    """
    try:
        found = read_ice(candidate)
    except BadMessageError:
        return Place.NOWHERE
    if found is None:
        return Place.ANYWHERE
    if found.protocol != "udp":
        return Place.NOWHERE
    if found.host.lower().endswith(_MULTICAST_DNS):
        return Place.NETWORK
    if is_public_address(found.host):
        return Place.ANYWHERE
    return _place_of_host(found.host) if is_numeric(found.host) else Place.NOWHERE


def _machine_proof(machine: bytes, kind: str, address: str, secret: str) -> str:
    """Return what only a process of one machine can say of a candidate."""
    text = f"protofly-machine/1|{kind}|{address}|{secret}"
    return hmac.new(machine, text.encode(), "sha256").hexdigest()[:_PROOF_CHARACTERS]


@attrs.frozen(slots=True)
class DialPolicy:
    """The candidates that this end dials, and lets others dial (T10).

    Attributes:
        kinds: Kinds of candidates, best first.
        machine: A secret that the processes of this machine share; None:
            unknown, so no peer counts as on the same machine.
        links: Peers that are named there may know places of this network, and name such places.
    """

    kinds: tuple[str, ...]
    machine: bytes | None = None
    links: LinkPolicy = NO_LINKS

    def offers(self, kind: str, address: str, remote: str) -> bool:
        """Return whether an address of this end is offered to a runtime.

        Args:
            kind: Kind of the candidate.
            address: Its address.
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
        """Return whether a candidate of a runtime may be dialled.

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
        """Return a candidate of ours, with the proof of its machine where it needs one."""
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
        """Return whether a candidate of ICE of this end is offered to a runtime.

        Args:
            candidate: The candidate.
            remote: The other runtime.
        """
        return self._offers(_place_of_ice(candidate), remote)

    def allows_ice(self, candidate: IceCandidate, remote: str) -> bool:
        """Return whether a candidate of ICE of a runtime may be tried.

        Args:
            candidate: The candidate.
            remote: The runtime that offers it.
        """
        place = _place_of_ice(candidate.candidate)
        if place is Place.MACHINE:
            return self._is_of_this_machine(candidate.host, _WEBRTC, candidate.candidate, "")
        return self._offers(place, remote)

    def ice_proof(self, candidate: str) -> str | None:
        """Return the proof of the machine for a candidate of ICE; None: it needs none."""
        if self.machine is None or _place_of_ice(candidate) is not Place.MACHINE:
            return None
        return _machine_proof(self.machine, _WEBRTC, candidate, "")


@attrs.frozen(slots=True)
class ChannelAnswer:
    """The answer of the peer to the data channel that this end offers."""

    sdp: str


class DialPlan:
    """The peer's candidates, and which of them this round has tried."""

    def __init__(self, policy: DialPolicy, remote: str) -> None:
        self._policy = policy
        self._remote = remote
        self._known: dict[tuple[str, str], Candidate] = {}
        self._tried: set[tuple[str, str]] = set()
        self._answer: ChannelAnswer | None = None
        self._is_answer_tried = False

    @property
    def is_blank(self) -> bool:
        """True if no candidate of the peer is known yet, usable or not."""
        return not self._known and self._answer is None

    @property
    def is_repeatable(self) -> bool:
        """False if there is only a data channel, which is not dialled twice."""
        if self._answer is None:
            return True
        return any(self._policy.allows(each, self._remote) for each in self._known.values())

    def learn_answer(self, sdp: str) -> None:
        """Take note of the answer to the own data channel; the first one counts."""
        self._answer = self._answer or ChannelAnswer(sdp)

    def learn(self, candidates: Iterable[Candidate]) -> None:
        """Take note of candidates; those known already change nothing."""
        for candidate in candidates:
            self._known.setdefault((candidate.kind, candidate.address), candidate)

    def next(self) -> Candidate | ChannelAnswer | None:
        """Return the best candidate not tried in this round; None: all were."""
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
        left = [
            (self._policy.kinds.index(candidate.kind), key, candidate)
            for key, candidate in self._known.items()
            if key not in self._tried and self._policy.allows(candidate, self._remote)
        ]
        return min(left, key=lambda entry: entry[0], default=(0, ("", ""), None))

    def restart(self) -> None:
        """Begin a new round: every candidate may be tried again."""
        self._tried.clear()

    def forget(self) -> None:
        """Know no candidate any more: the peer offers others."""
        self._known.clear()
        self._tried.clear()
        self._answer = None
        self._is_answer_tried = False


# Whether the offer or answer of a peer is believed: by what it shows, and what is required.


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
        named = [pair == two for pair, two in pairs if pair and two]
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
    assertion, statement = _vouching_for(assertion), _vouching_for(statement)
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


def _vouching_for(said: Vouching | str | None) -> Vouching | str | None:
    """Return what was said of this very runtime, or why it does not count."""
    if isinstance(said, Vouching) and said.runtime is None:
        return "it names no runtime"
    return said
