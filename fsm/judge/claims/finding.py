"""What is found when a claim is broken."""

from typing import final

import attrs

__all__ = ["Finding"]


@final
@attrs.frozen(slots=True, order=True)
class Finding:
    """One claim, broken once.

    Attributes:
        claim: Which of `specs.claims.all.CLAIMS`, by its id.
        run: In which run of the process.
        nodes: Whose traces show it; the first is that of the record.
        ln: The record that breaks it, or the one whose sequel never came.
        about: Which message, address, link or object.
        expected: What would have kept the claim, as half a sentence.
    """

    claim: str
    run: str
    nodes: tuple[str, ...]
    ln: int
    about: str
    expected: str
