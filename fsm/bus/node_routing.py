"""Routing at a message node: permission and next hop of a message (MN-03, MN-16, MN-27).

The functions read the tables of allocated addresses and of subscriptions and change nothing. For
each message the node calls `admit`, then applies its policies, then calls `route`.

`RememberedRouting` caches the decisions of `NodeRouting`, since most messages have a sender and a
receiver that occurred before. The decisions depend only on these addresses, the session, the tables
and a few body fields; messages with such fields bypass the cache.
"""

from collections.abc import Collection, Container, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

import attrs

from fsm.limits.shares import Memory
from fsm.registry.node_rights import CHILDREN, NodeRights, Ownership
from fsm.sync.subscriptions import SubscriptionCore
from specs.addresses.address import domain_of, is_inbox, is_node, subscription_manager
from specs.child import is_all_children, naming_error, parent_of
from specs.limits.bus import REMEMBERED, REMEMBERED_BYTES
from specs.message import DURABLE, EVENT_PARTS, Message, MessageType
from specs.reply_code import Code, DropReason, Ground
from specs.routing import NODE_CHECKS, Check, is_routing_loop


@attrs.frozen(slots=True)
class Admitted:
    """The decision of a node to accept a message from a session.

    Attributes:
        bind: Addresses that the node must first assign to the session: addresses of other domains
            (MN-13), or addresses that peers of the original implementation use without allocation
            (C-43).
    """

    bind: tuple[str, ...] = ()


@attrs.frozen(slots=True)
class Refusal:
    """The decision of a node to refuse a message, and the check that the message failed.

    Attributes:
        check: The check that the message failed.
        why: The reason, as half a sentence.
        instead: Code of the answer to a request, if it differs from the code of the check.
        is_offence: Whether the sender is a node of another domain that must have known that it has
            no right to send the message; no other sender commits an offence.
        rule: Name of the policy rule that denied the message; empty: no policy did.
    """

    check: Check
    why: str
    instead: Code | None = None
    is_offence: bool = False
    rule: str = ""

    @property
    def ground(self) -> Ground:
        """The category of the failed check."""
        return _GROUNDS[self.check]

    @property
    def code(self) -> Code | None:
        """Code of the answer to a request; None: the message is dropped."""
        return self.instead or _CHECKS[self.check].refusal

    @property
    def reason(self) -> DropReason:
        """The reason for statistics if the message is dropped without an answer."""
        return _CHECKS[self.check].drop


Admission: TypeAlias = Admitted | Refusal


@attrs.frozen(slots=True)
class ToRuntimes:
    """The decision to send a message to the sessions of runtimes, one copy each.

    Attributes:
        runtimes: Addresses of the runtimes.
        is_published: Whether the receivers are subscribers, not the owner of the address.
        nodes: Other nodes of the domain that have subscribers.
    """

    runtimes: tuple[str, ...]
    is_published: bool = False
    nodes: tuple[str, ...] = ()


@attrs.frozen(slots=True)
class Nobody:
    """The decision that a message has no receiver.

    Attributes:
        why: The reason, as half a sentence.
        is_known: Whether the node knows the receiver's runtime; otherwise the message can wait for
            a runtime that owns the address and reconnects.
    """

    why: str
    is_known: bool = False


Route: TypeAlias = str | ToRuntimes | Nobody
"""The destination of a message; a text is the address of a component of the node itself."""

LOOP: Final = Refusal(Check.LOOP, "it is in a routing loop")
_ADMITTED: Final = Admitted()
_GROUNDS: Final = {
    Check.NORMAL_FORM: Ground.FORM,
    Check.SESSION: Ground.SESSION,
    Check.SOURCE: Ground.OWNERSHIP,
    Check.LOOP: Ground.LOOP,
    Check.POLICY: Ground.POLICY,
}
_CHECKS: Final = {row.check: row for row in NODE_CHECKS}


