"""What the policy engine of one node is made of, and how it is joined to the node."""

from collections.abc import Callable
from functools import partial
from typing import final

import attrs

from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.supervisor import ChildSpec, Supervisor
from actors.node.messages import BusMessage
from actors.node.policy.config import PolicyConfig
from actors.node.policy.desk import PolicyDesk
from actors.node.policy.engine import PolicyEngine
from actors.node.policy.reloader import PolicyReloader, Reload, ReloadAsked
from actors.node.policy.store import PolicyStore
from actors.node.policy.tasks import Tasks
from actors.node.session.exchange import Exchange
from actors.node.tables import NodeAddresses, Tables
from fsm.policy.request import Place
from fsm.registry.node_rights import Ownership
from specs.identity import Identity

__all__ = ["Policing", "policing_of"]


@final
@attrs.define(eq=False)
class Policing:
    """The policy engine; outlives a bus that crashes.

    Attributes:
        clock: Seconds since the epoch, as the node counts them.
        reloader: Who reads the files again; None: it has not been started yet.
    """

    store: PolicyStore
    addresses: NodeAddresses
    clock: Callable[[], float]
    tasks: Tasks = attrs.field(factory=Tasks)
    reloader: ActorRef[ReloadAsked | Reload] | None = None

    def engine(self, tables: Tables) -> PolicyEngine:
        """Make what judges for one life of the bus."""
        place = Place(self.addresses.domain, self.store.config.zone, partial(_owns, tables))
        return PolicyEngine(self.store, self.tasks, place, self.clock)

    def desk(self, exchange: Exchange) -> PolicyDesk:
        """Make what answers administrators for one life of the bus."""
        identity_of = partial(_identity_of, exchange, self.clock)
        return PolicyDesk(self.store, identity_of, lambda: self.reloader, self.tasks.counts)

    async def start(self, supervisor: Supervisor, bus: ActorRef[BusMessage]) -> None:
        """Start what reads the files again."""
        make = partial(PolicyReloader, self.store, bus)
        self.reloader = await supervisor.start_child(ChildSpec("policies", make))

    async def reload(self) -> str:
        """Have the files read again; return why they cannot be used, if they cannot."""
        return "the node is starting" if self.reloader is None else await self.reloader.ask(Reload)


def policing_of(
    config: PolicyConfig | None, addresses: NodeAddresses, clock: Callable[[], float]
) -> Policing | None:
    """Make the policy engine of a node that has policies.

    Raises:
        PolicyFileError: A file cannot be used: the node must not start.
    """
    return None if config is None else Policing(PolicyStore(config), addresses, clock)


def _owns(tables: Tables, address: str, runtime: str) -> bool:
    return tables.rights.ownership(address, runtime) is Ownership.OWN


def _identity_of(exchange: Exchange, clock: Callable[[], float], runtime: str) -> Identity | None:
    session = exchange.sessions.get(runtime)
    identity = None if session is None else session.identity
    return identity if identity is not None and clock() < identity.until else None
