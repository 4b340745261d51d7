"""Messages to and from the runtime's registry, and the actors it works with.

The questions about links (`R/sm` asks by which link an entity is reached, P2P-30) may wait: until
another link leads there than the asker knows, or until the record that answers has been read.
The asker sets the time.
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias, final

import attrs

from actors.kit.ids import IdSource
from actors.kit.supervision.actor import ActorRef, Reply
from actors.kit.supervision.delivery import Delivery
from actors.runtime.bus.message_bus import MessageBus
from actors.runtime.bus.ports import CorePort
from actors.runtime.hop_trace import HopTrace
from actors.runtime.registry.status import RuntimeStatus
from actors.runtime.stubs.ice import NO_SERVERS, IceSource
from actors.runtime.stubs.loader import LoaderMessage
from actors.runtime.stubs.stub import LOOPBACK, StubConfig
from fsm.intent import Intent
from fsm.registry import changes
from fsm.registry.resolve import resolve_io as rs
from fsm.registry.resolve.config import ResolveConfig
from fsm.registry.resolve.link_entry import LinkEntry
from fsm.registry.resolve.resolve import ResolveCore
from fsm.registry.resolve.resolve_io import Asked, RequesterPlan, WitnessCalled
from transports.link import Kind

__all__ = [
    "LinkAwaited",
    "LinkWitnessed",
    "LinksClosed",
    "LinksWanted",
    "PendingRoutes",
    "RegistryMessage",
    "RegistryParts",
    "RegistryView",
    "RouteQuestion",
]


@final
@attrs.frozen(slots=True)
class LinkAwaited:
    """Report the live link that leads to an entity or a runtime, once it is not `known`.

    Attributes:
        known: The link that leads there as far as is known; None: none does.
        is_wanted: Whether a link may be set up for that.
        reply: The link; None: none is live.
    """

    entity: str
    known: str | None
    is_wanted: bool
    reply: Reply[str | None]


@final
@attrs.frozen(slots=True)
class LinkWitnessed:
    """Return whether the sender over a link may send for an entity, by the entity's record.

    Attributes:
        part: Sender: a part of the runtime at the other end, or an unauthorized one.
    """

    link: str
    part: str
    entity: str
    reply: Reply[bool]


RouteQuestion: TypeAlias = LinkAwaited | LinkWitnessed
"""Questions to the registry about its links."""


@final
class PendingRoutes:
    """Open questions about links; part of the registry's task.

    Memory: one entry per question that is still awaited.
    """

    def __init__(self, core: ResolveCore) -> None:
        self._core = core
        self._awaited: list[LinkAwaited] = []
        self._witnessed: list[LinkWitnessed] = []

    def asked(self, wanted: RouteQuestion, now: float) -> list[rs.Effect]:
        """Answer at once, or later; return what is to be done for that.

        Args:
            wanted: Requested route.
            now: Current time, in seconds.
        """
        match wanted:
            case LinkAwaited(entity, _, is_wanted):
                self._awaited.append(wanted)
                self._answer_links()
                may_seek = is_wanted and wanted.reply.is_open
                effects = self._core.feed(Asked(entity, Intent.LINK), now) if may_seek else []
                # No message waits for a route: it may go by the node, too.
                return [one for one in effects if not isinstance(one, rs.Route | rs.NoRoute)]
            case LinkWitnessed(link, _, entity):
                self._witnessed.append(wanted)
                called = WitnessCalled(link, entity)
                effects = self._core.feed(called, now)
                self._answer_witnesses(now)
                return effects

    def look(self, effects: list[rs.Effect], now: float) -> None:
        """Answer what can be answered, after something has happened.

        Args:
            effects: Effects of the registry's core.
            now: Current time, in seconds.
        """
        if self._awaited and any(isinstance(effect, rs.RoutesChanged) for effect in effects):
            self._answer_links()
        if self._witnessed:
            self._answer_witnesses(now)

    def _answer_links(self) -> None:
        waiting: list[LinkAwaited] = []
        for one in self._awaited:
            link = self._core.live_link(one.entity)
            if link != one.known:
                one.reply.send(link)
            elif one.reply.is_open:
                waiting.append(one)
        self._awaited = waiting

    def _answer_witnesses(self, now: float) -> None:
        waiting: list[LinkWitnessed] = []
        for one in self._witnessed:
            speaks = self._core.speaks_for(one.link, one.part, one.entity, now)
            if speaks is not None:
                one.reply.send(speaks)
            elif one.reply.is_open:
                waiting.append(one)
        self._witnessed = waiting


@final
@attrs.frozen(slots=True)
class LinksWanted:
    """Show the P2P entries and the node stubs."""

    reply: Reply["RegistryView"]


@final
@attrs.frozen(slots=True)
class RegistryView:
    """The registry's tables at one moment.

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
    rs.Input
    | Delivery
    | LinksWanted
    | LinksClosed
    | changes.LocalLive
    | changes.LocalGone
    | changes.SnapshotRead
    | RouteQuestion
)


@final
@attrs.frozen(slots=True)
class RegistryParts:
    """The actors that the registry works with.

    Attributes:
        paths_lost: Gets the domain whose node has forgotten our session, and the new session.
        kinds: What P2P links may use, best first.
        p2p_host: Where they are listened for.
        ice: Where data channels get servers of STUN and TURN from.
        status: The status of the runtime.
    """

    port: CorePort
    bus: MessageBus
    loader: ActorRef[LoaderMessage]
    ids: IdSource
    hops: HopTrace
    paths_lost: Callable[[str, str | None], Awaitable[None]]
    status: RuntimeStatus
    kinds: tuple[Kind, ...] = ()
    p2p_host: str = LOOPBACK
    ice: IceSource = NO_SERVERS

    def requester(self, config: ResolveConfig, plan: RequesterPlan) -> StubConfig:
        """Return the reason that a requester gets (RES-08).

        Args:
            config: The configuration.
            plan: The plan.
        """
        return StubConfig(
            config.runtime,
            config.domain,
            remote_runtime=plan.remote,
            p2p_handler=plan.handler,
            kinds=self.kinds,
            host=self.p2p_host,
            ice=self.ice,
            links=config.link_policy,
        )
