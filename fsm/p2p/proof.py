"""Proof of a candidate's secret, by both ends, before a link carries anything.

Four lines, none of which carries the secret:

    dialler   hello(nonce, tag)     the tag proves the secret; without it: silence
    listener  welcome(nonce, proof) over both nonces
    dialler   proof(proof)          over both nonces
    listener  opened                the link is live at both ends

An unproven peer gets nothing, not even a nonce. Each success uses the secret up: both
ends derive the next one, which re-establishes the link in place. The dialler
that never saw `opened` does not know whether its secret is used up, and may try
both.
"""

import hashlib
import hmac
from typing import Final, TypeAlias, final

import attrs

from specs.errors import ProtoflyError

__all__ = [
    "NONCE_BYTES",
    "DiallerProof",
    "Hello",
    "LinkKeys",
    "ListenerProof",
    "Opened",
    "Proof",
    "ProofError",
    "ProofLine",
    "Welcome",
]

NONCE_BYTES: Final = 16
"""Bytes of each nonce and each candidate's secret: 128 bits."""


@final
class ProofError(ProtoflyError):
    """The other end did not prove the secret: close the link without a reason."""


@final
@attrs.frozen(slots=True)
class Hello:
    """First line of the dialler."""

    nonce: bytes
    tag: bytes


@final
@attrs.frozen(slots=True)
class Welcome:
    """The listener's nonce and its proof."""

    nonce: bytes
    proof: bytes


@final
@attrs.frozen(slots=True)
class Proof:
    """The dialler's proof."""

    proof: bytes


@final
@attrs.frozen(slots=True)
class Opened:
    """The listener is satisfied: the link is open in both directions."""


ProofLine: TypeAlias = Hello | Welcome | Proof | Opened


def _mac(secret: bytes, role: bytes, *parts: bytes) -> bytes:
    return hmac.new(secret, b"protofly-link/1|" + role + b"|" + b"|".join(parts), "sha256").digest()


def _link_name(ours: bytes, theirs: bytes) -> str:
    return hashlib.sha256(ours + b"|" + theirs).hexdigest()[:16]


@final
class LinkKeys:
    """The secrets of one link at one end.

    Until the first success each candidate has a secret of its own. From then on
    there is one chain for the whole link, whichever end dials.
    """

    def __init__(self) -> None:
        self._own: dict[str, bytes] = {}
        self._chain: tuple[bytes, ...] = ()
        self._is_first = True

    def offer(self, address: str, secret: bytes) -> None:
        """Accept one dialler of an own candidate.

        Args:
            address: Address of the candidate.
            secret: The secret by which the dialler is known.
        """
        self._own[address] = secret

    def to_accept(self, address: str) -> tuple[bytes, ...]:
        """Return what a dialler of `address` may prove now; empty: nothing."""
        own = self._own.get(address)
        return self._chain if own is None or not self._is_first else (*self._chain, own)

    def to_dial(self, candidate_secret: bytes) -> tuple[bytes, ...]:
        """Return what to prove when we dial, best guess first."""
        return (*self._chain, candidate_secret) if self._is_first else self._chain

    def used(self, following: bytes) -> None:
        """A secret is proven by both ends: only `following` counts from now on."""
        self._chain = (following,)
        self._own = {}
        self._is_first = False

    def perhaps_used(self, secret: bytes, following: bytes) -> None:
        """Note that a secret was proven and the agreement of the peer is not known yet.

        Args:
            secret: The secret.
            following: The secret after it.
        """
        self._chain = (following, secret)


@final
class DiallerProof:
    """The dialling end of the proof.

    Attributes:
        following: The secret that comes next; known once the listener has proven.
        link: Name of the link, the same at both ends; known at the same time.
    """

    def __init__(self, secret: bytes, nonce: bytes) -> None:
        self._secret = secret
        self._nonce = nonce
        self._welcomed = False
        self.following: bytes | None = None
        self.link = ""

    def hello(self) -> Hello:
        """Return the first line to write."""
        return Hello(self._nonce, _mac(self._secret, b"hello", self._nonce))

    def feed(self, line: ProofLine) -> Proof | None:
        """Take a line; return the line to write, or None: the link is open.

        Raises:
            ProofError: The listener does not know the secret.
        """
        match line:
            case Welcome(nonce, proof) if not self._welcomed:
                expected = _mac(self._secret, b"listener", self._nonce, nonce)
                if not hmac.compare_digest(expected, proof):
                    raise ProofError("the listening end does not know the secret")
                self._welcomed = True
                self.following = _mac(self._secret, b"next", self._nonce, nonce)
                self.link = _link_name(self._nonce, nonce)
                return Proof(_mac(self._secret, b"dialler", self._nonce, nonce))
            case Opened() if self._welcomed:
                return None
            case _:
                raise ProofError(f"{type(line).__name__} is not what the listening end says now")


@final
class ListenerProof:
    """The listening end of the proof, for one link accepted at one candidate.

    Attributes:
        link: Name of the link, the same at both ends; known after the hello.
    """

    def __init__(self, keys: LinkKeys, address: str, nonce: bytes) -> None:
        self._keys = keys
        self._address = address
        self._nonce = nonce
        self._secret: bytes | None = None
        self._theirs = b""
        self.link = ""

    def feed(self, line: ProofLine) -> Welcome | Opened:
        """Take a line; return the line to write. `Opened`: the link is open.

        Raises:
            ProofError: The dialler does not know the secret, or it is used up.
        """
        match line:
            case Hello(nonce, tag) if self._secret is None:
                return self._welcome(nonce, tag)
            case Proof(proof) if self._secret is not None:
                return self._open(self._secret, proof)
            case _:
                raise ProofError(f"{type(line).__name__} is not what the dialling end says now")

    def _welcome(self, nonce: bytes, tag: bytes) -> Welcome:
        for secret in self._keys.to_accept(self._address):
            if hmac.compare_digest(_mac(secret, b"hello", nonce), tag):
                break
        else:
            raise ProofError("the dialling end does not know the secret")
        self._secret, self._theirs = secret, nonce
        self.link = _link_name(nonce, self._nonce)
        return Welcome(self._nonce, _mac(secret, b"listener", nonce, self._nonce))

    def _open(self, secret: bytes, proof: bytes) -> Opened:
        if not hmac.compare_digest(_mac(secret, b"dialler", self._theirs, self._nonce), proof):
            raise ProofError("the dialling end does not know the secret")
        if secret not in self._keys.to_accept(self._address):
            raise ProofError("the secret is used up")
        self._keys.used(_mac(secret, b"next", self._theirs, self._nonce))
        return Opened()
