"""The error of a policy that cannot be used: whoever wrote it must act."""

from typing import final

from specs.errors import ProtoflyError

__all__ = ["BadPolicyError"]


@final
class BadPolicyError(ProtoflyError):
    """A policy does not say what a policy must say: it is refused as a whole.

    Attributes:
        source: Which file, or by whose message.
        way: Where in it, such as `policies[0].rules[2].effect`; empty: all of it.
        reason: Which rule it breaks and what to write instead, as half a sentence.
    """

    def __init__(self, source: str, way: str, reason: str) -> None:
        super().__init__(": ".join(part for part in (source, way, reason) if part))
        self.source = source
        self.way = way
        self.reason = reason
