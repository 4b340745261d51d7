"""The faults of one direction of a link at one time, and the parties of a link."""

import math
from typing import Final, final

import attrs

from actors.testing.chaos.toxics import Toxic


@final
@attrs.frozen
class LinkFaults:
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


NO_FAULTS: Final = LinkFaults()
"""No faults."""


@final
@attrs.frozen(eq=False)
class LinkParties:
    """The two parties of a link; one object for both its ends.

    Attributes:
        dialler: Party that dialled; None: one of another network.
        listener: Party that listened; None: one of another network.
        since: Trio time of the dial.
    """

    dialler: str | None
    listener: str | None
    since: float
