"""The policy enforcement point of a node, and its management by messages (POL-01, POL-05).

A message that no policy decides is denied, with the cause in the log (POL-14). A permission
whose obligation cannot be fulfilled is a denial (I-K3). The node's configuration says what
happens if no policy applies (POL-15). Messages to `MN(d)/policy` manage the policies; only
administrators may send them.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, final

import attrs
from typing_extensions import override

from actors.kit.log import get_logger
from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.supervisor import ChildSpec, Supervisor
from actors.node.components import LocalService
from actors.node.config import PolicyConfig
from actors.node.messages import BusMessage
from actors.node.policy.store import PolicyReloader, PolicyStore, Reload, ReloadAsked
from actors.node.policy_hook import Asker, Decision, Policy, Ruling
from actors.node.session.exchange import Exchange
from actors.node.tables import NodeAddresses, Tables
from fsm.policy.attributes import Place, Request, domain
from fsm.policy.explain import TASKS, effective, missing
from fsm.policy.model import Book, PolicySet, Task
from fsm.policy.page import BadPolicyError
from fsm.policy.pdp import SILENT, Pdp, Verdict
from fsm.policy.reading import read_set
from fsm.policy.terms import Direction, Moment, Result
from fsm.registry.node_rights import Ownership
from specs.bodies.policy import (
    UNTIL_STOP,
    AddPolicies,
    PolicyBook,
    PolicyChange,
    PolicyCommand,
    PolicyEntry,
    ReadPolicies,
    RemovePolicies,
    ReplacePolicies,
)
from specs.errors import BadMessageError
from specs.identity import Identity
from specs.limits.node import MAX_POLICY_COUNTERS, MAX_POLICY_SETS
from specs.limits.protocol import MAX_MESSAGE_BYTES
from specs.message import Message, MessageType, instance_id, refuse, reply_to
from specs.reply_code import Code
from transports.bodies import read_body, write_body
from transports.codec import encode

__all__ = ["Order", "Policing", "PolicyEngine", "Tasks", "policing_of"]

_log = get_logger("actors.node")


STAMP: Final = "stamp"
"""The task that the enforcement point itself sees to: it makes another message."""


@final
@attrs.frozen
class Order:
    """A decision, as far as tasks need to know it.

    Attributes:
        user: User of the sender; None: no login.
    """

    message: Message
    decision: str
    policy: str
    user: str | None


@final
class Tasks:
    """Does what decisions oblige a node to; lives as long as the node.

    Attributes:
        counts: What `count` counted, by name.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self.counts = MappingProxyType(self._counts)

    def do(self, tasks: Sequence[Task], order: Order, when: Moment) -> str:
        """Do what is to be done at a moment; return which obligation failed, if one did.

        All that can be done is done, also if some of it fails.

        Args:
            tasks: Obligations and advice of the decision.
            order: Message and decision.
            when: Before or after the message is forwarded.
        """
        failed = ""
        for task in tasks:
            if task.when is when and not self._done(task, order):
                _log.warning(
                    "policy task failed",
                    task=task.do,
                    policy=order.policy,
                    advice=task.is_advice,
                    message=instance_id(order.message),
                )
                if not task.is_advice:
                    failed = failed or task.do
        return failed

    def impossible(self, tasks: Sequence[Task]) -> str:
        """Return the first obligation that cannot be fulfilled; empty: none."""
        unknown = (task.do for task in tasks if not task.is_advice and task.do not in TASKS)
        return next(unknown, "")

    def _done(self, task: Task, order: Order) -> bool:
        match task.do:
            case "log":
                self._write(task, order)
            case "count":
                return self._count(task.name)
            case "stamp":
                pass
            case _:
                return False
        return True

    def _write(self, task: Task, order: Order) -> None:
        """Write a line of the log, without what stands in the message."""
        message = order.message
        _log.warning(
            "policy",
            decision=order.decision,
            policy=order.policy,
            text=task.text or None,
            type=message.type.value,
            from_=message.from_,
            to=message.to,
            id=message.id,
            user=order.user,
        )

    def _count(self, name: str) -> bool:
        if name not in self._counts and len(self._counts) >= MAX_POLICY_COUNTERS:
            return False
        self._counts[name] += 1
        return True


ADMIN: Final = "admin"
"""The role whose bearers may manage policies."""


