"""Every composition that is checked, by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fsm.product.composition import Plan
from fsm.product.compositions.group.lease import GROUP_LEASES
from fsm.product.compositions.group.plans import (
    GROUP,
    GROUP_DEATH,
    GROUP_FENCE,
    GROUP_LEAVE,
    GROUP_THREE,
)
from fsm.product.compositions.p2p import (
    P2P,
    P2P_AGAIN,
    P2P_ENDS,
    P2P_FORGED,
    P2P_LATE,
    SIMULTANEOUS_OPEN,
    SIMULTANEOUS_OPEN_LATE,
    SIMULTANEOUS_OPEN_TIMEOUT,
    TWO,
)
from fsm.product.compositions.registration import REGISTRATION
from fsm.product.compositions.release import RELEASE
from fsm.product.compositions.resolve import RESOLVE
from fsm.product.compositions.session import SESSION, SESSION_PROOF, SESSION_TABLES
from fsm.product.compositions.sync import INVITATION, SYNC, SYNC_ENDS, SYNC_LEAVE
from fsm.product.compositions.transaction import TRANSACTION

_ALL: Final[tuple[Plan, ...]] = (
    P2P,
    P2P_LATE,
    P2P_AGAIN,
    P2P_ENDS,
    P2P_FORGED,
    TWO,
    SIMULTANEOUS_OPEN,
    SIMULTANEOUS_OPEN_LATE,
    SIMULTANEOUS_OPEN_TIMEOUT,
    SESSION,
    SESSION_PROOF,
    SESSION_TABLES,
    SYNC,
    SYNC_ENDS,
    SYNC_LEAVE,
    INVITATION,
    GROUP,
    GROUP_FENCE,
    GROUP_DEATH,
    GROUP_LEAVE,
    GROUP_THREE,
    GROUP_LEASES,
    TRANSACTION,
    RESOLVE,
    RELEASE,
    REGISTRATION,
)

COMPOSITIONS: Final[Mapping[str, Plan]] = MappingProxyType({plan.name: plan for plan in _ALL})
"""The compositions that `python -m fsm check --product` explores."""
