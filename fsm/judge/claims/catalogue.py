"""The folds that judge the claims about messages, tables and links.

The claims about machines are judged by `fsm.judge.replay` (`BY_MACHINES`). For every claim that
the records of a trace cannot decide, `NOT_JUDGED` says what is lacking.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from fsm.judge.claims import (
    admission,
    buses,
    conservation,
    groups,
    links,
    node,
    objects,
    resolution,
    runtime,
    sessions,
    transactions,
)
from fsm.judge.claims.fold import Across, Fold
from specs.claims import CLAIMS

_RUNS: Final = "it compares two runs"

BY_MACHINES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "I-S1": "stub_connection",
        "I-S2": "stub_connection",
        "I-P1": "p2p_connection",
        "I-P2": "p2p_connection",
        "I-P3": "p2p_connection",
        "I-G1": "registration",
    }
)
"""Claims on the steps of one machine: `fsm.judge.replay` holds these against its table."""

NOT_JUDGED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "I-R10": "no record relates a reading to its search",
        "I-S10": "a command to disconnect a stub is in a body",
        "I-C3": "it compares the tables of two runtimes while no message is outstanding",
        "I-M6": "the record of a delivery has no route",
        "I-M9": "no record has the topology of a runtime",
        "I-M10": "no record has the topology of a runtime",
        "I-K1": "no record has the attributes of a request",
        "I-K2": "no record has the results of single rules",
        "I-K3": "no record has the execution of an obligation",
        "I-X1": _RUNS,
        "I-X3": _RUNS,
    }
)
"""Claims that cannot be judged on a trace, and the missing records."""

_MODULES: Final = (
    transactions,
    buses,
    conservation,
    admission,
    resolution,
    runtime,
    links,
    sessions,
    groups,
    node,
    objects,
)

FOLDS: Final[tuple[type[Fold], ...]] = tuple(
    kind
    for module in _MODULES
    for _, kind in sorted(vars(module).items())
    if isinstance(kind, type) and issubclass(kind, Fold) and kind.__module__ == module.__name__
)
"""Every fold over the records of one process."""

ACROSS: Final[Mapping[str, type[Across]]] = MappingProxyType(
    {across.__name__: across for fold in FOLDS for across in fold.across}
)
"""Every fold over the evidence of several processes, by its name."""


def _judged() -> Iterator[tuple[str, tuple[type[Fold], ...]]]:
    for claim in CLAIMS:
        folds = tuple(fold for fold in FOLDS if claim in fold.claims)
        if folds:
            yield claim, folds


CLAIMS_JUDGED: Final[Mapping[str, tuple[type[Fold], ...]]] = MappingProxyType(dict(_judged()))
"""The folds of each claim that can be judged, by the claim's id, in the catalogue's order."""
