"""Every composition that is checked, by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fsm.compositions.delegation import DELEGATION_PLAN
from fsm.compositions.glare import GLARE, GLARE_LATE, GLARE_TIMEOUT
from fsm.compositions.p2p import P2P, P2P_AGAIN, P2P_ANEW, P2P_ENDS
from fsm.compositions.session import SESSION_PLAN
from fsm.compositions.sync import SYNC_PLAN
from fsm.product.composition import Plan

__all__ = ["COMPOSITIONS"]

_ALL: Final[tuple[Plan, ...]] = (
    P2P,
    P2P_AGAIN,
    P2P_ANEW,
    P2P_ENDS,
    GLARE,
    GLARE_LATE,
    GLARE_TIMEOUT,
    SESSION_PLAN,
    SYNC_PLAN,
    DELEGATION_PLAN,
)

COMPOSITIONS: Final[Mapping[str, Plan]] = MappingProxyType({plan.name: plan for plan in _ALL})
"""What `python -m fsm check --product` explores."""
