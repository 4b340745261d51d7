"""Whether a runtime wants direct links, to whom, and whether messages wait (RES-06, RES-09)."""

from enum import StrEnum, unique
from typing import Final, final

import attrs

from specs.addresses.address import domain_of, is_below

__all__ = ["NO_LINKS", "WHENEVER_POSSIBLE", "LinkWishes", "P2pWait", "P2pWish", "PeerWish"]

_ANY_BELOW: Final = "*."


@unique
class P2pWish(StrEnum):
    """Whether direct links are wanted."""

    REQUIRED = "required"
    """What finds no link is not sent: nothing goes by a node that could go by a link."""

    WHENEVER_POSSIBLE = "whenever-possible"

    WHEN_ASKED = "when-asked"
    """By a message that says so: `body.p2p` is `true`."""

    NEVER = "never"


@unique
class P2pWait(StrEnum):
    """What becomes of messages while a link is being set up (C-20)."""

    OPPORTUNISTIC = "opportunistic"
    """They go by the node."""

    AWAIT = "await"
    """They wait for the link, at most `P2P_TIMEOUT`; then they go by the node."""


@final
@attrs.frozen(slots=True)
class PeerWish:
    """What is wanted of some peers.

    Attributes:
        peer: A domain, `*.` and a domain for those below it, or a runtime's address.
    """

    peer: str
    wish: P2pWish

    def covers(self, address: str) -> bool:
        """Say whether an address of a runtime, or of what lives in one, is meant."""
        if "://" in self.peer:
            return is_below(address, self.peer)
        domain = domain_of(address)
        if self.peer.startswith(_ANY_BELOW):
            return domain.endswith(self.peer[1:])
        return domain == self.peer


@final
@attrs.frozen(slots=True)
class LinkWishes:
    """The wishes of one runtime.

    Attributes:
        wish: Where no other is said.
        peers: Others; the first that covers a peer counts.
        wait: What becomes of messages meanwhile.
    """

    wish: P2pWish = P2pWish.NEVER
    peers: tuple[PeerWish, ...] = ()
    wait: P2pWait = P2pWait.OPPORTUNISTIC

    def of(self, *addresses: str) -> P2pWish:
        """Return the wish for a peer, named by its runtime or by what lives there."""
        covering = (
            one.wish for one in self.peers if any(one.covers(address) for address in addresses)
        )
        return next(covering, self.wish)

    def names(self, address: str) -> bool:
        """Say whether a peer is named as one that a link is wanted to."""
        covering = (one.wish for one in self.peers if one.covers(address))
        return next(covering, P2pWish.NEVER) is not P2pWish.NEVER

    @property
    def wants_any(self) -> bool:
        """Whether there may be a link to anybody."""
        return any(
            wish is not P2pWish.NEVER for wish in (self.wish, *(one.wish for one in self.peers))
        )


WHENEVER_POSSIBLE: Final = LinkWishes(P2pWish.WHENEVER_POSSIBLE)
"""What a runtime wants if nobody says otherwise."""

NO_LINKS: Final = LinkWishes()
"""What one without P2P wants."""
