"""The policy enforcement point of a node, and its management by messages (POL-01, POL-05).

Messages to `MN(d)/policy` manage the policies; only administrators may send them.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs
from typing_extensions import override

from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor, ActorRef, Reply
from actors.node.components import LocalService
from actors.node.host import NodeHost
from actors.node.policy_hook import Asker, Policy
from actors.node.session.exchange import Exchange
from actors.node.tables import NodeAddresses, Tables
from actors.policy.engine import PolicyEngine, Ruling, Tasks
from actors.policy.management import PolicyManagement, changed, unusable
from actors.policy.store import (
    PolicyConfig,
    PolicyFileError,
    PolicyStore,
    reload,
    reread,
    say_reread,
)
from fsm.effects import Refused
from fsm.policy.attributes import Place, Request, domain
from fsm.policy.model import Book
from fsm.registry.node_rights import Ownership
from specs.bodies.policy import UNTIL_CHANGED, UNTIL_RELOAD, UNTIL_STOP
from specs.identity import Identity
from specs.message import Message, refuse
from specs.reply_code import Code

if TYPE_CHECKING:
    from actors.node.policy.domain import DomainPolicies


_log = get_logger("actors.policy")


@attrs.frozen
class Reload:
    """The operator at the node's terminal has the files read again.

    Attributes:
        reply: Receives why they could not be used; empty: they hold now.
    """

    reply: Reply[str]


@attrs.frozen
class ReloadAsked:
    """An administrator asks for it by a message, which is answered when it is done."""

    message: Message
    by: str


_Message: TypeAlias = ReloadAsked | Reload


class PolicyReloader(Actor[_Message]):
    """Reads in a thread, one after the other, and replaces all policies or none."""

    def __init__(self, policing: "Policing", host: NodeHost) -> None:
        self._store = policing.store
        self._domain = policing.domain
        self._host = host

    @override
    async def handle(self, message: _Message) -> None:
        outcome = await self._reloaded()
        match message:
            case ReloadAsked(asked, by):
                self._host.send(self._answer(asked, outcome), by)
            case Reload(reply):
                reply.send("" if isinstance(outcome, Book) else _why(outcome))

    async def _reloaded(self) -> Book | Refused | PolicyFileError:
        if (domain := self._domain) is None:
            return await reload(self._store)
        book = await reread(self._store)
        if isinstance(book, PolicyFileError):
            return book
        outcome: Book | Refused = await self._host.bus_ref.ask(
            lambda reply: lambda _: domain.propose(book, reply.send, is_of_files=True)
        )
        if isinstance(outcome, Book):
            say_reread(outcome)
        else:
            _log.error("policies kept", why=outcome.why, version=self._store.book.version)
        return outcome

    def _answer(self, asked: Message, outcome: Book | Refused | PolicyFileError) -> Message:
        if isinstance(outcome, PolicyFileError):
            return unusable(asked, outcome)
        return changed(asked, outcome, UNTIL_RELOAD if self._domain is None else UNTIL_CHANGED)


def _why(not_done: Refused | PolicyFileError) -> str:
    return not_done.why if isinstance(not_done, Refused) else str(not_done)


ADMIN: Final = "admin"
"""The role whose bearers may manage policies."""


class PolicyService(LocalService):
    """Answers administrators who manage the policies of the node.

    Args:
        policing: The policy engine.
        exchange: The sessions of the node.
    """

    def __init__(self, policing: "Policing", exchange: Exchange) -> None:
        self._policing = policing
        self._management = PolicyManagement(policing.store, policing.tasks.counts)
        self._exchange = exchange

    @override
    def receive(self, message: Message, by: str) -> Message | None:
        identity = _identity_of(self._exchange, self._policing.clock, by)
        if identity is None or ADMIN not in identity.roles:
            return refuse(message, Code.FORBIDDEN, f"managing policies requires the role {ADMIN}")
        match self._management.answer(message, identity.user):
            case Message() as answer:
                return answer
            case Book() as book:
                return self._change(book, message, by)
            case None:
                return self._reload(message, by)

    def _change(self, book: Book, message: Message, by: str) -> Message | None:
        if self._policing.domain is None:
            self._policing.store.adopt(book)
            return changed(message, book, UNTIL_STOP)
        self._policing.domain.propose(book, partial(self._proposed, message, by))
        return None

    def _proposed(self, message: Message, by: str, outcome: Book | Refused) -> None:
        self._exchange.send(by, changed(message, outcome, UNTIL_CHANGED))

    def _reload(self, message: Message, by: str) -> Message | None:
        reloader = self._policing.reloader
        if reloader is None or not reloader.try_tell(ReloadAsked(message, by)):
            return refuse(message, Code.UNAVAILABLE, "the policy files cannot be read now")
        # The reading task sends the answer.
        return None


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


@attrs.define(eq=False)
class Policing:
    """The policy engine; outlives a bus that crashes.

    Attributes:
        clock: Seconds since the epoch, as the node counts them.
        reloader: The actor that reads the files again; None: not yet started.
        domain: The policies that other nodes of the domain judge by, too; None: there is none.
    """

    store: PolicyStore
    addresses: NodeAddresses
    clock: Callable[[], float]
    tasks: Tasks = attrs.field(factory=Tasks)
    reloader: ActorRef[_Message] | None = None
    domain: "DomainPolicies | None" = None

    def engine(self, tables: Tables) -> NodePolicies:
        """Make what judges for one life of the bus."""
        place = Place(self.addresses.domain, self.store.config.zone, partial(_owns, tables))
        return NodePolicies(PolicyEngine(self.store, self.tasks), place, self.clock)

    def service(self, exchange: Exchange) -> PolicyService:
        """Make what answers administrators for one life of the bus."""
        return PolicyService(self, exchange)

    async def start(self, host: NodeHost) -> None:
        """Start what reads the files again."""
        make = partial(PolicyReloader, self, host)
        self.reloader = await host.start("policies", make)

    async def reload(self) -> str:
        """Have the files read again; return why they cannot be used, if they cannot."""
        return "the node is starting" if self.reloader is None else await self.reloader.ask(Reload)


def policing_of(
    config: PolicyConfig | None,
    addresses: NodeAddresses,
    clock: Callable[[], float],
    *,
    is_shared: bool,
) -> Policing | None:
    """Make the policy engine of a node that has policies.

    Args:
        config: The configuration.
        addresses: Addresses of the node's parts.
        clock: Returns the time in seconds.
        is_shared: Whether other nodes of the domain judge by the same policies.

    Raises:
        PolicyFileError: A file cannot be used: the node must not start.
    """
    if config is None:
        return None
    policing = Policing(PolicyStore(config), addresses, clock)
    if is_shared:
        # Not needed by the only node of a domain.
        from actors.node.policy.domain import DomainPolicies  # noqa: PLC0415

        policing.domain = DomainPolicies(policing.store)
    return policing


def _owns(tables: Tables, address: str, runtime: str) -> bool:
    return tables.rights.ownership(address, runtime) is Ownership.OWN


def _identity_of(exchange: Exchange, clock: Callable[[], float], runtime: str) -> Identity | None:
    session = exchange.sessions.get(runtime)
    identity = None if session is None else session.identity
    return identity if identity is not None and clock() < identity.until else None
