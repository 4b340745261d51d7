"""The tables of a node that routing looks at, and how they change together."""

from collections.abc import Callable
from typing import final

from actors.node.witness import Witness
from fsm.cores import allocation, subscriptions
from fsm.cores.allocation import AllocationCore
from fsm.cores.effects import RowChanged
from fsm.cores.node_routing import NodeRouting
from fsm.cores.refused import Refused
from fsm.cores.subscriptions import SubscriptionCore
from fsm.engine import Step
from specs import address

__all__ = ["NodeAddresses", "Tables"]


@final
class NodeAddresses:
    """The addresses of one node's parts (ADR-04)."""

    def __init__(self, domain: str) -> None:
        self.domain = domain
        self.node = address.message_node(domain)
        self.session = address.session_manager(domain)
        self.allocation = address.address_allocation(domain)
        self.paths = address.subscription_manager(domain)
        self.registry = address.domain_registry(domain)
        self.identities = address.identity_manager(domain)
        self.quality = address.quality_broker(domain)
        self.policies = address.policy_manager(domain)
        self.parts = frozenset({self.session, self.allocation, self.paths, self.registry})


@final
class Tables:
    """Who owns what, and who subscribes to what.

    Owned by the bus's task; only `own` and `follow` change anything, and every change
    is traced there.
    """

    def __init__(
        self, addresses: NodeAddresses, has_session: Callable[[str], bool], witness: Witness
    ) -> None:
        self.addresses = addresses
        self.allocation = AllocationCore()
        self.subscriptions = SubscriptionCore()
        self.routing = NodeRouting(
            addresses.domain, self.allocation, self.subscriptions, addresses.parts, has_session
        )
        self._witness = witness

    def own(self, happened: allocation.Input) -> allocation.Allocated | Refused | None:
        """Change who owns what; what is freed is no longer subscribed to (MN-12)."""
        outcome: allocation.Allocated | Refused | None = None
        for effect in self.allocation.feed(happened, 0.0):
            match effect:
                case Step():
                    self._witness.step(effect)
                case RowChanged():
                    self._witness.row(effect)
                case allocation.Freed(addresses):
                    for one in addresses:
                        self.follow(subscriptions.AddressGone(one))
                case allocation.Allocated() | Refused():
                    outcome = effect
        return outcome

    def follow(self, happened: subscriptions.Input) -> Refused | None:
        """Change who subscribes to what."""
        refusal = None
        for effect in self.subscriptions.feed(happened, 0.0):
            match effect:
                case Step():
                    self._witness.step(effect)
                case RowChanged():
                    self._witness.row(effect)
                case Refused():
                    refusal = effect
        return refusal

    def release(self, runtime: str, why: str) -> None:
        """Let nothing of a runtime stay (I-A7, I-M4)."""
        self.follow(subscriptions.RuntimeGone(runtime))
        for one in self.allocation.owned_by(runtime):
            self.follow(subscriptions.AddressGone(one))
        self.own(allocation.Release(runtime, why))
