"""The node to which messages for another domain are sent."""

from enum import Enum


class Topology(Enum):
    """The node to which messages for another domain are sent (C-49)."""

    TRIANGLE = "triangle"
    """The node of the other domain."""

    TRAPEZOID = "trapezoid"
    """The node of the runtime's own domain, which forwards them."""