@final
class PolicyService(LocalService):
    """Shows and changes what the node judges by.

    Changes by message last until the node stops or reads its files again: the files
    are the operator's, and the node writes none of them.

    Args:
        identity_of: Returns the identity of a runtime's session now; None: no login.
        reloader: The actor that reads the files again; None: not yet started.
    """

    def __init__(
        self,
        store: PolicyStore,
        identity_of: Callable[[str], Identity | None],
        reloader: Callable[[], ActorRef[ReloadAsked | Reload] | None],
        counts: Mapping[str, int],
    ) -> None:
        self._store = store
        self._counts = counts
        self._identity_of = identity_of
        self._reloader = reloader

    @override
    def receive(self, message: Message, by: str) -> Message | None:
        identity = self._identity_of(by)
        if identity is None or ADMIN not in identity.roles:
            return refuse(message, Code.FORBIDDEN, f"managing policies requires the role {ADMIN}")
        match message.type:
            case MessageType.READ:
                return self._read(message, read_body(message, ReadPolicies))
            case MessageType.CREATE:
                return self._add(message, read_body(message, AddPolicies), identity)
            case MessageType.UPDATE:
                return self._replace(message, read_body(message, ReplacePolicies), identity)
            case MessageType.DELETE:
                return self._remove(message, read_body(message, RemovePolicies))
            case MessageType.EXECUTE:
                read_body(message, PolicyCommand)
                return self._reload(message, by)
            case other:
                known = "read, create, update, delete and execute"
                raise BadMessageError(f"policies know {known}, not {other}")

    def _read(self, message: Message, asked: ReadPolicies) -> Message:
        if asked.resource is None:
            book = _listed(self._store.book, self._counts)
            return reply_to(message, Code.OK, {"value": write_body(book)})
        one = self._store.book.set_of(asked.resource)
        if one is None:
            return _unknown(message, asked.resource)
        answer = reply_to(message, Code.OK, {"value": one.document})
        if len(encode(answer)) > MAX_MESSAGE_BYTES:
            why = f"{one.id} is too large for a message; look into {one.source}"
            return refuse(message, Code.TOO_LARGE, why)
        return answer

    def _add(self, message: Message, asked: AddPolicies, by: Identity) -> Message:
        one = _set_of(asked.value, by)
        if self._store.book.set_of(one.id) is not None:
            why = f"there is a set {one.id} already; replace it by update"
            return refuse(message, Code.CONFLICT, why)
        if self._store.is_full:
            why = f"there are {MAX_POLICY_SETS} sets; delete one first"
            return refuse(message, Code.TOO_LARGE, why)
        return _changed(message, self._store.add(one))

    def _replace(self, message: Message, asked: ReplacePolicies, by: Identity) -> Message:
        one = _set_of(asked.value, by)
        if one.id != asked.resource:
            raise BadMessageError(f"resource is {asked.resource}, but value.id is {one.id}")
        if self._store.book.set_of(one.id) is None:
            return _unknown(message, one.id)
        return _changed(message, self._store.replace(one))

    def _remove(self, message: Message, asked: RemovePolicies) -> Message:
        if self._store.book.set_of(asked.resource) is None:
            return _unknown(message, asked.resource)
        return _changed(message, self._store.remove(asked.resource))

    def _reload(self, message: Message, by: str) -> Message | None:
        """Have the files read: that takes a while, and the reading task sends the answer."""
        reloader = self._reloader()
        if reloader is None or not reloader.try_tell(ReloadAsked(message, by)):
            return refuse(message, Code.UNAVAILABLE, "the policy files cannot be read now")
        return None


def _changed(message: Message, book: Book) -> Message:
    """Answer that policies are others from now on."""
    change = PolicyChange(book.version, UNTIL_STOP)
    return reply_to(message, Code.OK, {"value": write_body(change)})


def _set_of(document: object, by: Identity) -> PolicySet:
    try:
        return read_set(document, by.user)
    except BadPolicyError as exc:
        path = f"value.{exc.path}" if exc.path else "value"
        raise BadMessageError(f"{path}:  {exc.reason}") from exc


def _unknown(message: Message, name: str) -> Message:
    return refuse(message, Code.NOT_FOUND, f"there is no policy set {name}")


def _listed(book: Book, counts: Mapping[str, int]) -> PolicyBook:
    entries = tuple(
        PolicyEntry(one.id, one.version, sum(len(each.rules) for each in one.policies), one.source)
        for one in book.sets
    )
    combining, default = str(book.combining), str(book.default)
    return PolicyBook(book.version, combining, default, entries, dict(counts))


_AUTH: Final = "auth"
_DEFAULT: Final = "default"
_UNDECIDED: Final = "the policy cannot decide about this message"
_UNFULFILLED: Final = "what the policy asks for along with it cannot be done"


