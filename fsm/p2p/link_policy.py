"""Preferences for direct links: use, peers, and the wait of messages (RES-06, RES-09)."""

from enum import StrEnum, unique
from typing import Final, final

import attrs

from specs.addresses.address import domain_of, is_below

_ANY_BELOW: Final = "*."


@unique
class P2pUse(StrEnum):
    """Use of direct links."""

    REQUIRED = "required"
    """A message without a link is not sent: none goes by a node that could go by a link."""

    WHENEVER_POSSIBLE = "whenever-possible"

    WHEN_ASKED = "when-asked"
    """By a message that says so: `body.p2p` is `true`."""

    NEVER = "never"


@unique
class P2pWait(StrEnum):
    """Handling of messages while a link is being set up (C-20)."""

    OPPORTUNISTIC = "opportunistic"
    """They go by the node."""

    AWAIT = "await"
    """They wait for the link, at most `P2P_TIMEOUT`; then they go by the node."""


@final
@attrs.frozen(slots=True)
class PeerPolicy:
    """The use of links to some peers.

    Attributes:
        peer: A domain, `*.` and a domain for those below it, or a runtime's address.
    """

    peer: str
    use: P2pUse

    def covers(self, address: str) -> bool:
        """Return whether an address of a runtime, or of what lives in one, is meant."""
        if "://" in self.peer:
            return is_below(address, self.peer)
        domain = domain_of(address)
        if self.peer.startswith(_ANY_BELOW):
            return domain.endswith(self.peer[1:])
        return domain == self.peer


@final
@attrs.frozen(slots=True)
class LinkPolicy:
    """The preferences of one runtime.

    Attributes:
        use: For peers that no entry names.
        peers: Entries of peers; the first that covers a peer counts.
        wait: Handling of messages during set-up.
    """

    use: P2pUse = P2pUse.NEVER
    peers: tuple[PeerPolicy, ...] = ()
    wait: P2pWait = P2pWait.OPPORTUNISTIC

    def of(self, *addresses: str) -> P2pUse:
        """Return the use for a peer, named by its runtime or by what lives there."""
        covering = (
            one.use for one in self.peers if any(one.covers(address) for address in addresses)
        )
        return next(covering, self.use)

    def names(self, address: str) -> bool:
        """Return whether a peer is named as one that a link is wanted to."""
        covering = (one.use for one in self.peers if one.covers(address))
        return next(covering, P2pUse.NEVER) is not P2pUse.NEVER

    @property
    def holds_messages(self) -> bool:
        """True if a message to some peer may wait for a link, or may not be sent without one."""
        is_required = any(one.use is P2pUse.REQUIRED for one in self.peers)
        return self.wait is P2pWait.AWAIT or self.use is P2pUse.REQUIRED or is_required

    @property
    def wants_any(self) -> bool:
        """True if there may be a link to any peer."""
        return any(use is not P2pUse.NEVER for use in (self.use, *(one.use for one in self.peers)))


WHENEVER_POSSIBLE: Final = LinkPolicy(P2pUse.WHENEVER_POSSIBLE)
"""The default of a runtime."""

NO_LINKS: Final = LinkPolicy()
"""The policy of a runtime without P2P."""
