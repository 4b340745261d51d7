"""Offering this end of a P2P link: open listeners, each with a secret of its own."""

import hashlib
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final, final

import attrs

from actors.runtime.p2p.handshake import Entropy
from actors.runtime.stubs.stub import StubConfig
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.proof import NONCE_BYTES
from specs.bodies.sync import Candidate
from transports.errors import ListenError
from transports.link import PROTOFLY_V1, Kind, Listener, Network

__all__ = ["Offered", "machine_secret", "open_candidates"]

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
