"""The faults of one direction of a link at one time, and the parties of a link."""

import math
from typing import Final, final

import attrs

from transports.chaos.toxics import Toxic

__all__ = ["CALM", "Course", "Weather"]


@final
@attrs.frozen
class Weather:
    """The faults of one direction of a link at one time.

    Attributes:
        toxics: Faults that change frames, in the order in which they began.
        reset_at: Trio time at which the link is reset; infinity: never.
        linger: Seconds by which the end of a link is delayed.
    """

    toxics: tuple[Toxic, ...] = ()
    is_held: bool = False
    reset_at: float = math.inf
    linger: float = 0.0


CALM: Final = Weather()
"""No faults."""


@final
@attrs.frozen(eq=False)
class Course:
    """The two parties of a link; one object for both its ends.

    Attributes:
        dialler: Party that dialled; None: one of another network.
        listener: Party that listened; None: one of another network.
        since: Trio time of the dial.
    """

    dialler: str | None
    listener: str | None
    since: float
