"""Routing at a message node: permission and next hop of a message (MN-03, MN-16, MN-27).

The functions read the tables of allocation and subscription and change nothing. The host
calls them in this order: `admit`, policy, `route`.

Most messages have the sender of an earlier one, and the receiver of another. The decisions of
`NodeRouting` about them depend on either address, on the session and the tables alone, unless a
body claims more: so `RememberedRouting` asks again only when a table has changed.
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
    """The decision that a message may continue.

    Attributes:
        bind: Addresses to bind to the session first: addresses of other domains (MN-13), or
            addresses that upstream's peers use without allocation (C-43).
    """

    bind: tuple[str, ...] = ()


@attrs.frozen(slots=True)
class Refusal:
    """The decision that a message must not continue, since it breaks a rule of the node objects.

    Attributes:
        instead: Code of the answer to a request, if it differs from the rule's code.
        is_offence: Whether the sender is a node of another domain that must have known that it has
            no right to send the message; no other sender commits an offence.
        rule: Rule of the policies that denied the message; empty: no policy did.
    """

    check: Check
    why: str
    instead: Code | None = None
    is_offence: bool = False
    rule: str = ""

    @property
    def ground(self) -> Ground:
        """The kind of the rule that the message breaks."""
        return _GROUNDS[self.check]

    @property
    def code(self) -> Code | None:
        """Code of the answer to a request; None: the message is dropped."""
        return self.instead or _CHECKS[self.check].refusal

    @property
    def reason(self) -> DropReason:
        """The reason under which a message is counted that is dropped without an answer."""
        return _CHECKS[self.check].drop


Admission: TypeAlias = Admitted | Refusal


@attrs.frozen(slots=True)
class ToRuntimes:
    """The decision that a message goes to the sessions of runtimes, one copy each.

    Attributes:
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
        is_known: Whether the receiver's runtime is known, so that no other runtime may return for
            it.
    """

    why: str
    is_known: bool = False


Route: TypeAlias = str | ToRuntimes | Nobody
"""The route of a message; a text is the address of a part of the node."""

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
    """The routing decisions of the node of one domain.

    Args:
        domain: The domain that the node serves.
        rights: The rights of sessions to addresses.
        subscriptions: The subscribers of addresses.
        components: Addresses of the node's own parts.
        elsewhere: Other nodes of the domain that have subscribers, by address.
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
        """Check the sender and the trace (`via`) of a message.

        Args:
            message: The message as it arrived.
            by: Address of the runtime whose session brought it.
        """
        if not self._rights.may_speak(by):
            return Refusal(Check.SESSION, f"no runtime of {domain_of(by)} has a session here now")
        body = message.body
        bind: tuple[str, ...] = ()
        source = body.get("source")
        # Not the sender of a subscriber's answer to a request that was fanned out (C-81).
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
        """Return why a message is refused although its sender is genuine, or None."""
        if message.body.get(DURABLE, True) is not True:
            # Only the node that delivers a message may state the message's position in a log.
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
        """Return why a sender may not write to the one address of an object's children (C-11)."""
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
        """Return why a sender may not write a child that it neither owns nor observes (I-D10)."""
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
        """Return whether a node of another domain may send to an address here.

        A message to an address of its own domain is for the subscribers here.
        """
        return domain_of(to) in {self._domain, domain_of(by)} or to in self._components

    def _foreign(self, address: str, message: Message, by: str) -> Refusal:
        """Refuse a sender's address; setting a path for another runtime is forbidden (MN-14).

        A node cannot know which addresses of its own domain reach this node by another route.
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
        """Return whether a session may send messages, and may send them from an address."""
        return self._rights.may_speak(by) and self._rights.ownership(address, by) is Ownership.OWN

    def owner_of(self, address: str) -> str | None:
        """Return the runtime that an address belongs to, if its session is known here."""
        return self._rights.owner_of(address)

    def route(self, message: Message, by: str | None) -> Route:
        """Return the route of an admitted message.

        Args:
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
        """Return the runtime that gets a message of another node whose subscribers have left.

        Args:
            by: Address of the runtime whose session brought it; None: a node made it.
        """
        owner = None if is_published(message) else self.owner_of(message.to)
        return None if owner == by else owner

    def _beyond(self, to: str, by: str | None) -> str | None:
        """Return the node of another domain that needs a message to an address there, or None."""
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
"""Fields of a body on which admission depends."""

_Target: TypeAlias = tuple[str | None, MessageType, str]


class RememberedRouting:
    """The decisions of one `NodeRouting`, by address; call `forget` when a table changes.

    It remembers the addresses from which a session of this domain may send, and the routes of
    messages to addresses that lead to one runtime.

    Args:
        routing: Makes the decisions.
        components: Addresses of the node's own parts, which may change at any time.
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
        """Return the result of `NodeRouting.admit`.

        Args:
            message: The message as it arrived.
            by: Address of the runtime whose session brought it.
        """
        body, from_, to = message.body, message.from_, message.to
        is_known = (by, from_) in self._senders and to in self._targets
        if is_known and _CLAIMS.isdisjoint(body):
            return LOOP if "via" in body and is_routing_loop(message) else _ADMITTED
        admission = self._routing.admit(message, by)
        # A node's message depends on the parts of this node, too, and a child's on its name.
        if not is_known and not is_node(by):
            if self._routing.is_own(from_, by):
                self._senders.keep((by, from_), None, (by, from_))
            if to not in self._targets and CHILDREN not in to and not is_all_children(to):
                self._targets.keep(to, None, (to,))
        return admission

    def route(self, message: Message, by: str | None) -> Route:
        """Return the result of `NodeRouting.route`.

        Args:
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
    """Return whether a message is for subscribers alone."""
    return message.is_event and not is_inbox(message.to)
