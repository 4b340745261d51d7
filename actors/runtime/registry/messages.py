"""What the runtime's registry is told and shows, and whom it works with."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias, final

import attrs

from actors.kit.ids import IdSource
from actors.kit.supervision.actor import ActorRef, Reply
from actors.kit.supervision.delivery import Delivery
from actors.runtime.bus.messages import BusMessage
from actors.runtime.bus.ports import CorePort
from actors.runtime.hop_trace import HopTrace
from actors.runtime.registry.link_routes import WaysWanted
from actors.runtime.stubs.loader import LoaderMessage
from actors.runtime.stubs.stub import LOOPBACK, StubConfig
from fsm.registry import changes
from fsm.registry.record_watch import WatchRemoved, WatchSet
from fsm.registry.resolve import inputs as told
from fsm.registry.resolve.effects import RequesterPlan
from fsm.registry.resolve.inputs import ResolveConfig
from fsm.registry.resolve.link_entry import LinkEntry
from transports.link import Kind

__all__ = ["LinksClosed", "LinksWanted", "RegistryMessage", "RegistryParts", "RegistryView"]


@final
@attrs.frozen(slots=True)
class LinksWanted:
    """Show the P2P entries and the node stubs."""

    reply: Reply["RegistryView"]


@final
@attrs.frozen(slots=True)
class RegistryView:
    """What the registry's tables say at one moment.

    Attributes:
        watched: Whose registrations are followed.
    """

    links: tuple[LinkEntry, ...]
    node_stubs: tuple[str, ...]
    watched: tuple[str, ...] = ()


@final
@attrs.frozen(slots=True)
class LinksClosed:
    """Forget all P2P links, set none up any more; show what is to be ended now."""

    reply: Reply[tuple[LinkEntry, ...]]


RegistryMessage: TypeAlias = (
    told.Input
    | Delivery
    | LinksWanted
    | LinksClosed
    | WatchSet
    | WatchRemoved
    | changes.LocalLive
    | changes.LocalGone
    | changes.SnapshotRead
    | WaysWanted
)


@final
@attrs.frozen(slots=True)
class RegistryParts:
    """Whom the registry works with.

    Attributes:
        paths_lost: Told the domain whose node has forgotten our session.
        kinds: What P2P links may use, best first.
        p2p_host: Where they are listened for.
    """

    port: CorePort
    bus: ActorRef[BusMessage]
    loader: ActorRef[LoaderMessage]
    ids: IdSource
    hops: HopTrace
    paths_lost: Callable[[str], Awaitable[None]]
    kinds: tuple[Kind, ...] = ()
    p2p_host: str = LOOPBACK

    def requester(self, config: ResolveConfig, plan: RequesterPlan) -> StubConfig:
        """Return what a requester is told (RES-08)."""
        return StubConfig(
            config.runtime,
            config.domain,
            remote_runtime=plan.remote,
            p2p_handler=plan.handler,
            kinds=self.kinds,
            host=self.p2p_host,
            links=config.link_policy,
        )
