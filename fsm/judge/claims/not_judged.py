"""Which claims are kept by other judges, and which by none, and why."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["BY_MACHINES", "NOT_JUDGED"]

_BODY: Final = "what a message says in its body is in no record"
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
        "I-R8": "a snapshot or record names whom it binds in its body",
        "I-R10": "which reading belongs to which search is not told",
        "I-S10": "that somebody had a stub disconnect is said in a body",
        "I-S11": _BODY,
        "I-P9": "whether a record names a handler is said in its body",
        "I-P10": "which path a request sets is said in its body",
        "I-C2": _BODY,
        "I-C3": _BODY,
        "I-C4": _BODY,
        "I-C6": _BODY,
        "I-A4": _BODY,
        "I-A5": "which block an address belongs to is not told",
        "I-A6": "who asked for a release is told as words only",
        "I-M6": "by which way a change came is not told where it is delivered",
        "I-M9": "the topology of a runtime is not told",
        "I-M10": "the topology of a runtime is not told",
        "I-G2": _BODY,
        "I-G3": _BODY,
        "I-G4": "for how long a record is good is said in its body",
        "I-G5": "which status a notification tells is said in its body",
        "I-G6": _BODY,
        "I-K1": "the attributes of a request are not told",
        "I-K2": "the results of single rules are not told",
        "I-K3": "that an obligation was executed is not told",
        "I-X1": _RUNS,
        "I-X3": _RUNS,
    }
)
"""Claims nobody judges on a trace, and what is lacking."""
