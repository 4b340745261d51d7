"""Opening of a P2P link: one runtime listens, the other dials, and both prove themselves.

Every link is encrypted by TLS 1.3; each end proves the certificate that its offer or answer names.
Then two lines identify the link: each offered listener has a secret of its own. These lines and the
control lines of a live link are JSON objects whose first key is `p2p`; no message begins so.
"""

import hashlib
import re
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final, TypeAlias, assert_never

import orjson
import trio

from actors.runtime.stubs.stub import StubContext
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.transfer import Ack, Behind, Bye, Control, Ping, Pong
from specs.addresses.address import canonical
from specs.bodies.object import Candidate
from specs.errors import BadMessageError, BadUrlError
from specs.jsonvalue import Json
from specs.limits.p2p import CONTROL_BYTES, ORDER_SENT
from specs.limits.protocol import GOODBYE_TIMEOUT, HANDSHAKE_TIMEOUT
from transports.errors import CloseReason, DialError, LinkError, ListenError
from transports.link import FRAMED, PROTOFLY_V1, Everybody, Kind, Link, Listener, Network
from transports.tls import PinnedTls

_MARK: Final = "p2p"
_PREFIX: Final = b'{"p2p":'
_NONCE: Final = re.compile("[0-9a-f]{32}")

NONCE_BYTES: Final = 16
"""Bytes of each nonce and each candidate's secret: 128 bits."""


def is_own_line(line: bytes) -> bool:
    """Return whether a line is a control line of the link; other lines are messages."""
    return line.startswith(_PREFIX)


def write_control(control: Control) -> bytes:
    """Return a control record of the link as a line, without a newline."""
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
    """Return an announcement of which messages precede those of the link as a line (C-20)."""
    fields: dict[str, Json] = {_MARK: "behind", "from": behind.from_, "to": behind.to}
    if behind.last is not None:
        fields |= {"last": behind.last, "top": behind.top, "age": round(behind.age, 3)}
        fields["answers"] = list[Json](sorted(behind.answers))
    return orjson.dumps(fields)


def read_control(line: bytes) -> Control | Behind:
    """Read a control line.

    Raises:
        BadMessageError: The line is no control line, or too long.
    """
    if len(line) > CONTROL_BYTES:
        raise BadMessageError(f"a control line of a P2P link has more than {CONTROL_BYTES} bytes")
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
            return Behind(_address(from_), _address(to), last, *_order_fields(fields))
        case {"p2p": "behind", "from": str(from_), "to": str(to)}:
            return Behind(_address(from_), _address(to))
        case _:
            raise BadMessageError("not a control line of a P2P link")


def _address(text: str) -> str:
    try:
        return canonical(text)
    except BadUrlError as exc:
        raise BadMessageError("an announcement on a P2P link is of no addresses") from exc


def _order_fields(fields: dict[str, Json]) -> tuple[int, float, frozenset[int]]:
    match fields:
        case {
            "top": int(top),
            "age": int() | float() as age,
            "answers": list(answers),
        } if age >= 0 and len(answers) <= ORDER_SENT:
            ids = frozenset(answer for answer in answers if isinstance(answer, int))
            if len(ids) == len(answers):
                return top, age, ids
        case _:
            pass
    raise BadMessageError("an announcement on a P2P link lacks its top, its age or its answers")


def _fields(line: bytes) -> dict[str, Json]:
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        raise BadMessageError("not JSON") from exc
    if not isinstance(fields, dict):
        raise BadMessageError("not a JSON object")
    return fields


Entropy: TypeAlias = Callable[[int], bytes]
"""Function that returns a number of random bytes."""


ProvenLink: TypeAlias = tuple[str, Link]
"""The name of a link, and the link itself, after its other end has proven its certificate.

The name is the same at both ends, and different for every link.
"""


def _link_name(dialler_nonce: str, listener_nonce: str) -> str:
    return hashlib.sha256(f"{dialler_nonce}|{listener_nonce}".encode()).hexdigest()[:16]


def _is_peer(pipe: Link, tls: PinnedTls) -> bool:
    """Return whether the other end has proven the certificate that the peer has signed.

    A data channel only opens to the end with this certificate.
    """
    return pipe.kind is Kind.WEBRTC or (tls.peer is not None and pipe.peer_certificate == tls.peer)


async def dial_candidate(
    network: Network, candidate: Candidate, tls: PinnedTls, entropy: Entropy
) -> ProvenLink:
    """Dial a network address that the peer has offered; both ends prove their certificates.

    If cancelled, nothing is left open.

    Args:
        network: Network that opens links.
        candidate: The candidate.
        tls: The certificates of both ends.
        entropy: Source of random bytes.

    Raises:
        DialError: There is no listener, or another end than the peer.
    """
    pipe = await network.dial(Kind(candidate.kind), candidate.address, tls=tls.dialling)
    return await greet(pipe, candidate.secret, tls, entropy)


