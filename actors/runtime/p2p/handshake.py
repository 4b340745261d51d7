"""Opening a P2P link: listen and offer, dial or accept, then prove the secret at both ends.

Each listener that is offered has a secret of its own. The proof of the secret and the controls
of a live link are lines beside the messages: JSON objects whose first key is `p2p`; a message
never begins so.
"""

import hashlib
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final, TypeAlias, assert_never, final

import attrs
import orjson
import trio

from actors.runtime.stubs.stub import StubConfig
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.proof import (
    NONCE_BYTES,
    DiallerProof,
    Hello,
    LinkKeys,
    ListenerProof,
    Opened,
    Proof,
    ProofError,
    ProofLine,
    Welcome,
)
from fsm.p2p.transfer import Ack, Behind, Bye, Control, Ping, Pong
from specs.bodies.sync import Candidate
from specs.errors import BadMessageError
from specs.jsonvalue import Json
from specs.limits.p2p import ORDER_SENT
from specs.limits.protocol import GOODBYE_TIMEOUT, HANDSHAKE_TIMEOUT
from transports.errors import CloseReason, DialError, LinkError, ListenError
from transports.link import PROTOFLY_V1, Kind, Link, Listener, Network

__all__ = [
    "Entropy",
    "Offered",
    "ProvenLink",
    "dial_candidate",
    "is_own_line",
    "machine_secret",
    "open_candidates",
    "read_control",
    "read_proof",
    "welcome",
    "write_behind",
    "write_control",
    "write_proof",
]

_MARK: Final = "p2p"
_PREFIX: Final = b'{"p2p":'


def is_own_line(line: bytes) -> bool:
    """Say whether a line is one of ours, not a message."""
    return line.startswith(_PREFIX)


def write_control(control: Control) -> bytes:
    """Write a control line, without a newline."""
    match control:
        case Ack(seq):
            return b'{"p2p":"ack","seq":%d}' % seq
        case Ping():
            return b'{"p2p":"ping"}'
        case Pong():
            return b'{"p2p":"pong"}'
        case Bye():
            return b'{"p2p":"bye"}'
        case _:
            assert_never(control)


def write_behind(behind: Behind) -> bytes:
    """Write an announcement of what a pair's messages follow, without a newline (C-20)."""
    said: dict[str, Json] = {_MARK: "behind", "from": behind.from_, "to": behind.to}
    if behind.last is not None:
        said |= {"last": behind.last, "top": behind.top, "age": round(behind.age, 3)}
        said["answers"] = list[Json](sorted(behind.answers))
    return orjson.dumps(said)


def read_control(line: bytes) -> Control | Behind:
    """Read a control line.

    Raises:
        BadMessageError: It is none.
    """
    fields = _fields(line)
    match fields:
        case {"p2p": "ack", "seq": int(seq)}:
            return Ack(seq)
        case {"p2p": "ping"}:
            return Ping()
        case {"p2p": "pong"}:
            return Pong()
        case {"p2p": "bye"}:
            return Bye()
        case {"p2p": "behind", "from": str(from_), "to": str(to), "last": int() | str() as last}:
            return Behind(from_, to, last, *_place(fields))
        case {"p2p": "behind", "from": str(from_), "to": str(to)}:
            return Behind(from_, to)
        case _:
            raise BadMessageError("not a control line of a P2P link")


def _place(fields: dict[str, Json]) -> tuple[int, float, frozenset[int]]:
    match fields:
        case {
            "top": int(top),
            "age": int() | float() as age,
            "answers": list(answers),
        } if age >= 0 and len(answers) <= ORDER_SENT:
            ids = frozenset(one for one in answers if isinstance(one, int))
            if len(ids) == len(answers):
                return top, age, ids
        case _:
            pass
    raise BadMessageError("an announcement on a P2P link lacks its top, its age or its answers")


def write_proof(line: ProofLine) -> bytes:
    """Write a line of the proof, without a newline."""
    match line:
        case Hello(nonce, tag):
            return _proof("hello", nonce=nonce, tag=tag)
        case Welcome(nonce, proof):
            return _proof("welcome", nonce=nonce, proof=proof)
        case Proof(proof):
            return _proof("proof", proof=proof)
        case Opened():
            return _proof("opened")
        case _:
            assert_never(line)


def read_proof(frame: bytes) -> ProofLine:
    """Read a frame that must hold one line of the proof.

    Raises:
        ProofError: It does not: the peer is not the expected one.
    """
    try:
        match _fields(frame):
            case {"p2p": "hello", "nonce": str(nonce), "tag": str(tag)}:
                return Hello(bytes.fromhex(nonce), bytes.fromhex(tag))
            case {"p2p": "welcome", "nonce": str(nonce), "proof": str(proof)}:
                return Welcome(bytes.fromhex(nonce), bytes.fromhex(proof))
            case {"p2p": "proof", "proof": str(proof)}:
                return Proof(bytes.fromhex(proof))
            case {"p2p": "opened"}:
                return Opened()
            case _:
                raise ProofError("not a line of the proof")
    except (ValueError, BadMessageError) as exc:
        raise ProofError("not a line of the proof") from exc


def _proof(word: str, **parts: bytes) -> bytes:
    return orjson.dumps({_MARK: word, **{name: part.hex() for name, part in parts.items()}})


def _fields(line: bytes) -> dict[str, Json]:
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        raise BadMessageError("not JSON") from exc
    if not isinstance(fields, dict):
        raise BadMessageError("not a JSON object")
    return fields


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

    Args:
        network: Network that opens links.
        candidate: The candidate.
        keys: Secrets of the link's candidates.
        entropy: Source of random bytes.

    Raises:
        DialError: No listener, or not the peer.
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

    A peer without the secret gets no answer at all.

    If cancelled, the link is closed.

    Args:
        pipe: The link.
        keys: Secrets of the link's candidates.
        address: The address.
        entropy: Source of random bytes.
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
    """Return a secret that only processes of this machine know; None: unknown.

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

    No end listens at a place that the peer must not know. Unix sockets are made in a directory
    that only this user may enter.

    Args:
        network: Network that opens links.
        config: The configuration.
        policy: Policy on addresses to dial.
        remote: Address of the remote runtime.
        entropy: Source of random bytes.
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
