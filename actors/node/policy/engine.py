"""The policy enforcement point of a node, and its management by messages (POL-01, POL-05).

Messages to `MN(d)/policy` manage the policies; only administrators may send them.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs
import trio
from typing_extensions import override

from actors.kit.log import get_logger
from actors.kit.supervision.supervisor import Crash
from actors.node.components import LocalService
from actors.node.host import NodeHost
from actors.node.policy_hook import Asker, Policy
from actors.node.session.exchange import Exchange
from actors.node.tables import Tables
from actors.policy.engine import PolicyEngine, Ruling, Tasks
from actors.policy.management import PolicyManagement, change_answer, unusable
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
from specs.limits.protocol import MAILBOX
from specs.message import Message, refuse
from specs.reply_code import Code

if TYPE_CHECKING:
    from actors.node.policy.domain import DomainPolicies


_log = get_logger("actors.policy")


ADMIN: Final = "admin"
"""The role whose holders may manage policies."""


class PolicyService(LocalService):
    """Answer administrators who manage the policies of the node.

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
        identity = _identity_of(self._exchange, self._policing.host.clock, by)
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
            return change_answer(message, book, UNTIL_STOP)
        self._policing.domain.propose(book, partial(self._answer_proposal, message, by))
        return None

    def _answer_proposal(self, message: Message, by: str, outcome: Book | Refused) -> None:
        self._exchange.send(by, change_answer(message, outcome, UNTIL_CHANGED))

    def _reload(self, message: Message, by: str) -> Message | None:
        if self._policing.reading.statistics().tasks_waiting >= MAILBOX:
            return refuse(message, Code.UNAVAILABLE, "the policy files cannot be read now")
        self._policing.host.bus.spawn(self._answer_reload, message, by)
        return None

    async def _answer_reload(self, message: Message, by: str) -> None:
        answer = refuse(message, Code.UNAVAILABLE, "the policy files cannot be read now")
        host = self._policing.host
        # Otherwise an error in the files would crash the bus, and end all sessions.
        with Crash(partial(host.monitor.record_crash, "policy")):
            outcome = await self._policing.reread()
            if isinstance(outcome, PolicyFileError):
                answer = unusable(message, outcome)
            else:
                until = UNTIL_RELOAD if self._policing.domain is None else UNTIL_CHANGED
                answer = change_answer(message, outcome, until)
        host.bus.call(host.bus.answer, by, answer)


class NodePolicies(Policy):
    """Judge the messages of a node by its policies.

    Args:
        engine: The engine.
        place: The node.
        clock: Returns the seconds since the epoch.
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
        domain: The policies that the nodes of the domain share; None: they share none.
        reading: Lock while the files are read, so that all policies are replaced, or none.
        host: The node; set before its parts start.
    """

    store: PolicyStore
    domain: "DomainPolicies | None" = None
    tasks: Tasks = attrs.field(factory=Tasks)
    reading: trio.Lock = attrs.field(factory=trio.Lock)
    host: NodeHost = attrs.field(init=False)

    def engine(self, tables: Tables) -> NodePolicies:
        """Make the policy judge of one bus."""
        place = Place(self.host.addresses.domain, self.store.config.zone, partial(_owns, tables))
        return NodePolicies(PolicyEngine(self.store, self.tasks), place, self.host.clock)

    async def reload(self) -> str:
        """Read the files again; return why they cannot be used, or an empty text."""
        outcome = await self.reread()
        if isinstance(outcome, Book):
            return ""
        return outcome.why if isinstance(outcome, Refused) else str(outcome)

    async def reread(self) -> Book | Refused | PolicyFileError:
        """Read the files again, in a thread; return the policies in effect, or the refusal.

        If cancelled, the files may be read all the same.

        Raises:
            ActorStoppedError: The node has closed, or its bus is restarting.
        """
        async with self.reading:
            if (domain := self.domain) is None:
                return await reload(self.store)
            book = await reread(self.store)
            if isinstance(book, PolicyFileError):
                return book
            outcome: Book | Refused = await self.host.bus_ref.ask(
                lambda reply: lambda _: domain.propose(book, reply.send, is_of_files=True)
            )
            if isinstance(outcome, Book):
                say_reread(outcome)
            else:
                _log.error("policies kept", why=outcome.why, version=self.store.book.version)
            return outcome


def policing_of(config: PolicyConfig | None, *, is_shared: bool) -> Policing | None:
    """Make the policy engine of a node that has policies.

    Args:
        config: The configuration.
        is_shared: Whether other nodes of the domain judge by the same policies.

    Raises:
        PolicyFileError: A file cannot be used: the node must not start.
    """
    if config is None:
        return None
    policing = Policing(PolicyStore(config))
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
