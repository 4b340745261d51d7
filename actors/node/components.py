"""Table of the addresses at which components of a node answer; the bus changes the table (MN-09).

Two components run in the task of the bus: the subscription manager at `MN(d)/sm` (M-01..M-04, M-29,
M-35..M-44), and address allocation at `MN(d)/address-allocation` (M-18..M-20).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Container
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from actors.node.errors import AddressTakenError
from actors.node.messages import Component
from actors.node.tables import ConsentEnded, Tables
from actors.node.trace import ComponentTrace
from fsm.effects import Refused, RowChanged
from fsm.registry.allocation import ENTROPY
from fsm.registry.node_rights import Hearing
from fsm.sync.subscriptions import entity_of
from specs.addresses.address import domain_of, is_node
from specs.bodies.link import Path
from specs.bodies.object import CutPath, PathRequest, path_class
from specs.bodies.registry import Allocate, Allocated, Free
from specs.errors import BadMessageError
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code
from specs.trace import Op
from transports.bodies import read_body, write_body

if TYPE_CHECKING:
    from actors.node.foreign import Onward


class LocalService(ABC):
    """Component of a node that answers requests at an address without waiting."""

    @abstractmethod
    def receive(self, message: Message, by: str) -> Message | None:
        """Handle a request of a runtime, and return the answer; None: the answer follows later.

        Args:
            message: The message.
            by: Address of the session's runtime.

        Raises:
            BadMessageError: The body is not as the message catalogue requires.
        """


_TABLE: Final = "components"
_WRITER: Final = "bus"


class Components(Container[str]):
    """Table of the addresses of a node's components; only the task of the bus uses the table.

    An address belongs to its component from when the node is made, also while that component
    restarts: a request to the address then fails, and the address counts as owned.

    Args:
        declared: Addresses of the parts that the node is to have.
    """

    def __init__(self, declared: Collection[str], trace: ComponentTrace) -> None:
        self._declared = frozenset(declared)
        self._trace = trace
        self._services: dict[str, str] = {}
        self._attached: dict[str, Component] = {}

    @override
    def __contains__(self, address: object) -> bool:
        return address in self._declared or address in self._attached

    def get(self, address: str) -> Component | None:
        """Return the actor that answers at an address now; None: no actor, or the bus itself."""
        return self._attached.get(address)

    def values(self) -> tuple[Component, ...]:
        """Return every actor that answers at an address."""
        return tuple(self._attached.values())

    def serve(self, address: str, name: str) -> None:
        """Note that the task of the bus itself answers at an address.

        Args:
            address: The address.
            name: The name.
        """
        self._services[address] = name
        self._row(Op.ADD, address, name)

    def attach(self, address: str, component: Component) -> None:
        """Let an actor answer at an address. Idempotent.

        Args:
            address: The address.
            component: The actor.

        Raises:
            AddressTakenError: Another part answers there.
        """
        current = self._attached.get(address)
        if current is component:
            return
        if current is not None or address in self._services:
            holder = self._services[address] if current is None else current.name
            raise AddressTakenError(address, component.name, holder)
        self._attached[address] = component
        self._row(Op.ADD, address, component.name)

    def detach(self, address: str, component: Component) -> None:
        """Stop an actor from answering at an address. Idempotent.

        Args:
            address: The address.
            component: The actor.
        """
        if self._attached.get(address) is component:
            del self._attached[address]
            self._row(Op.DEL, address, component.name)

    def close(self) -> None:
        """Clear the table when the bus ends."""
        for address, component in tuple(self._attached.items()):
            self.detach(address, component)
        for address, name in self._services.items():
            self._row(Op.DEL, address, name)
        self._services.clear()

    def _row(self, op: Op, address: str, name: str) -> None:
        self._trace.row(RowChanged(op, _TABLE, address, name, _WRITER))


class PathService(LocalService):
    """Subscription manager: adds and removes subscriptions (paths) of runtimes to addresses.

    The bus has checked that `source` belongs to the session. A path on an object of another session
    waits for the consent of its owner; addresses that nobody may observe are refused. When an owner
    reports an expelled observer, nothing is delivered for that observer any more.

    Args:
        onward: Sets paths at the nodes of other domains, too; None: there are no routes there.
    """

    def __init__(self, tables: Tables, onward: "Onward | None" = None) -> None:
        self._tables = tables
        self._onward = onward

    @override
    def receive(self, message: Message, by: str) -> Message | None:
        earlier_paths = () if self._onward is None else self._tables.subscriptions.resources_of(by)
        body: PathRequest = read_body(message, path_class(message))
        refusal = self._change_paths(message, body, by)
        if refusal is not None:
            return refuse(message, refusal.code, refusal.why)
        is_set = message.type is MessageType.SUBSCRIBE and isinstance(body, Path)
        if self._onward is not None and is_set and not is_node(by):
            return self._onward.subscribe(message, by, body.resources, earlier_paths)
        return reply_to(message, Code.OK)

    def _change_paths(self, message: Message, body: PathRequest, by: str) -> Refused | None:
        match message.type, body:
            case _, CutPath():
                return self._cut(body, by)
            case MessageType.SUBSCRIBE, Path():
                return self._subscribe(body.resources, by)
            case MessageType.UNSUBSCRIBE, Path():
                self._tables.subscriptions.unsubscribe(by, body.resources)
                return None
            case other, _:
                raise BadMessageError(f"paths are subscribed and unsubscribed, not {other}")

    def _cut(self, cut: CutPath, by: str) -> Refused | None:
        """Withdraw the consent of an object's owner to an observer (SYN-21)."""
        rights = self._tables.rights
        entities = tuple(dict.fromkeys(entity_of(resource) for resource in cut.resources))
        if any(rights.owner_of(each) != by for each in entities):
            return Refused(Code.FORBIDDEN, "only the owner of an object shuts an observer out")
        runtime = cut.runtime or rights.owner_of(cut.observer)
        if runtime is not None:
            for entity in entities:
                is_expired = bool(cut.expired)
                self._tables.end_consent(ConsentEnded(entity, runtime, cut.observer, is_expired))
        return None

    def _subscribe(self, resources: tuple[str, ...], by: str) -> Refused | None:
        rights = self._tables.rights
        claims = tuple(each for each in resources if rights.may_claim(each, by))
        awaiting_consent = []
        for resource in resources:
            is_own = entity_of(resource) in claims
            hearing = Hearing.AT_ONCE if is_own else rights.hearing(resource, by)
            if hearing is Hearing.IF_PUBLISHED and not self._is_published(resource):
                hearing = Hearing.NEVER
            if hearing is Hearing.NEVER:
                return Refused(Code.FORBIDDEN, f"{resource} is not for this session to hear")
            if hearing is Hearing.BY_CONSENT:
                awaiting_consent.append(resource)
        refusal = self._tables.subscriptions.refusal(by, resources)
        if refusal is not None:
            return refusal
        outcome = self._tables.allocation.claim(by, claims)
        if outcome is not None:
            return outcome
        return self._tables.subscriptions.subscribe(by, resources, frozenset(awaiting_consent))

    def _is_published(self, resource: str) -> bool:
        """Return whether an address is published: its own owner subscribes to it (REG-12)."""
        owner = self._tables.rights.owner_of(resource)
        return owner in self._tables.subscriptions.subscribers(resource)


