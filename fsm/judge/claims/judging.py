"""The reference judge of messages, tables and links, beside that of machines (`fsm.judge.replay`).

Each claim that the records of a trace can decide is one function; `fsm.judge.claims.catalogue`
lists them, and says of all others what is lacking.
"""

from collections.abc import Iterable

from fsm.judge.claims.catalogue import CLAIMS_JUDGED
from fsm.judge.claims.finding import Finding
from fsm.judge.claims.told import read_trace
from fsm.judge.trace_line import TraceLine
from specs.claims.all import CLAIMS

__all__ = ["judge"]


def judge(records: Iterable[TraceLine]) -> tuple[Finding, ...]:
    """Return what breaks a claim: by claim, in the order of the catalogue, then by record.

    Args:
        records: Of any number of processes, in any order. Claims across processes need
            the records of all that took part.
    """
    trace = read_trace(records)
    return tuple(
        finding
        for claim in CLAIMS
        if claim in CLAIMS_JUDGED
        for finding in sorted(CLAIMS_JUDGED[claim](trace))
    )
