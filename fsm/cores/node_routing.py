"""Where a message goes that a message node was given, and whether it may (MN-03, MN-16, MN-27).

Pure questions to the tables of allocation and subscription; nothing is changed here.
The order of the questions is the host's: `admit`, policy, `route`.
"""

from collections.abc import Callable, Collection
from enum import Enum, unique
from typing import Final, TypeAlias, final

import attrs

from fsm.cores.allocation import AllocationCore
from fsm.cores.subscriptions import SubscriptionCore, entity_of
from specs.address import (
    RUNTIME_SCHEME,
    domain_of,
    is_backend,
    is_below,
    last_segment,
    runtime_of,
    scheme_of,
)
from specs.limits import HOP_LIMIT
from specs.message import Message
from specs.reply_code import Code, DropReason
from specs.routing import NODE_CHECKS, Check

__all__ = [
    "Admission",
    "Admitted",
    "Nobody",
    "NodeRouting",
    "Refusal",
    "Route",
    "ToComponent",
    "ToRuntimes",
]

_OBSERVED: Final = frozenset({"changes", "registration", "status", "observers"})
"""Parts of somebody else's address that others may subscribe to (ADR-05)."""

_ECHOED: Final = "/children/"
"""Children are fanned out to their author too, who ignores them (MN-16, C-85)."""


@final
@unique
class Ownership(Enum):
    """Whether a session may use an address as its own."""

    OWN = "own"
    BINDABLE = "of another domain, and nobody's yet"
    FOREIGN = "somebody else's"


@final
@attrs.frozen(slots=True)
class Admitted:
    """The message may go on.

    Attributes:
        bind: Addresses of other domains to be bound to the session first (MN-13).
    """

    bind: tuple[str, ...] = ()


@final
@attrs.frozen(slots=True)
class Refusal:
    """The message must not go on: a check of the node objects."""

    check: Check
    why: str

    @property
    def code(self) -> Code | None:
        """What a request is answered with; None: it is dropped."""
        return _CHECKS[self.check].refusal

    @property
    def reason(self) -> DropReason:
        """What is counted for everything that is not answered."""
        return _CHECKS[self.check].drop


Admission: TypeAlias = Admitted | Refusal


@final
@attrs.frozen(slots=True)
class ToComponent:
    """To a part of the node."""

    address: str


@final
@attrs.frozen(slots=True)
class ToRuntimes:
    """To the sessions of these runtimes, one copy each.

    Attributes:
        is_published: Whether subscriptions said so, not ownership.
    """

    runtimes: tuple[str, ...]
    is_published: bool = False


@final
@attrs.frozen(slots=True)
class Nobody:
    """Nobody is there for it."""

    why: str


Route: TypeAlias = ToComponent | ToRuntimes | Nobody

_ADMITTED: Final = Admitted()
_CHECKS: Final = {row.check: row for row in NODE_CHECKS}


@final
class NodeRouting:
    """The routing decisions of the node of one domain.

    Args:
        domain: The domain the node serves.
        components: Addresses of the node's own parts.
        has_session: Whether a runtime has a session, attached or not.
    """

    def __init__(
        self,
        domain: str,
        allocation: AllocationCore,
        subscriptions: SubscriptionCore,
        components: Collection[str],
        has_session: Callable[[str], bool],
    ) -> None:
        self._domain = domain
        self._allocation = allocation
        self._subscriptions = subscriptions
        self._components = components
        self._has_session = has_session

    def admit(self, message: Message, by: str) -> Admission:
        """Check source and way of a message that came over the session of `by`."""
        body = message.body
        bind: tuple[str, ...] = ()
        source = body.get("source")
        claimed = [source] if isinstance(source, str) else []
        if not self._answers_for_path(message, by):
            claimed.append(message.from_)
        for address in claimed:
            match self.ownership(address, by):
                case Ownership.FOREIGN:
                    why = f"the session does not own {address}"
                    return Refusal(Check.SOURCE, why)
                case Ownership.BINDABLE:
                    bind = (*bind, entity_of(address))
                case Ownership.OWN:
                    pass
        if "via" in body and _is_circle(message.via):
            return Refusal(Check.LOOP, "the message has gone in a circle")
        return Admitted(bind) if bind else _ADMITTED

    def _answers_for_path(self, message: Message, by: str) -> bool:
        """Say whether this is a subscriber's answer to what was fanned out (C-81)."""
        return message.is_response and by in self._subscriptions.subscribers(message.from_)

    def ownership(self, address: str, by: str) -> Ownership:
        """Say whether the session of `by` may use an address as its own (I-A3, I-B10)."""
        owner = self._allocation.owner_of(address)
        if owner == by or is_below(address, by):
            return Ownership.OWN
        if owner is not None or scheme_of(address) == RUNTIME_SCHEME or is_backend(address):
            return Ownership.FOREIGN
        return Ownership.FOREIGN if domain_of(address) == self._domain else Ownership.BINDABLE

    def owner_of(self, address: str) -> str | None:
        """Return the runtime an address belongs to, if its session is known here."""
        owner = self._allocation.owner_of(address)
        if owner is None and scheme_of(address) == RUNTIME_SCHEME:
            runtime = runtime_of(address)
            return runtime if self._has_session(runtime) else None
        return owner

    def may_subscribe(self, resource: str, by: str) -> bool:
        """Say whether the session of `by` may be delivered what goes to an address.

        Its own addresses always; of others only the parts that are made to be
        observed, never what is addressed to themselves.
        """
        if resource == by or self.owner_of(resource) == by or is_below(resource, by):
            return True
        if _ECHOED in resource or last_segment(resource) in _OBSERVED:
            return not is_backend(resource)
        return False

    def may_claim(self, resource: str) -> bool:
        """Say whether an address is one of this domain that nobody has (C-44)."""
        return (
            resource == entity_of(resource)
            and resource.count("/") > len("//")
            and domain_of(resource) == self._domain
            and scheme_of(resource) != RUNTIME_SCHEME
            and not is_backend(resource)
            and self._allocation.owner_of(resource) is None
        )

    def route(self, message: Message, by: str | None) -> Route:
        """Say where an admitted message goes; `by` None: the node itself made it."""
        to = message.to
        if to in self._components:
            return ToComponent(to)
        subscribers = self._subscriptions.subscribers(to)
        if subscribers:
            return self._fan_out(to, subscribers, by)
        owner = None if message.is_event else self.owner_of(to)
        if owner is None:
            return Nobody(self._why_nobody(to))
        if owner == by:
            return Nobody("the only way leads back to where it came from")
        return ToRuntimes((owner,))

    def _fan_out(self, to: str, subscribers: Collection[str], by: str | None) -> Route:
        if _ECHOED in to:
            return ToRuntimes(tuple(subscribers), is_published=True)
        others = tuple(one for one in subscribers if one != by)
        if not others:
            return Nobody("nobody else subscribes to it")
        return ToRuntimes(others, is_published=True)

    def _why_nobody(self, to: str) -> str:
        if domain_of(to) == self._domain:
            return "no session owns address"
        return f"the node of {self._domain} knows no way to {domain_of(to)}"


def _is_circle(via: tuple[str, ...]) -> bool:
    return len(via) > HOP_LIMIT or len(set(via)) < len(via)
