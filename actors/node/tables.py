"""Routing tables of a node: owners of addresses, and subscriptions."""

from collections.abc import Callable, Collection, Container
from typing import TypeAlias

import attrs
from typing_extensions import override

from actors.node.trace import ComponentTrace
from fsm.bus.node_routing import NodeRouting, RememberedRouting
from fsm.effects import RowChanged
from fsm.engine import Step
from fsm.limits.shares import own_user
from fsm.registry.allocation import AddressMint, AllocationCore, AllocationPort
from fsm.registry.node_rights import NodeRights, RightsRules
from fsm.session.node_session_io import PeerForm
from fsm.sync.subscriptions import ConsentCore, SubscriptionCore, entity_of
from specs.addresses import address
from specs.identity import Identity
from specs.limits.bus import REMEMBERED
from specs.message import Message
from specs.trace import Op


class NodeAddresses:
    """Addresses of the components of one node (ADR-04).

    Args:
        served: Addresses of the parts that not every node has.
    """

    def __init__(self, domain: str, served: Collection[str] = ()) -> None:
        self.domain = domain
        self.node = address.message_node(domain)
        self.session = address.session_manager(domain)
        self.allocation = address.address_allocation(domain)
        self.paths = address.subscription_manager(domain)
        self.registry = address.domain_registry(domain)
        self.identities = address.identity_manager(domain)
        self.quality = address.quality_broker(domain)
        self.policies = address.policy_manager(domain)
        self.push = address.push_manager(domain)
        always = {self.session, self.allocation, self.paths, self.registry}
        self.parts = frozenset({*always, *served})


@attrs.frozen
class TableRules:
    """Dependencies of the routing tables: rules about addresses and rights.

    Attributes:
        mint: Makes addresses.
        rights: Rules about the rights of sessions.
    """

    mint: AddressMint
    rights: RightsRules


@attrs.frozen(slots=True)
class ConsentEnded:
    """Notice to another node that the consent to an observer has ended.

    Attributes:
        entity: Address of the object.
        runtime: Address of the runtime of the observer.
        observer: Address of the observer.
        is_expired: Whether the lease of the observer is over; False: the owner of the object expels
            the observer.
    """

    entity: str
    runtime: str
    observer: str
    is_expired: bool


TableChange: TypeAlias = RowChanged | ConsentEnded
"""Change of a node's routing tables that the other nodes of the domain must know."""


