"""What a runtime is told when it is made."""

import secrets
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, final

import attrs

from actors.kit.ids import IdSource
from actors.runtime.credentials import NO_CREDENTIALS, Credentials
from actors.runtime.policy import PERMIT_ALL, Policy
from actors.runtime.stub import LOOPBACK
from fsm.cores.resolve import Topology
from specs.address import runtime
from transports.link import Kind

__all__ = ["RuntimeConfig"]

_NO_NODES: Final[Mapping[str, str]] = MappingProxyType({})


@final
@attrs.frozen(kw_only=True)
class RuntimeConfig:
    """How one runtime is to be.

    Attributes:
        domain: Its own domain.
        name: Its name there; the same after a restart (RT-02).
        node: Where the own domain's node is dialled, such as ws://127.0.0.1:4123/link.
        nodes: The same for other domains.
        kinds: What P2P links may use, best first; none: no P2P (P2P-01).
        p2p_host: Where P2P links are listened for: a name or address of this machine
            by which others dial it, not a wildcard.
        topology: Whose node messages for other domains go to.
        user: Address of the user whose hyperties these are.
        credentials: What it logs in with where a node asks for it.
        policy: Who may send what.
        entropy: Source of random bytes for secrets, nonces and jitter.
        ids: Ids of all messages of the runtime. A process passes its wall clock as
            their start, so that no id comes twice after a restart.
    """

    domain: str
    name: str
    node: str
    nodes: Mapping[str, str] = _NO_NODES
    kinds: tuple[Kind, ...] = ()
    p2p_host: str = LOOPBACK
    topology: Topology = Topology.TRIANGLE
    user: str | None = None
    credentials: Credentials = NO_CREDENTIALS
    policy: Policy = PERMIT_ALL
    entropy: Callable[[int], bytes] = secrets.token_bytes
    ids: IdSource = attrs.field(factory=IdSource)

    @property
    def runtime(self) -> str:
        """The runtime's address, R.

        Raises:
            BadUrlError: Domain or name cannot be part of an address.
        """
        return runtime(self.domain, self.name)
