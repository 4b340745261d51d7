"""Libraries of the system, loaded while they can still be read (T16).

A sandbox may read Python's own files, and so may import compiled modules; what these are
linked with is elsewhere. Loaded once, it is found again by its name.
"""

import ctypes
from contextlib import suppress
from typing import Final

__all__ = ["preload"]

_LIBRARIES: Final = ("libgcc_s.so.1", "librt.so.1", "libpthread.so.0", "libdl.so.2", "libm.so.6")
"""With these compiled modules are linked that a hyperty may import, such as what checks schemas."""


def preload() -> None:
    """Load them; one that this system does not have, no module here needs."""
    for name in _LIBRARIES:
        with suppress(OSError):
            ctypes.CDLL(name)
