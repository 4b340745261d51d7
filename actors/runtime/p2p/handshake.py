"""Opening a P2P link: dial or accept, then prove the secret at both ends."""

from collections.abc import Callable
from typing import TypeAlias, final

import attrs
import trio

from actors.runtime.p2p.control_lines import read_proof, write_proof
from fsm.p2p.proof import NONCE_BYTES, DiallerProof, LinkKeys, ListenerProof, Opened, ProofError
from specs.bodies.sync import Candidate
from specs.limits.protocol import GOODBYE_TIMEOUT, HANDSHAKE_TIMEOUT
from transports.errors import CloseReason, DialError, LinkError
from transports.link import Kind, Link, Network

__all__ = ["Entropy", "ProvenLink", "dial_candidate", "welcome"]

Entropy: TypeAlias = Callable[[int], bytes]
"""n random bytes."""


@final
@attrs.frozen(slots=True)
class ProvenLink:
    """A link whose other end has proven the secret.

    Attributes:
        name: The same at both ends, different for every link.
    """

    name: str
    pipe: Link


async def dial_candidate(
    network: Network, candidate: Candidate, keys: LinkKeys, entropy: Entropy
) -> ProvenLink:
    """Dial a candidate of the peer and prove its secret.

    If cancelled, nothing is left open.

    Raises:
        DialError: Nobody there, or not the peer.
    """
    try:
        kind, secret = Kind(candidate.kind), bytes.fromhex(candidate.secret)
    except ValueError as exc:
        raise DialError(candidate.address, "the candidate is malformed") from exc
    for guess in keys.to_dial(secret):
        pipe = await network.dial(kind, candidate.address)
        proof = DiallerProof(guess, entropy(NONCE_BYTES))
        if await _prove(pipe, proof, keys, guess):
            return ProvenLink(proof.link, pipe)
    raise DialError(candidate.address, "it does not know our secret")


async def _prove(pipe: Link, proof: DiallerProof, keys: LinkKeys, secret: bytes) -> bool:
    is_open = False
    try:
        with trio.move_on_after(HANDSHAKE_TIMEOUT):
            await pipe.send(write_proof(proof.hello()))
            answer = proof.feed(read_proof(await pipe.receive()))
            if answer is not None and proof.following is not None:
                keys.perhaps_used(secret, proof.following)
                await pipe.send(write_proof(answer))
                proof.feed(read_proof(await pipe.receive()))
                keys.used(proof.following)
                is_open = True
    except (LinkError, ProofError):
        is_open = False
    finally:
        if not is_open:
            with trio.move_on_after(2 * GOODBYE_TIMEOUT, shield=True):
                await pipe.aclose(CloseReason.REFUSED)
    return is_open


async def welcome(pipe: Link, keys: LinkKeys, address: str, entropy: Entropy) -> ProvenLink | None:
    """Let a dialler of our candidate at `address` prove the secret; None: hung up.

    A stranger is told nothing at all.

    If cancelled, the link is closed.
    """
    proof = ListenerProof(keys, address, entropy(NONCE_BYTES))
    is_open = False
    try:
        with trio.move_on_after(HANDSHAKE_TIMEOUT):
            await pipe.send(write_proof(proof.feed(read_proof(await pipe.receive()))))
            verdict = proof.feed(read_proof(await pipe.receive()))
            await pipe.send(write_proof(verdict))
            is_open = isinstance(verdict, Opened)
    except (LinkError, ProofError):
        is_open = False
    finally:
        if not is_open:
            with trio.move_on_after(2 * GOODBYE_TIMEOUT, shield=True):
                await pipe.aclose(CloseReason.REFUSED)
    return ProvenLink(proof.link, pipe) if is_open else None
