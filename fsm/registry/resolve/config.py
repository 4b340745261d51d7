"""The configuration of the registry's route search (C-49, RES-10, PFY-03)."""

import math
from enum import Enum, unique
from typing import final

import attrs

from fsm.p2p.link_policy import NO_LINKS, LinkPolicy


@unique
class Topology(Enum):
    """The node that gets messages for another domain (C-49)."""

    TRIANGLE = "triangle"
    """That domain's."""

    TRAPEZOID = "trapezoid"
    """The own domain's, which sends it on."""


@final
@attrs.frozen(slots=True)
class ResolveConfig:
    """The configuration of the registry's own runtime.

    Attributes:
        runtime: Its address.
        domain: Its own domain.
        link_policy: Whether it wants P2P links, and to which peers.
        topology: The node that gets messages for another domain.
        stub_idle: Seconds without use after which a stub of another domain is released (PFY-03);
            infinite: none is.
        has_catalogues: Whether stubs of identity providers can be looked up (PFY-12).
    """

    runtime: str
    domain: str
    link_policy: LinkPolicy = NO_LINKS
    topology: Topology = Topology.TRIANGLE
    stub_idle: float = math.inf
    has_catalogues: bool = False
