"""What a runtime's registry is told of its runtime."""

from enum import Enum, unique
from typing import final

import attrs

from fsm.p2p.link_policy import NO_LINKS, LinkWishes

__all__ = ["ResolveConfig", "Topology"]


@unique
class Topology(Enum):
    """Whose node a message for another domain goes to (C-49)."""

    TRIANGLE = "triangle"
    """That domain's."""

    TRAPEZOID = "trapezoid"
    """The own domain's, which sends it on."""


@final
@attrs.frozen(slots=True)
class ResolveConfig:
    """What a runtime's registry is told of its runtime.

    Attributes:
        runtime: Its address.
        domain: Its own domain.
        wishes: Whether it wants P2P links, and to whom.
    """

    runtime: str
    domain: str
    wishes: LinkWishes = NO_LINKS
    topology: Topology = Topology.TRIANGLE
