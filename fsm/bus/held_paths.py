"""The subscriptions that a runtime holds in other domains (PFY-03).

The accepted requests of the runtime show them. A stub of a domain is not released while a
subscription is held there, because its events would stop.
"""

from collections.abc import Iterator
from typing import TypeAlias

from specs.addresses.address import RUNTIME_SCHEME, domain_of, scheme_of
from specs.message import Message, MessageType

_Path: TypeAlias = tuple[str, str]


class HeldPaths:
    """Receivers and resources of accepted subscriptions, by domain.

    Memory: one entry per subscription that the runtime holds; the owners of subscriptions bound
    them.
    """

    def __init__(self) -> None:
        self._held: dict[str, set[_Path]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._held.values()))

    def holds(self, domain: str) -> bool:
        """Return whether a subscription is held in a domain."""
        return domain in self._held

    def accepted(self, request: Message) -> None:
        """Note that a request of this runtime was answered with success.

        Args:
            request: The request; only one that subscribes counts, and not at another runtime:
                runtimes follow each other over their direct link (P2P-25).
        """
        if request.type is MessageType.SUBSCRIBE and scheme_of(request.to) != RUNTIME_SCHEME:
            self._held.setdefault(domain_of(request.to), set()).update(_paths(request))

    def sent(self, message: Message) -> None:
        """Note that a message of this runtime goes out: what it unsubscribes is held no longer.

        The answer does not matter: no events are expected any more.
        """
        if message.type is not MessageType.UNSUBSCRIBE or message.is_response:
            return
        domain = domain_of(message.to)
        held = self._held.get(domain)
        if held is not None:
            held.difference_update(_paths(message))
            if not held:
                del self._held[domain]


def _paths(request: Message) -> Iterator[_Path]:
    """Return the resources of a request; without a list of resources, its receiver."""
    named = request.body.get("resources")
    names = named if isinstance(named, list) else [request.body.get("resource")]
    for name in names:
        yield request.to, name if isinstance(name, str) else request.to