@final
class PolicyEngine(Policy):
    """Judges by what the store holds when a message comes.

    Args:
        clock: Seconds since the epoch.
    """

    def __init__(
        self, store: PolicyStore, tasks: Tasks, place: Place, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._tasks = tasks
        self._place = place
        self._clock = clock
        self._pdp = store.pdp
        self._rulings: dict[tuple[str, Result, bool], Ruling] = {}

    @override
    def judge(self, message: Message, asker: Asker) -> Ruling:
        # Taken once: a change that comes meanwhile is for the next message.
        pdp = self._store.pdp
        is_outgoing = domain(message.to) != self._place.domain
        if pdp.is_silent:
            return self._ruling(pdp, SILENT, is_outgoing)
        request = Request(
            message,
            asker.runtime,
            asker.identity,
            self._clock(),
            self._place,
            sender=message.identity or asker.sender,
        )
        verdict = pdp.decide(request)
        if verdict.result is Result.INDETERMINATE:
            _add_cause(request, verdict)
        ruling = self._ruling(pdp, verdict, is_outgoing)
        if verdict.tasks:
            ruling = self._fulfilled(request, ruling, verdict.tasks)
        return _unforged(message, ruling) if pdp.is_stamping else ruling

    def _ruling(self, pdp: Pdp, verdict: Verdict, is_outgoing: bool) -> Ruling:  # noqa: FBT001 - passed on
        """Return what follows from a verdict by itself: the same for many messages."""
        if pdp is not self._pdp:
            self._pdp = pdp
            self._rulings.clear()
        key = verdict.path, verdict.result, is_outgoing
        ruling = self._rulings.get(key)
        if ruling is None:
            ruling = self._rulings[key] = _ruling_of(pdp.book, verdict, is_outgoing)
        return ruling

    def _fulfilled(self, request: Request, ruling: Ruling, tasks: tuple[Task, ...]) -> Ruling:
        """Do what a decision obliges to; a permission that cannot be kept is none."""
        message, vouched = request.message, request.vouched
        user = None if vouched is None else vouched.user
        order = Order(message, ruling.decision, ruling.policy, user)
        failed = self._tasks.impossible(tasks) or self._tasks.do(tasks, order, Moment.BEFORE)
        if failed and ruling.decision is Decision.PERMIT:
            _log.warning("policy obligation not fulfilled", task=failed, policy=ruling.policy)
            return attrs.evolve(ruling, decision=Decision.DENY, why=_UNFULFILLED)
        is_late = any(task.when is Moment.AFTER for task in tasks)
        later = partial(self._tasks.do, tasks, order, Moment.AFTER) if is_late else None
        is_marked = any(task.do == STAMP for task in tasks)
        return attrs.evolve(
            ruling,
            obligations=tuple(_name(task) for task in tasks),
            after=later,
            marked=_marked(message) if is_marked else None,
        )


def _ruling_of(book: Book, verdict: Verdict, is_outgoing: bool) -> Ruling:  # noqa: FBT001 - passed on
    result = effective(verdict, book.default)
    return Ruling(
        Decision.PERMIT if result is Result.PERMIT else Decision.DENY,
        verdict.path or _DEFAULT,
        _UNDECIDED if verdict.result is Result.INDETERMINATE else verdict.why,
        version=book.version,
        direction=str(Direction.OUT if is_outgoing else Direction.IN),
    )


def _add_cause(request: Request, verdict: Verdict) -> None:
    """Write why nothing could be decided (POL-14)."""
    _log.warning(
        "policy undecided",
        why=verdict.why,
        missing=", ".join(f"{name} ({why})" for name, why in missing(request).items()) or None,
        message=instance_id(request.message),
    )


def _name(task: Task) -> str:
    name = f"{task.do}:{task.name}" if task.name else task.do
    return f"{name}@after" if task.when is Moment.AFTER else name


def _marked(message: Message) -> Message:
    return attrs.evolve(message, body={**message.body, _AUTH: True})


def _unforged(message: Message, ruling: Ruling) -> Ruling:
    """Remove a sender's own stamp where policies stamp messages (POL-15)."""
    if ruling.marked is not None or message.body.get(_AUTH, False) is False:
        return ruling
    return attrs.evolve(ruling, marked=attrs.evolve(message, body={**message.body, _AUTH: False}))


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
    reloader: ActorRef[ReloadAsked | Reload] | None = None

    def engine(self, tables: Tables) -> PolicyEngine:
        """Make what judges for one life of the bus."""
        place = Place(self.addresses.domain, self.store.config.zone, partial(_owns, tables))
        return PolicyEngine(self.store, self.tasks, place, self.clock)

    def service(self, exchange: Exchange) -> PolicyService:
        """Make what answers administrators for one life of the bus."""
        identity_of = partial(_identity_of, exchange, self.clock)
        return PolicyService(self.store, identity_of, lambda: self.reloader, self.tasks.counts)

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