async def greet(pipe: Link, secret: str, tls: PinnedTls, entropy: Entropy) -> ProvenLink:
    """Name a link that this end has dialled, after both ends have proven their certificates.

    If cancelled, the link is closed.

    Args:
        pipe: The link.
        secret: The secret of the candidate.
        tls: The certificates of both ends.
        entropy: Source of random bytes.

    Raises:
        DialError: The other end is not the peer; the link is closed.
    """
    name = await _read_name(pipe, _greet(pipe, secret, tls, entropy(NONCE_BYTES).hex()))
    if name is None:
        raise DialError(pipe.name, "it is not the peer, or does not expect this link")
    return name, pipe


async def _read_name(pipe: Link, proof: Awaitable[str | None]) -> str | None:
    """Return the name of a link if its other end proves in time to be the peer; else close it."""
    name = None
    try:
        with trio.move_on_after(HANDSHAKE_TIMEOUT), suppress(LinkError, BadMessageError):
            name = await proof
    finally:
        if name is None:
            with trio.move_on_after(2 * GOODBYE_TIMEOUT, shield=True):
                await pipe.aclose(CloseReason.REFUSED)
    return name


async def _greet(pipe: Link, secret: str, tls: PinnedTls, nonce: str) -> str | None:
    """Send the secret of the dialled address; return the link's name, or None: not the peer."""
    if not _is_peer(pipe, tls):
        return None
    await pipe.send(orjson.dumps({_MARK: "hello", "nonce": nonce, "secret": secret}))
    match _fields(await pipe.receive()):
        case {"p2p": "opened", "nonce": str(peer_nonce)} if _NONCE.fullmatch(peer_nonce):
            return _link_name(nonce, peer_nonce)
        case _:
            return None


async def welcome(pipe: Link, secret: str, tls: PinnedTls, entropy: Entropy) -> ProvenLink | None:
    """Check the certificate of a dialler at an own address; None: the link was closed.

    Any other dialler gets no answer.

    If cancelled, the link is closed.

    Args:
        pipe: The link.
        secret: The secret of the candidate.
        tls: The certificates of both ends.
        entropy: Source of random bytes.
    """
    name = await _read_name(pipe, _open(pipe, secret, tls, entropy(NONCE_BYTES).hex()))
    return None if name is None else (name, pipe)


async def _open(pipe: Link, secret: str, tls: PinnedTls, nonce: str) -> str | None:
    """Answer the peer if it has dialled; return the link's name, None: another end has dialled."""
    match _fields(await pipe.receive()):
        case {"p2p": "hello", "nonce": str(other), "secret": str(word)} if _NONCE.fullmatch(other):
            if word != secret or not _is_peer(pipe, tls):
                return None
            await pipe.send(orjson.dumps({_MARK: "opened", "nonce": nonce}))
            return _link_name(other, nonce)
        case _:
            return None


_PATH: Final = "/p2p"
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


OfferedCandidate: TypeAlias = tuple[Candidate, Listener]
"""A network address that this end offers, and the listener at it."""


def machine_secret() -> bytes | None:
    """Return a secret that only processes of this machine know; None: there is none.

    The secret lasts until the machine is started again.
    """
    try:
        boot = _BOOT_ID.read_bytes().strip()
    except OSError:
        return None
    return hashlib.sha256(b"protofly-host|" + boot).digest()


@asynccontextmanager
async def open_candidates(
    context: StubContext,
    policy: DialPolicy,
    remote: str,
    tls: PinnedTls,
    left_out: Callable[[Kind, str], None] = lambda _kind, _why: None,
) -> AsyncIterator[tuple[OfferedCandidate, ...]]:
    """Listen for a remote runtime on all possible kinds of links while the context is open.

    No end listens at an address that the peer must not know. Unix sockets are made in a directory
    that only this user may enter.

    Args:
        context: The context of the stub.
        policy: Policy on addresses to dial.
        remote: Address of the remote runtime.
        tls: The certificates of both ends.
        entropy: Source of random bytes.
        left_out: Called with each kind that cannot be listened on here, and the reason.
    """
    gate, config = Everybody(tls.listening), context.config
    async with AsyncExitStack() as stack:
        offered: list[OfferedCandidate] = []
        for kind in config.kinds:
            if kind not in FRAMED or not policy.offers(kind.value, f"{config.host}:0", remote):
                continue
            try:
                where = _listen_address(stack, kind, config.host)
                opening = context.network.listen(kind, where, {_PATH: PROTOFLY_V1}, gate)
                listener = await stack.enter_async_context(opening)
            except (ListenError, OSError) as exc:
                left_out(kind, str(exc))
                continue
            offered.append(_offer(listener, kind, policy, context.entropy))
        yield tuple(offered)


def _listen_address(stack: AsyncExitStack, kind: Kind, host: str) -> str:
    if kind is not Kind.UNIX:
        return f"{host}:0"
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="protofly-"))
    return str(Path(folder) / "p2p.sock")


def _offer(
    listener: Listener, kind: Kind, policy: DialPolicy, entropy: Entropy
) -> OfferedCandidate:
    address = listener.address + _PATH if kind is Kind.WEBSOCKET else listener.address
    secret = entropy(NONCE_BYTES).hex()
    return policy.sign_candidate(Candidate(kind.value, address, secret)), listener
