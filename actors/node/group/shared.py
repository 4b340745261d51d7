"""State that a node shares with the other nodes of its domain, opened before its components."""

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from hashlib import blake2b
from typing import Final

import attrs
import trio

from actors.kit.counters import Counters, Gauge
from actors.node.catalogue.directory import CatalogueReader
from actors.node.catalogue.domain import DomainCatalogue
from actors.node.dashboard.colleagues import Colleagues
from actors.node.dashboard.overview import Overview
from actors.node.group.engine_client import EngineClient, domain_secret
from actors.node.group.group import Group
from actors.node.group.records import EngineRecords, EngineTokens
from actors.node.group.trace import GroupTrace
from actors.node.host import NodeHost
from actors.node.policy.domain import DomainPolicies
from actors.node.session.exchange import Exchange
from actors.policy.store import PolicyConfig, PolicyStore
from fsm.registry.records import Row
from specs.limits.node import NODE_CHANCE
from transports.engine.contract import Engine

_NAME_BYTES: Final = 8


@attrs.define
class Shared:
    """Engine of a domain, and what this node shares with the others: records, policies, catalogue.

    Attributes:
        node: Id of this node, a new one at each start.
        mint: Secret by which all nodes of the domain recognise addresses of the domain; before
            `reach`, the secret that this node stores if it is the first one.
        counters: Counters of the node.
        colleagues: Asks other nodes for dashboard data.
        policies: The policies of the domain.
        catalogue: The catalogue of the domain.
        wall: Returns the seconds since the epoch by which logins expire.
    """

    engine: Engine
    node: str
    mint: bytes = attrs.field(repr=False)
    counters: Counters
    policies: DomainPolicies
    catalogue: DomainCatalogue = attrs.field(factory=DomainCatalogue)
    colleagues: Colleagues = attrs.field(init=False)
    wall: Callable[[], float] = attrs.field(default=trio.current_time, init=False)
    _group: Group | None = attrs.field(default=None, init=False)
    _records: EngineRecords | None = attrs.field(default=None, init=False)

    @colleagues.default
    def _asking(self) -> Colleagues:
        return Colleagues(self.engine, self.node, self.counters)

    async def reach(self) -> None:
        """Wait until the engine answers, and read the secret of the domain from the engine.

        If cancelled, nothing has changed, or this node has stored the secret.
        """
        self.mint = await domain_secret(self.engine, self.mint)

    def join(self, host: NodeHost, exchange: Exchange, address: str) -> Group:
        """Make the group that connects a bus with the other nodes.

        Args:
            host: The node.
            exchange: The sessions of the bus.
            address: Base URL of the node's HTTP service; empty: there is none.
        """
        self.policies.wall = self.wall = host.login_clock
        name, counts = _name_of(self.mint), self.engine.counts
        trace = GroupTrace(host.tracer, self.counters, self.node, name, counts)
        self._group = Group(exchange, self, trace, address)
        return self._group

    def records(self) -> EngineRecords:
        """Open the registry records of the domain, which all its nodes share."""
        self._records = EngineRecords(self.engine, self._tidies, self.counters)
        return self._records

    def known_records(self) -> list[Row]:
        """Return the registry records that this node knows; none before they are opened."""
        return [] if self._records is None else self._records.load()

    def tokens(self, wall: Callable[[], float]) -> EngineTokens:
        """Open the used login tokens of the domain, which all its nodes share.

        Args:
            wall: Returns the seconds since the epoch by which logins expire.
        """
        return EngineTokens(self.engine, wall)

    def _tidies(self, key: str) -> bool:
        return self._group is not None and self._group.membership.tidies(key)

    async def start(self, host: NodeHost) -> None:
        """Start the actors that use the engine, and wait until the node is a member of the group.

        If cancelled, actors that have started go on.
        """
        bus = host.bus_ref
        await host.start("group", partial(EngineClient, self, bus))
        if (served := self.catalogue.shown) is not None:
            make = partial(CatalogueReader, served, self.catalogue.core, bus)
            await host.start("catalogue", make)
        await bus.ask(lambda reply: lambda node: node.group.start_serving(reply))

    def why_not(self) -> str | None:
        """Return half a sentence on why the engine cannot be used now; None: it can be used."""
        if self._group is None:
            return "it has not been reached yet"
        why = self._group.overview.why_not()
        return why if why or self._group.is_member else "its rows are being read"

    @property
    def overview(self) -> Overview | None:
        """State of the group for the dashboard; None: the bus has not started yet."""
        return None if self._group is None else self._group.overview


@asynccontextmanager
async def open_shared(
    opened: Callable[[], AbstractAsyncContextManager[Engine]],
    name: str,
    secret: bytes,
    counters: Counters,
    policies: DomainPolicies | None,
) -> AsyncIterator[Shared]:
    """Open the engine of a domain; the engine need not be reachable yet.

    Args:
        opened: Opens the engine.
        name: Name of the node; empty: a random name.
        secret: The secret of the domain, if this is the first of its nodes.
        counters: Counters of refused rows, and of losses of the engine.
        policies: The policies of the node; None: the program has rules of its own.

    Yields:
        The shared state.

    If cancelled, the engine is closed.
    """
    async with opened() as engine:
        chance = secrets.token_hex(NODE_CHANCE)
        node = f"{name}-{chance}" if name else chance
        domain = policies or DomainPolicies(PolicyStore(PolicyConfig()))
        counters.watch(Gauge.POLICY_VERSION, lambda: domain.versions)
        yield Shared(engine, node, secret, counters, domain)


def _name_of(secret: bytes) -> str:
    """Return a group's name for traces, derived from its secret, which never changes."""
    return blake2b(secret, digest_size=_NAME_BYTES, person=b"group").hexdigest()
