"""List of all compositions that are explored, by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fsm.explore.composition import Composition
from fsm.explore.compositions import group_lease, group_nodes, p2p, resolve, session, sync
from fsm.explore.compositions.registration import REGISTRATION
from fsm.explore.compositions.transaction import TRANSACTION

_ALL: Final[tuple[Composition, ...]] = (
    *p2p.COMPOSITIONS,
    *session.COMPOSITIONS,
    *sync.COMPOSITIONS,
    *group_nodes.COMPOSITIONS,
    group_lease.COMPOSITION,
    TRANSACTION,
    resolve.RESOLVE,
    resolve.RELEASE,
    REGISTRATION,
)

COMPOSITIONS: Final[Mapping[str, Composition]] = MappingProxyType(
    {each.name: each for each in _ALL}
)
"""The compositions that `python -m fsm check --product` explores, with their default bounds."""