class Tables(AllocationPort):
    """Routing tables of a node: owners of addresses, subscriptions, and consents to observers.

    The task of the bus owns the tables. Only the owners of addresses, `heed`, `came`, `release` and
    the subscriptions change them, and every change is traced here.

    Attributes:
        publish: Sends a change to the other nodes of the domain; None: the domain has one node.
        away: The runtimes with a session at another node of the domain, from the rows of that node.
        elsewhere: Other nodes of the domain that have subscribers, by address; whoever changes it
            calls `remembered.forget`.

    Args:
        parts: Addresses of the parts of the node; read for each message.
        identity_of: Returns the login of a session at this node; None: it has none.
        user_of: Returns the user of a runtime: all sessions of one user share its limits.
    """

    def __init__(
        self,
        addresses: NodeAddresses,
        rules: TableRules,
        parts: Container[str],
        trace: ComponentTrace,
        identity_of: Callable[[str], Identity | None] = lambda _: None,
        user_of: Callable[[str], str] = own_user,
    ) -> None:
        self.addresses = addresses
        self.publish: Callable[[TableChange], None] | None = None
        self.away: Container[str] = ()
        self.elsewhere: dict[str, dict[str, None]] = {}
        self._forms: dict[str, PeerForm] = {}
        self._brought: dict[str, None] = {}
        self._has_lost_paths = False
        self.mint = rules.mint
        self.allocation = AllocationCore(self, rules.mint, user_of)
        self.subscriptions = SubscriptionCore(self, user_of)
        self.rights = NodeRights(
            addresses.domain,
            self.allocation,
            self.form_of,
            rules.rights,
            identity_of,
            self._brought,
        )
        self.routing = NodeRouting(
            addresses.domain, self.rights, self.subscriptions, parts, self.elsewhere
        )
        self.remembered = RememberedRouting(self.routing, parts)
        self._consents = ConsentCore(self.subscriptions, self.rights.owner_of)
        self._trace = trace

    def heed(self, message: Message, by: str, now: float) -> None:
        """Record the consent to observers that a message gives or ends (S3).

        Args:
            message: The message.
            by: Address of the sending runtime.
            now: Current time, in seconds.
        """
        self._consents.passed(message, by, now)

    def end_consent(self, ended: ConsentEnded) -> None:
        """End the consent to an observer, at the node of the domain that has its session."""
        if self.publish is not None and ended.runtime in self.away:
            self.publish(ended)
        else:
            self.end_consent_here(ended)

    def end_consent_here(self, ended: ConsentEnded) -> None:
        """End the consent to an observer at this node; other observers there may await consent."""
        entity, runtime, observer = ended.entity, ended.runtime, ended.observer
        if ended.is_expired and not self._consents.is_asking(entity, runtime):
            self.subscriptions.lapse(entity, runtime, observer)
        else:
            self.subscriptions.withdraw(entity, runtime, observer)

    def came(self, runtime: str, form: PeerForm) -> None:
        """Make a runtime with a new session the owner of all addresses below its own address.

        Args:
            runtime: Address of the runtime.
            form: Wire form of the session.
        """
        self._forms[runtime] = form
        if address.is_node(runtime) and len(self._brought) < REMEMBERED:
            self._brought[address.domain_of(runtime)] = None
        self.remembered.forget()
        self.allocation.yield_to(runtime)

    def came_elsewhere(self, runtime: str, form: PeerForm) -> None:
        """Make a runtime with a session at another node the owner of all addresses below its own.

        Args:
            runtime: Address of the runtime.
            form: Wire form of the session.
        """
        if self._forms.get(runtime) is not form:
            self.came(runtime, form)

    def form_of(self, runtime: str) -> PeerForm | None:
        """Return the wire form of the session of a runtime; None: it has no session."""
        return self._forms.get(runtime)

    def mirror(self, new: str, address: str, block: str | None, *, is_bound: bool) -> None:
        """Set the owner of an address, as another node has decided."""
        old = self.allocation.owner_of(address)
        self.allocation.mirror(new, address, block, is_bound=is_bound)
        if old is not None and old != new:
            paths = self.subscriptions.resources_of(old)
            ended = tuple(path for path in paths if entity_of(path) == address)
            self.subscriptions.unsubscribe(old, ended)

    # --- calls from the owners of addresses

    @override
    def row_changed(self, row: RowChanged) -> None:
        self.remembered.forget()
        self._trace_change(row)

    @override
    def taken(self, addresses: tuple[str, ...]) -> None:
        """Activate subscriptions to new objects whose owner is never asked for consent."""
        for each in addresses:
            if self.rights.is_open(each):
                self.subscriptions.open(each)

    @override
    def freed(self, addresses: tuple[str, ...]) -> None:
        """End all subscriptions to addresses that have no owner now (MN-12)."""
        for each in addresses:
            self.subscriptions.remove_address(each)

    # --- calls from the subscriptions, too

    @override
    def step(self, step: Step) -> None:
        """Trace a state transition of an allocated address or of a subscription."""
        self._trace.step(step)

    def path_changed(self, row: RowChanged) -> None:
        """Trace a change of a subscription, and send it to the other nodes of the domain."""
        self._trace_change(row)
        self._has_lost_paths |= row.op is Op.DEL

    def forget_routes(self) -> None:
        """Clear the cache of message routes."""
        self.remembered.forget()

    def _trace_change(self, row: RowChanged) -> None:
        self._trace.row(row)
        if self.publish is not None:
            self.publish(row)

    def moved_away(self, runtime: str) -> None:
        """Remove the subscriptions of a runtime whose session moved to another node.

        The runtime keeps its addresses.

        Args:
            runtime: Address of the runtime.
        """
        self._consents.gone(runtime)
        self.subscriptions.remove_runtime(runtime)

    def has_lost_paths(self) -> bool:
        """Return whether a subscription was removed since the last call."""
        lost, self._has_lost_paths = self._has_lost_paths, False
        return lost

    def release(self, runtime: str, why: str) -> None:
        """Remove the addresses and the subscriptions of a runtime (I-A7, I-M4).

        Args:
            runtime: Address of the runtime.
            why: The reason.
        """
        self._forms.pop(runtime, None)
        self._consents.gone(runtime)
        self.subscriptions.remove_runtime(runtime)
        for each in self.allocation.owned_by(runtime):
            self.subscriptions.remove_address(each)
        self.remembered.forget()
        self.allocation.release(runtime, why)
