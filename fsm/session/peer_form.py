"""In whose form a peer of a message node speaks (DESIGN section 8)."""

from enum import Enum, unique
from typing import final

__all__ = ["PeerForm"]


@final
@unique
class PeerForm(Enum):
    """What may be expected of the peer behind a session.

    Upstream's peers use addresses that nobody allocated, and know no consent of owners.
    """

    OWN = "protofly.v1"
    UPSTREAM = "upstream"
