"""A claim: one property of the protocol that a trace keeps or breaks."""

from enum import StrEnum

import attrs


class Reach(StrEnum):
    """The records that are needed to judge a claim."""

    SAFETY = "S"
    LIVENESS = "L"
    BOTH = "S/L"
    ACROSS = "X"
    ACROSS_LIVENESS = "X,L"
    RUNS = "hyper"


@attrs.frozen(slots=True)
class Claim:
    """One claim of the catalogue.

    Attributes:
        id: Its label on the protocol's page of invariants.
        name: Two or three words.
        reach: Safety is judged on any prefix, liveness needs the end or a clock,
            across needs the merged traces of all nodes, runs compares two runs.
        text: What holds, in words.
    """

    id: str
    name: str
    reach: Reach
    text: str