class NodeRouting:
    """Decides for the node of one domain whether a message is accepted, and where it is sent.

    Args:
        domain: The domain that the node serves.
        rights: The rights of sessions to addresses.
        subscriptions: The subscribers of addresses.
        components: Addresses of the node's own components.
        elsewhere: Other nodes of the domain that have subscribers, by subscribed address.
    """

    def __init__(
        self,
        domain: str,
        rights: NodeRights,
        subscriptions: SubscriptionCore,
        components: Container[str],
        elsewhere: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> None:
        self._elsewhere = elsewhere
        self._domain = domain
        self._rights = rights
        self._subscriptions = subscriptions
        self._components = components
        self._paths = subscription_manager(domain)
        self._own = f"://{domain}/"

    def admit(self, message: Message, by: str) -> Admission:
        """Check whether a session may send a message: sender, `via`, loops, rights to children.

        Args:
            message: The message as it arrived.
            by: Address of the runtime whose session brought the message.
        """
        if not self._rights.may_speak(by):
            return Refusal(Check.SESSION, f"no runtime of {domain_of(by)} has a session here now")
        body = message.body
        bind: tuple[str, ...] = ()
        source = body.get("source")
        # A subscriber answers a fanned-out request from the subscribed address (C-81).
        is_for_path = message.is_response and by in self._subscriptions.subscribers(message.from_)
        claimed = [] if is_for_path else [message.from_]
        if isinstance(source, str):
            claimed.append(source)
        for address in claimed:
            match self._rights.ownership(address, by):
                case Ownership.FOREIGN:
                    return self._foreign(address, message, by)
                case Ownership.BINDABLE:
                    bind = (*bind, self._rights.bound_as(address))
                case Ownership.OWN:
                    pass
        if "via" in body and is_routing_loop(message):
            return LOOP
        objection = self._objection(message, by)
        if objection is not None:
            return objection
        return Admitted(bind) if bind else _ADMITTED

    def _objection(self, message: Message, by: str) -> Refusal | None:
        """Return the refusal of a message from a genuine sender by the other rules, or None."""
        if message.body.get(DURABLE, True) is not True:
            # Only the node that delivers a message may add the position in its durable queue.
            return Refusal(Check.NORMAL_FORM, "body.durable is true, or absent")
        if is_node(by) and not self._is_ours(message.to, by):
            why = f"the node of {self._domain} is no route to {domain_of(message.to)}"
            return Refusal(Check.SOURCE, why, Code.FORBIDDEN, is_offence=True)
        if message.is_response:
            return None
        if CHILDREN in message.to:
            return self._of_child(message, by)
        return self._of_all_children(message, by) if is_all_children(message.to) else None

    def _of_all_children(self, message: Message, by: str) -> Refusal | None:
        """Return why a sender may not use the common address of an object's children, or None.

        The original implementation has one address for all children of an object (C-11).
        """
        url = message.to.rpartition("/")[0]
        if not self._rights.may_write_children(by):
            return Refusal(
                Check.SOURCE, "each list of children has its own address", Code.FORBIDDEN
            )
        if message.from_ == url or self._is_writer(message, url, by):
            return None
        why = f"{message.from_} does not observe {url}"
        return Refusal(Check.SOURCE, why, Code.FORBIDDEN)

    def _of_child(self, message: Message, by: str) -> Refusal | None:
        """Return why a sender may not write a child of an object, or None (I-D10).

        Only the owner and the observers of the object may do so.
        """
        url = parent_of(message.to)
        if url is None or message.from_ == url:
            return None
        why = naming_error(message)
        if why is None and not self._is_writer(message, url, by):
            why = f"{message.from_} does not observe {url}"
        return None if why is None else Refusal(Check.SOURCE, why, Code.FORBIDDEN)

    def _is_writer(self, message: Message, url: str, by: str) -> bool:
        if self.owner_of(url) == by:
            return True
        return self._subscriptions.is_heard_by(message.to, by, message.from_)

    def _is_ours(self, to: str, by: str) -> bool:
        """Return whether this node takes messages to an address from another domain's node.

        A message to an address of that node's own domain is for subscribers at this node.
        """
        return domain_of(to) in {self._domain, domain_of(by)} or to in self._components

    def _foreign(self, address: str, message: Message, by: str) -> Refusal:
        """Return the refusal of a message whose sender address the session does not own.

        A subscription for another runtime is refused with 403 (MN-14). Another domain's node is not
        blamed for its own domain's addresses, since those may reach this node by another route.
        """
        is_for_other = message.to == self._paths and address != message.from_
        why = f"the session does not own {address}"
        return Refusal(
            Check.SOURCE,
            why,
            Code.FORBIDDEN if is_for_other else None,
            is_offence=is_node(by) and domain_of(address) != domain_of(by),
        )

    def is_own(self, address: str, by: str) -> bool:
        """Return whether a session may send messages from an address."""
        return self._rights.may_speak(by) and self._rights.ownership(address, by) is Ownership.OWN

    def owner_of(self, address: str) -> str | None:
        """Return the runtime that owns an address, if it has a session at this node, or None."""
        return self._rights.owner_of(address)

    def route(self, message: Message, by: str | None) -> Route:
        """Return the destination of an admitted message.

        Args:
            message: The message.
            by: Address of the runtime whose session brought it; None: the node itself made it.
        """
        to = message.to
        if to in self._components:
            return to
        subscribers = self._subscriptions.subscribers(to)
        nodes = self._elsewhere.get(to)
        foreign_node = self._beyond(to, by)
        if subscribers or nodes:
            route = self._fan_out(to, subscribers, by, foreign_node)
            if nodes is None:
                return route
            runtimes = route.runtimes if isinstance(route, ToRuntimes) else ()
            return ToRuntimes(runtimes, is_published=True, nodes=tuple(nodes))
        owner = foreign_node if is_published(message) else self.owner_of(to)
        if owner is None:
            return Nobody(self._why_nobody(to))
        if owner == by:
            return Nobody("the only route leads back to where it came from", is_known=True)
        return ToRuntimes((owner,))

    def find_late_receiver(self, message: Message, by: str | None) -> str | None:
        """Return the owner of a message's address if all subscribers have left, or None.

        Args:
            message: A message that another node sent for subscribers at this node.
            by: Address of the runtime whose session brought it; None: a node made it.
        """
        owner = None if is_published(message) else self.owner_of(message.to)
        return None if owner == by else owner

    def _beyond(self, to: str, by: str | None) -> str | None:
        """Return the node of another domain to which an address belongs, or None.

        None is also returned if that node has sent the message itself.
        """
        # This runs for each message: an address of this domain is recognised without parsing.
        if self._own in to or domain_of(to) == self._domain:
            return None
        owner = self.owner_of(to)
        return owner if owner is not None and owner != by and is_node(owner) else None

    def _fan_out(
        self, to: str, subscribers: Collection[str], by: str | None, foreign_node: str | None
    ) -> Route:
        is_echoed = CHILDREN in to and (by is None or not is_node(by))
        receivers = tuple(subscriber for subscriber in subscribers if is_echoed or subscriber != by)
        if foreign_node is not None and foreign_node not in receivers:
            receivers = (*receivers, foreign_node)
        if not receivers:
            return Nobody("it has no other subscriber")
        return ToRuntimes(receivers, is_published=True)

    def _why_nobody(self, to: str) -> str:
        if domain_of(to) == self._domain:
            return "no session owns address"
        return f"the node of {self._domain} knows no route to {domain_of(to)}"


_CLAIMS: Final = frozenset({"source", DURABLE})
"""Body fields that affect the decision to accept a message, so that the cache is not used."""

_Target: TypeAlias = tuple[str | None, MessageType, str]


class RememberedRouting:
    """Cache of the decisions of one `NodeRouting`; call `forget` when one of its tables changes.

    The cache contains the addresses from which sessions of this domain may send, and the
    destinations of messages that go to a single runtime.

    Args:
        routing: Makes the decisions that are not in the cache.
        components: Addresses of the node's own components, which may change at any time.
    """

    def __init__(self, routing: NodeRouting, components: Container[str]) -> None:
        self._routing: Final = routing
        self._components: Final = components
        self._senders: Final = Memory[tuple[str, str], None](REMEMBERED, REMEMBERED_BYTES)
        self._targets: Final = Memory[str, ToRuntimes | None](REMEMBERED, REMEMBERED_BYTES)
        self._routes: Final = Memory[_Target, ToRuntimes](REMEMBERED, REMEMBERED_BYTES)

    def forget(self) -> None:
        """Forget all decisions, since a table has changed."""
        self._senders.clear()
        self._targets.clear()
        self._routes.clear()

    def admit(self, message: Message, by: str) -> Admission:
        """Return the result of `NodeRouting.admit`, from the cache if possible.

        Args:
            message: The message as it arrived.
            by: Address of the runtime whose session brought the message.
        """
        body, from_, to = message.body, message.from_, message.to
        is_known = (by, from_) in self._senders and to in self._targets
        if is_known and _CLAIMS.isdisjoint(body):
            return LOOP if "via" in body and is_routing_loop(message) else _ADMITTED
        admission = self._routing.admit(message, by)
        # Not cached: decisions about messages of other nodes, and about children of objects. The
        # former depend on this node's components, the latter on the child's name.
        if not is_known and not is_node(by):
            if self._routing.is_own(from_, by):
                self._senders.keep((by, from_), None, (by, from_))
            if to not in self._targets and CHILDREN not in to and not is_all_children(to):
                self._targets.keep(to, None, (to,))
        return admission

    def route(self, message: Message, by: str | None) -> Route:
        """Return the result of `NodeRouting.route`, from the cache if possible.

        Args:
            message: The message, which has been admitted.
            by: Address of the runtime whose session brought it; None: the node itself made it.
        """
        to = message.to
        target = (by, message.type, to)
        known = self._targets.get(to) or self._routes.get(target)
        if known is not None and known.runtimes[0] != by and to not in self._components:
            return known
        route = self._routing.route(message, by)
        if isinstance(route, ToRuntimes) and len(route.runtimes) == 1 and not route.nodes:
            texts = (to, *route.runtimes)
            is_for_owner = not route.is_published and to.rpartition("/")[2] not in EVENT_PARTS
            if is_for_owner and to in self._targets:
                self._targets.keep(to, route, texts)
            else:
                self._routes.keep(target, route, (by or "", *texts))
        return route


def is_published(message: Message) -> bool:
    """Return whether a message is for subscribers only: an event that goes to no inbox."""
    return message.is_event and not is_inbox(message.to)
