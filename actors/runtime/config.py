"""What a runtime is told when it is made."""

import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, final

import attrs

from actors.kit.ids import IdSource
from actors.pipe.process import open_process_room
from actors.pipe.spawn import Spawn
from actors.runtime.bus.pipeline import NO_INTERCEPTORS, Interceptor, StagePlaceError
from actors.runtime.policy.hook import PERMIT_ALL, Policy
from actors.runtime.stubs.credentials import NO_CREDENTIALS, Credentials
from actors.runtime.stubs.stub import LOOPBACK
from fsm.p2p.link_policy import WHENEVER_POSSIBLE, LinkWishes
from fsm.registry.resolve.resolve import Topology
from specs.addresses.address import runtime
from specs.limits.protocol import LEASE
from specs.routing import APPLICATION_STAGES
from transports.link import Kind

if TYPE_CHECKING:
    # Signatures are slow to import, and not needed by who fetches nothing.
    from actors.catalogue.access import CatalogueAccess

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
        catalogues: Where descriptors of domains are fetched that are not among `nodes`;
            None: such domains cannot be reached from here.
        spawn: Makes the sandboxes of stubs whose code was fetched.
        kinds: What P2P links may use, best first; none: no P2P (P2P-01).
        p2p_host: Where P2P links are listened for: a name or address of this machine
            by which others dial it, not a wildcard.
        links: Whom P2P links are wanted to, and whether messages wait for one.
        topology: Whose node messages for other domains go to.
        user: Address of the user whose hyperties these are.
        credentials: What it logs in with where a node asks for it.
        store: The file in which data objects are stored that outlive the process; None:
            nothing does.
        lease: Seconds for which others may observe what is reported here, unless they renew
            that: those who are gone without a word are forgotten then.
        policy: Who may send what.
        interceptors: Stages of its own in the pipelines of the bus, in their order (BUS-11).
        stop_on_failure: Whether a hyperty that is given up, as it crashes too often, ends the
            runtime; its error then comes out of the context of the runtime.
        entropy: Source of random bytes for secrets, nonces and jitter.
        ids: Ids of all messages of the runtime. A process passes its wall clock as
            their start, so that no id comes twice after a restart.

    Raises:
        StagePlaceError: An interceptor is neither before nor after policy.
    """

    domain: str
    name: str
    node: str
    nodes: Mapping[str, str] = _NO_NODES
    catalogues: "CatalogueAccess | None" = None
    spawn: Spawn = open_process_room
    kinds: tuple[Kind, ...] = ()
    p2p_host: str = LOOPBACK
    links: LinkWishes = WHENEVER_POSSIBLE
    topology: Topology = Topology.TRIANGLE
    user: str | None = None
    credentials: Credentials = NO_CREDENTIALS
    store: Path | None = None
    lease: int = LEASE
    policy: Policy = PERMIT_ALL
    interceptors: tuple[Interceptor, ...] = attrs.field(default=NO_INTERCEPTORS)
    stop_on_failure: bool = False
    entropy: Callable[[int], bytes] = secrets.token_bytes
    ids: IdSource = attrs.field(factory=IdSource)

    @interceptors.validator
    def _check_places(self, _: object, interceptors: tuple[Interceptor, ...]) -> None:
        for each in interceptors:
            if each.place not in APPLICATION_STAGES:
                raise StagePlaceError(each.name, each.place)

    @property
    def runtime(self) -> str:
        """The runtime's address, R.

        Raises:
            BadUrlError: Domain or name cannot be part of an address.
        """
        return runtime(self.domain, self.name)
