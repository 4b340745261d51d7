"""The policy enforcement point of a node, and its management by messages (POL-01, POL-05).

Messages to `MN(d)/policy` manage the policies; only administrators may send them.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias, final

import attrs
from typing_extensions import override

from actors.kit.supervision.actor import Actor, ActorRef, Reply
from actors.kit.supervision.supervisor import ChildSpec, Supervisor
from actors.node.components import LocalService
from actors.node.messages import BusMessage, Emitted
from actors.node.policy_hook import Asker, Policy
from actors.node.session.exchange import Exchange
from actors.node.tables import NodeAddresses, Tables
from actors.policy.config import PolicyConfig, PolicyFileError
from actors.policy.engine import PolicyEngine, Tasks
from actors.policy.management import PolicyManagement, reloaded
from actors.policy.ruling import Ruling
from actors.policy.store import PolicyStore, reload
from fsm.policy.attributes import Place, Request, domain
from fsm.registry.node_rights import Ownership
from specs.identity import Identity
from specs.message import Message, refuse
from specs.reply_code import Code

__all__ = ["NodePolicies", "Policing", "PolicyReloader", "policing_of"]


@final
@attrs.frozen
class Reload:
    """The operator at the node's terminal has the files read again.

    Attributes:
        reply: Receives why they could not be used; empty: they hold now.
    """

    reply: Reply[str]


@final
@attrs.frozen
class ReloadAsked:
    """An administrator asks for it by a message, which is answered when it is done."""

    message: Message
    by: str


_Message: TypeAlias = ReloadAsked | Reload


@final
class PolicyReloader(Actor[_Message]):
    """Reads in a thread, one after the other, and replaces all policies or none."""

    def __init__(self, store: PolicyStore, bus: ActorRef[BusMessage]) -> None:
        self._store = store
        self._bus = bus

    @override
    async def handle(self, message: _Message) -> None:
        match message:
            case ReloadAsked(asked, by):
                await self._bus.tell(Emitted(reloaded(asked, await reload(self._store)), by))
            case Reload(reply):
                outcome = await reload(self._store)
                reply.send(str(outcome) if isinstance(outcome, PolicyFileError) else "")


ADMIN: Final = "admin"
"""The role whose bearers may manage policies."""


@final
class PolicyService(LocalService):
    """Answers administrators who manage the policies of the node.

    Args:
        management: Shows and changes the policies.
        identity_of: Returns the identity of a runtime's session now; None: no login.
        reloader: The actor that reads the files again; None: not yet started.
    """

    def __init__(
        self,
        management: PolicyManagement,
        identity_of: Callable[[str], Identity | None],
        reloader: Callable[[], ActorRef[_Message] | None],
    ) -> None:
        self._management = management
        self._identity_of = identity_of
        self._reloader = reloader

    @override
    def receive(self, message: Message, by: str) -> Message | None:
        identity = self._identity_of(by)
        if identity is None or ADMIN not in identity.roles:
            return refuse(message, Code.FORBIDDEN, f"managing policies requires the role {ADMIN}")
        answer = self._management.answer(message, identity.user)
        if answer is not None:
            return answer
        reloader = self._reloader()
        if reloader is None or not reloader.try_tell(ReloadAsked(message, by)):
            return refuse(message, Code.UNAVAILABLE, "the policy files cannot be read now")
        # The reading task sends the answer.
        return None


@final
class NodePolicies(Policy):
    """Asks the policy engine about the messages of a node.

    Args:
        engine: The engine.
        place: The node.
        clock: Seconds since the epoch.
    """

    def __init__(self, engine: PolicyEngine, place: Place, clock: Callable[[], float]) -> None:
        self._engine = engine
        self._place = place
        self._clock = clock

    @override
    def judge(self, message: Message, asker: Asker) -> Ruling:
        is_outgoing = domain(message.to) != self._place.domain
        unread = self._engine.unread(is_outgoing=is_outgoing)
        if unread is not None:
            return unread
        sender = message.identity or asker.sender
        request = Request(
            message, asker.runtime, asker.identity, self._clock(), self._place, sender=sender
        )
        return self._engine.judge(request)


@final
@attrs.define(eq=False)
class Policing:
    """The policy engine; outlives a bus that crashes.

    Attributes:
        clock: Seconds since the epoch, as the node counts them.
        reloader: The actor that reads the files again; None: not yet started.
    """

    store: PolicyStore
    addresses: NodeAddresses
    clock: Callable[[], float]
    tasks: Tasks = attrs.field(factory=Tasks)
    reloader: ActorRef[_Message] | None = None

    def engine(self, tables: Tables) -> NodePolicies:
        """Make what judges for one life of the bus."""
        place = Place(self.addresses.domain, self.store.config.zone, partial(_owns, tables))
        return NodePolicies(PolicyEngine(self.store, self.tasks), place, self.clock)

    def service(self, exchange: Exchange) -> PolicyService:
        """Make what answers administrators for one life of the bus."""
        identity_of = partial(_identity_of, exchange, self.clock)
        management = PolicyManagement(self.store, self.tasks.counts)
        return PolicyService(management, identity_of, lambda: self.reloader)

    async def start(self, supervisor: Supervisor, bus: ActorRef[BusMessage]) -> None:
        """Start what reads the files again.

        Args:
            supervisor: Supervisor of the started actors.
            bus: Message bus of the node.
        """
        make = partial(PolicyReloader, self.store, bus)
        self.reloader = await supervisor.start_child(ChildSpec("policies", make))

    async def reload(self) -> str:
        """Have the files read again; return why they cannot be used, if they cannot."""
        return "the node is starting" if self.reloader is None else await self.reloader.ask(Reload)


def policing_of(
    config: PolicyConfig | None, addresses: NodeAddresses, clock: Callable[[], float]
) -> Policing | None:
    """Make the policy engine of a node that has policies.

    Args:
        config: The configuration.
        addresses: Addresses of the node's parts.
        clock: Returns the time in seconds.

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
