"""How much is allowed to go wrong in one run."""

from typing import final

import attrs

from specs.errors import SpecError

__all__ = ["Bounds"]


@final
@attrs.frozen(slots=True, kw_only=True)
class Bounds:
    """What one run may hold; every run within it is explored.

    Attributes:
        losses: Messages that networks lose.
        duplicates: Messages that networks deliver once more.
        channel: Messages under way in one direction of a network at a time.

    Raises:
        SpecError: A number is too small.
    """

    losses: int = 1
    duplicates: int = 1
    channel: int = 3

    def __attrs_post_init__(self) -> None:
        if self.losses < 0 or self.duplicates < 0:
            raise SpecError("losses and duplicates cannot be negative: use 0 or more")
        if self.channel < 1:
            raise SpecError("a channel without room carries nothing: use 1 or more")
