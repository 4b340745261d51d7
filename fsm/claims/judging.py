"""The reference judge of messages, tables and links, beside that of machines (`fsm.replay`).

Each claim that the records of a trace can decide is one function; `fsm.claims.catalogue`
lists them, and says of all others what is lacking.
"""

from collections.abc import Iterable

from fsm.claims.catalogue import CLAIMS_JUDGED
from fsm.claims.finding import Finding
from fsm.claims.told import read_trace
from fsm.trace_line import TraceLine
from specs.claims import CLAIMS

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
