"""How often a process that serves looks for garbage that refers to itself."""

import gc
from typing import Final

__all__ = ["collect_seldom"]

_YOUNG: Final = 2000
"""New objects after which the newest are looked at: a few milliseconds (Python: 700)."""

_MIDDLE: Final = 10
"""Of these looks, after which what they left is looked at too (Python's own)."""

_OLD: Final = 200
"""Of these, after which everything is (Python: 10).

A look at everything stops the process: 0.25 s with a thousand sessions, more than a
second with ten thousand. While many come, each quarter more of them would cost one.
What comes and goes with traffic and connections leaves no such garbage, and is freed
at once; so it is enough to look after four million objects that stayed.
"""


def collect_seldom() -> None:
    """Have all that there is now looked at never again, and the rest less often."""
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
