"""What cannot be played."""

from typing import final

from specs.errors import ProtoflyError

__all__ = ["StageError"]


@final
class StageError(ProtoflyError):
    """The player cannot do what a scenario asks of the world around the actors.

    Attributes:
        what: What, why, and what to do, as half a sentence.
    """

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what
