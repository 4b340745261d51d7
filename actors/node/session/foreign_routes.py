"""Routes of the bus to nodes of other domains, and the quarantine of such nodes."""

from collections.abc import Container
from typing import TYPE_CHECKING

import trio

from actors.node.messages import ForeignRef
from fsm.limits.rates import QuarantineCore
from fsm.session.node_session_io import OutboundMessage
from specs.addresses.address import domain_of
from specs.child import parent_of
from specs.message import Message

if TYPE_CHECKING:
    from actors.node.foreign import Onward


class ForeignRoutes:
    """Routes of a node to other domains, and quarantine of their nodes; the bus calls it.

    A peer is the node of another domain; it represents all senders there. Messages reach it over
    its session here, or over this node's stub for its domain.

    Attributes:
        paths: Subscribes at the nodes of other domains; None: the node has no such routes.
    """

    def __init__(self, domain: str, domains: Container[str]) -> None:
        self._domain = domain
        self._domains = domains
        self._quarantine = QuarantineCore()
        self._foreign: ForeignRef | None = None
        self.paths: Onward | None = None

    def open(self, foreign: ForeignRef) -> None:
        """Set the actor that exchanges messages with other domains."""
        self._foreign = foreign

    def is_for_stub(self, peer: str, message: Message, *, has_session: bool) -> bool:
        """Return whether a message to a peer goes over the stub, not over the peer's session.

        Requests go over the stub (I-M10). Answers and subscribed messages go over the session
        (MN-18). Writes of child objects go over the stub, so that they do not overtake their
        creation (I-B7).

        Args:
            peer: Address of the peer.
            message: The message.
            has_session: Whether the peer has a session here.
        """
        if domain_of(peer) not in self._domains:
            return False
        is_of_child = not message.is_response and parent_of(message.to) is not None
        return not has_session or message.is_request or is_of_child

    def objection(self, peer: str, message: Message) -> str | None:
        """Return why a peer would refuse a message of this node; None: the peer accepts it.

        A sender of a third domain would be an offence (S14). An answer may have a sender of the
        peer's domain (C-81).

        Args:
            peer: Address of the peer.
            message: The message.
        """
        domains = {self._domain, domain_of(peer)} if message.is_response else {self._domain}
        source = message.body.get("source")
        claimed = (message.from_, source) if isinstance(source, str) else (message.from_,)
        is_ours = all(domain_of(each) in domains for each in claimed)
        return (
            None if is_ours else f"the node of {self._domain} may send messages of its domain only"
        )

    def send(self, peer: str, entry: OutboundMessage) -> bool:
        """Give a message to the stub of a peer; return False if there is no room now.

        Args:
            peer: Address of the peer.
            entry: The message.
        """
        domain = domain_of(peer)
        return self._foreign is not None and self._foreign.try_tell(
            lambda core, now: core.send(domain, entry, now)
        )

    def record_offence(self, peer: str) -> bool:
        """Count an offence of a peer; after too many, quarantine the peer, return True (S14)."""
        is_over = self._quarantine.offended(peer, trio.current_time())
        if is_over and self._foreign is not None:
            domain = domain_of(peer)
            self._foreign.try_tell(lambda core, now: core.banish(domain, now))
        return is_over

    def is_quarantined(self, peer: str) -> bool:
        """Return whether a peer is in quarantine."""
        return self._quarantine.holds(peer, trio.current_time())