class AllocationService(LocalService):
    """Address allocation: reserves addresses of the node's domain for runtimes, and frees them."""

    def __init__(
        self, tables: Tables, schemes: frozenset[str], entropy: Callable[[int], bytes]
    ) -> None:
        self._tables = tables
        self._schemes = schemes
        self._entropy = entropy

    @override
    def receive(self, message: Message, by: str) -> Message:
        match message.type:
            case MessageType.CREATE:
                return self._allocate(message, read_body(message, Allocate), by)
            case MessageType.DELETE:
                return self._free(message, read_body(message, Free), by)
            case other:
                raise BadMessageError(f"address allocation knows create and delete, not {other}")

    def _allocate(self, message: Message, request: Allocate, by: str) -> Message:
        if domain_of(by) != self._tables.addresses.domain:
            # A runtime acts for its own domain only; the address would be of this domain.
            why = "addresses are allocated to runtimes of this domain only"
            return refuse(message, Code.FORBIDDEN, why)
        if request.scheme not in self._schemes:
            raise BadMessageError(f"no addresses of scheme {request.scheme!r} are allocated here")
        fresh = tuple(self._fresh(request.scheme, by) for _ in range(request.value.number))
        tables, key = self._tables, request.value.allocation_key
        outcome = tables.allocation.allocate(by, fresh, key)
        if isinstance(outcome, Refused):
            return refuse(message, outcome.code, outcome.why)
        return reply_to(message, Code.OK, {"value": write_body(Allocated(fresh))})

    def _free(self, message: Message, request: Free, by: str) -> Message:
        table = self._tables.allocation
        outcome = (
            table.free(by, request.children_resources or ())
            if request.resource is None
            else table.free_block(by, request.resource)
        )
        if isinstance(outcome, Refused):
            return refuse(message, outcome.code, outcome.why)
        return reply_to(message, Code.OK)

    def _fresh(self, scheme: str, by: str) -> str:
        name = self._tables.mint.name(self._entropy(ENTROPY), by)
        return f"{scheme}://{self._tables.addresses.domain}/{name}"
