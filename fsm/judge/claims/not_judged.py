"""Which claims are kept by other judges, and which by none, and why."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["BY_MACHINES", "NOT_JUDGED"]

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
        "I-R10": "which reading belongs to which search is not told",
        "I-S10": "that somebody had a stub disconnect is said in a body",
        "I-C3": "it compares the tables of two runtimes at a time when nothing is under way",
        "I-M6": "by which way a change came is not told where it is delivered",
        "I-M9": "the topology of a runtime is not told",
        "I-M10": "the topology of a runtime is not told",
        "I-K1": "the attributes of a request are not told",
        "I-K2": "the results of single rules are not told",
        "I-K3": "that an obligation was executed is not told",
        "I-X1": _RUNS,
        "I-X3": _RUNS,
    }
)
"""Claims nobody judges on a trace, and what is lacking."""
