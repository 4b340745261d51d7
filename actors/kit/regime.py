"""How a supervisor deals with crashes."""

from enum import Enum, auto
from typing import final

import attrs

__all__ = ["Intensity", "Regime", "Strategy"]


class Strategy(Enum):
    """Who is started again when one child crashes (OTP's words, and `PEERS`)."""

    ONE_FOR_ONE = auto()
    """The one that crashed."""
    PEERS = auto()
    """Likewise; children know nothing of each other, so all of them stop at once."""
    REST_FOR_ONE = auto()
    """It, and all that were started after it."""
    ONE_FOR_ALL = auto()
    """Everybody."""


@final
@attrs.frozen
class Intensity:
    """How many restarts within how many seconds are borne."""

    restarts: int = 3
    seconds: float = 60.0


@final
@attrs.frozen
class Regime:
    """Who is started again when a child crashes, and how often that is borne."""

    strategy: Strategy
    intensity: Intensity
