"""What a P2P stub holds of one end of a link, and what its tasks tell it."""

from collections.abc import Callable
from typing import TypeAlias, final

import attrs

from actors.kit.supervision.delivery import Delivery
from actors.runtime.p2p.handshake import ProvenLink
from actors.runtime.p2p.link import P2PLink
from fsm.p2p.link_io import LinkLost, Opening, SideInput
from fsm.p2p.negotiation import FIRST
from fsm.p2p.proof import LinkKeys
from fsm.sync.copy import ObserverCore
from specs.message import Message

__all__ = ["Happened", "LinkEnd", "LinkEnded", "LinkProven", "P2PMessage", "Understand"]

Understand: TypeAlias = Callable[[Message], SideInput | None]
"""Makes of an answer what it means for the link; None: nothing."""


@final
@attrs.frozen(slots=True)
class Happened:
    """A task of the stub tells what happened to one end.

    Attributes:
        end: Address of the end: PQ or PC.
    """

    end: str
    what: SideInput


@final
@attrs.frozen(slots=True)
class LinkProven:
    """A link is open and proven; the stub decides whether it is used.

    Attributes:
        negotiation: The one that its secret is of.
    """

    end: str
    link: ProvenLink
    opening: Opening
    negotiation: int


@final
@attrs.frozen(slots=True)
class LinkEnded:
    """A link that was in use is gone."""

    end: str
    what: LinkLost


P2PMessage: TypeAlias = Delivery | Happened | LinkProven | LinkEnded
"""What a P2P stub is told."""


@final
@attrs.define(eq=False)
class LinkEnd:
    """One end of one link, as its stub holds it.

    Attributes:
        name: PQ or PC.
        remote: The other runtime.
        peer: The stub to be invited: PH or PQ.
        negotiation: Which offer and answer its secrets are of.
        keys: Secrets, shared with the tasks that dial and accept.
        proven: Links that are proven and not yet used or closed, by name.
        link: The link in use.
        own_object: The Connection object this end reports.
        peer_object: The one it observes.
        copy: What is known of that; None: it observes nothing yet.
    """

    name: str
    remote: str
    peer: str
    negotiation: int = FIRST
    keys: LinkKeys = attrs.field(factory=LinkKeys)
    proven: dict[str, ProvenLink] = attrs.field(factory=dict)
    link: P2PLink | None = None
    own_object: str | None = None
    peer_object: str | None = None
    copy: ObserverCore | None = None

    def begin_anew(self, negotiation: int) -> None:
        """Forget all secrets: those of another offer and answer count from now on."""
        self.negotiation = negotiation
        self.keys = LinkKeys()
