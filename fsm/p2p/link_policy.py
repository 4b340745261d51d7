"""A runtime's preferences for links: with which peers, and if messages wait (RES-06, RES-09)."""

from enum import StrEnum
from typing import Final, final

import attrs

from specs.addresses.address import domain_of, is_below

_ANY_BELOW: Final = "*."


class P2pUse(StrEnum):
    """The extent to which messages to a peer use direct links."""

    REQUIRED = "required"
    """Messages go by a link or not at all; a message without a link is refused."""

    WHENEVER_POSSIBLE = "whenever-possible"
    """Messages use a link if possible, and otherwise the node."""

    WHEN_ASKED = "when-asked"
    """Only messages that ask for a link (`body.p2p` is `true`) use one."""

    NEVER = "never"
    """Messages never use a link."""


class P2pWait(StrEnum):
    """Treatment of messages while a link is being set up (C-20)."""

    OPPORTUNISTIC = "opportunistic"
    """Messages go by the node at once."""

    AWAIT = "await"
    """Messages wait for the link for at most `P2P_TIMEOUT`, and then go by the node."""


@final
@attrs.frozen(slots=True)
class PeerPolicy:
    """A rule of a link policy: the use of links to some peers.

    Attributes:
        peer: A domain, `*.` and a domain for its subdomains, or a runtime's address.
        use: The use of links to these peers.
    """

    peer: str
    use: P2pUse

    def covers(self, address: str) -> bool:
        """Return whether the rule applies to the address of a runtime, or of a component in one."""
        if "://" in self.peer:
            return is_below(address, self.peer)
        domain = domain_of(address)
        if self.peer.startswith(_ANY_BELOW):
            return domain.endswith(self.peer[1:])
        return domain == self.peer


@final
@attrs.frozen(slots=True)
class LinkPolicy:
    """The preferences of one runtime for direct links.

    Attributes:
        use: The use of links to peers to which no rule applies.
        peers: The rules; the first rule that applies to a peer is valid.
        wait: Treatment of messages while a link is being set up.
    """

    use: P2pUse = P2pUse.NEVER
    peers: tuple[PeerPolicy, ...] = ()
    wait: P2pWait = P2pWait.OPPORTUNISTIC

    def of(self, *addresses: str) -> P2pUse:
        """Return the use of links to a peer, given by addresses of its runtime or components."""
        covering = (
            peer.use for peer in self.peers if any(peer.covers(address) for address in addresses)
        )
        return next(covering, self.use)

    def names(self, address: str) -> bool:
        """Return whether a rule, not only the default, permits links to a peer."""
        covering = (peer.use for peer in self.peers if peer.covers(address))
        return next(covering, P2pUse.NEVER) is not P2pUse.NEVER

    @property
    def holds_messages(self) -> bool:
        """True if messages to some peers wait for a link, or are refused without a link."""
        is_required = any(peer.use is P2pUse.REQUIRED for peer in self.peers)
        return self.wait is P2pWait.AWAIT or self.use is P2pUse.REQUIRED or is_required

    @property
    def wants_any(self) -> bool:
        """True if the policy permits links to at least some peers."""
        return any(
            use is not P2pUse.NEVER for use in (self.use, *(peer.use for peer in self.peers))
        )


WHENEVER_POSSIBLE: Final = LinkPolicy(P2pUse.WHENEVER_POSSIBLE)
"""The default link policy of a runtime."""

NO_LINKS: Final = LinkPolicy()
"""The policy of a runtime without P2P."""
