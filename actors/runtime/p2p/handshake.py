"""Opening a P2P link: dial or accept, then prove the secret at both ends.

Offering this end of a P2P link: open listeners, each with a secret of its own.
"""

import hashlib
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final, TypeAlias, final

import attrs
import trio

from actors.runtime.p2p.control_lines import read_proof, write_proof
from actors.runtime.stubs.stub import StubConfig
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.proof import NONCE_BYTES, DiallerProof, LinkKeys, ListenerProof, Opened, ProofError
from specs.bodies.sync import Candidate
from specs.limits.protocol import GOODBYE_TIMEOUT, HANDSHAKE_TIMEOUT
from transports.errors import CloseReason, DialError, LinkError, ListenError
from transports.link import PROTOFLY_V1, Kind, Link, Listener, Network

__all__ = [
    "Entropy",
    "Offered",
    "ProvenLink",
    "dial_candidate",
    "machine_secret",
    "open_candidates",
    "welcome",
]

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


_PATH: Final = "/p2p"
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@final
@attrs.frozen(slots=True)
class Offered:
    """A candidate of ours and the listener behind it."""

    candidate: Candidate
    listener: Listener


def machine_secret() -> bytes | None:
    """Return what all processes of this machine have in common, and nobody else; None: unknown.

    It lasts until the machine is started again.
    """
    try:
        boot = _BOOT_ID.read_bytes().strip()
    except OSError:
        return None
    return hashlib.sha256(b"protofly-host|" + boot).digest()


@asynccontextmanager
async def open_candidates(
    network: Network, config: StubConfig, policy: DialPolicy, remote: str, entropy: Entropy
) -> AsyncIterator[tuple[Offered, ...]]:
    """Listen for a runtime on every kind that can be listened on, until the context is left.

    Where it is not to know of a place, nobody listens. Unix sockets are made in a directory
    that only this user may enter.
    """
    async with AsyncExitStack() as stack:
        offered: list[Offered] = []
        for kind in config.kinds:
            if not policy.offers(kind.value, f"{config.host}:0", remote):
                continue
            with suppress(ListenError):
                listener = await _listen(stack, network, kind, config.host)
                offered.append(_offer(listener, kind, policy, entropy))
        yield tuple(offered)


async def _listen(stack: AsyncExitStack, network: Network, kind: Kind, host: str) -> Listener:
    where = f"{host}:0"
    if kind is Kind.UNIX:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="protofly-"))
        where = str(Path(folder) / "p2p.sock")
    return await stack.enter_async_context(network.listen(kind, where, {_PATH: PROTOFLY_V1}))


def _offer(listener: Listener, kind: Kind, policy: DialPolicy, entropy: Entropy) -> Offered:
    address = listener.address + _PATH if kind is Kind.WEBSOCKET else listener.address
    secret = entropy(NONCE_BYTES).hex()
    return Offered(policy.signed(Candidate(kind.value, address, secret)), listener)
