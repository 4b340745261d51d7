"""Routes of the bus to other domains, and the quarantine of their nodes."""

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
    """The foreign of a domain; part of the bus's task.

    A sender of another domain is known by that domain's node, the peer: over the
    session it has here, and over the stub that leads to it.

    Attributes:
        paths: Sets paths at the nodes of other domains; None: the node has no routes there.
    """

    def __init__(self, domain: str, domains: Container[str]) -> None:
        self._domain = domain
        self._domains = domains
        self._quarantine = QuarantineCore()
        self._foreign: ForeignRef | None = None
        self.paths: Onward | None = None

    def open(self, foreign: ForeignRef) -> None:
        """Take the actor that carries messages abroad."""
        self._foreign = foreign

    def is_for_stub(self, peer: str, message: Message, *, has_session: bool) -> bool:
        """Return whether a message to a node goes by its stub, not by a session it has here.

        Requests do (I-M10); an answer goes back over the session (MN-18), and so does what
        the peer subscribed by it. What is written of children takes the path of the requests
        among it, so that a change does not overtake the new child (I-B7).

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
        """Return why a peer would not take a message from this node, which speaks for its domain.

        A sender here of a third domain would else make this node an offender there
        (S14). An answer may be given for what the peer fanned out (C-81).

        Args:
            peer: Address of the peer.
            message: The message.
        """
        its = {self._domain, domain_of(peer)} if message.is_response else {self._domain}
        source = message.body.get("source")
        claimed = (message.from_, source) if isinstance(source, str) else (message.from_,)
        is_heard = all(domain_of(each) in its for each in claimed)
        return (
            None if is_heard else f"the node of {self._domain} may send messages of its domain only"
        )

    def send(self, peer: str, entry: OutboundMessage) -> bool:
        """Give a message to the stub of a peer; False: it cannot be taken now.

        Args:
            peer: Address of the peer.
            entry: The message.
        """
        domain = domain_of(peer)
        return self._foreign is not None and self._foreign.try_tell(
            lambda core, now: core.send(domain, entry, now)
        )

    def offended(self, peer: str) -> bool:
        """Count what a peer had no right to; return whether it is to be shown out (S14)."""
        is_over = self._quarantine.offended(peer, trio.current_time())
        if is_over and self._foreign is not None:
            domain = domain_of(peer)
            self._foreign.try_tell(lambda core, now: core.banish(domain, now))
        return is_over

    def keeps_out(self, peer: str) -> bool:
        """Return whether a peer is in quarantine."""
        return self._quarantine.holds(peer, trio.current_time())
