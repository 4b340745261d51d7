"""List of the classes and functions that judge the claims on messages, tables and links.

The claims on machines are judged by `fsm.judge.replay` (`BY_MACHINES`). `NOT_JUDGED` names, for
each claim that the records of a trace cannot decide, the missing records.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fsm.judge.claims import (  # noqa: F401 - each declares its claims
    admission,
    buses,
    conservation,
    fold,
    groups,
    links,
    node,
    objects,
    resolution,
    runtime,
    sessions,
    transactions,
)
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
"""Claims on the transitions of one machine: `fsm.judge.replay` compares these with its table."""

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
"""Claims that cannot be judged by a trace, each with the reason."""

PROCESS_CLAIMS: Final = tuple(fold.DECLARED)
"""All claims that are judged on the records of one process."""

RUN_CLAIMS: Final[Mapping[str, fold.RunClaim]] = MappingProxyType(
    {across.name: across for claim in PROCESS_CLAIMS for across in claim.across}
)
"""All claims that are judged on the evidence of several processes, by name."""

CLAIMS_JUDGED: Final[Mapping[str, tuple[fold.Claim, ...]]] = MappingProxyType(
    {
        claim: judges
        for claim in CLAIMS
        if (judges := tuple(judge for judge in PROCESS_CLAIMS if claim in judge.claims))
    }
)
"""Judges of each claim that traces can decide, by the claim's id, in the catalogue's order."""
