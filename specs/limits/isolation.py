"""How much a sandbox process may do; see also the `ROOM_` limits in `specs.limits.protocol`."""

from typing import Final

__all__ = [
    "GUEST_ASKS",
    "GUEST_BURST",
    "GUEST_RATE",
    "ROOM_FAULT",
    "ROOM_FLOOD",
    "ROOM_LOG_BURST",
    "ROOM_LOG_RATE",
    "ROOM_NICE",
    "ROOM_REASON",
    "ROOM_UNREAD",
    "ROOM_UNREAD_BYTES",
    "ROOM_WORDS",
]

GUEST_RATE: Final = 500.0
"""Messages a second a sandbox of a runtime may post: as many as a node takes from all that
one identity has (RELIABILITY L5)."""

GUEST_BURST: Final = 200
"""Messages such a sandbox may post at once: as many as a stub at a node (RELIABILITY L5)."""

GUEST_ASKS: Final = 1000
"""Requests of such a sandbox that wait for their answers; more are refused (ours, T16)."""

ROOM_WORDS: Final = 8
"""Words of a sandbox's pipe for each message it may post: its frames, steps and evidence (ours)."""

ROOM_FLOOD: Final = 2.0
"""Seconds a sandbox may go on saying more than it may, until it is ended (RELIABILITY S17)."""

ROOM_UNREAD: Final = 4000
"""Words that may wait for one end of a pipe to read them, until nothing more is written to it:
four times what waits for a link (RELIABILITY L2), for what cannot wait for room (ours, R11)."""

ROOM_UNREAD_BYTES: Final = 4_194_304
"""Bytes of such words, likewise (ours, R11)."""

ROOM_LOG_RATE: Final = 16.0
"""Pieces of a sandbox's stderr that are read in a second, 4096 bytes at most each: whoever says
more waits (ours, R11)."""

ROOM_LOG_BURST: Final = 32
"""Such pieces that are read at once after a rest (ours, R11)."""

ROOM_NICE: Final = 10
"""By how much a sandbox process is nicer than whoever keeps it: about a tenth of its share of a
busy processor (ours, R11)."""

ROOM_FAULT: Final = 8192
"""Bytes of a traceback of a sandbox that are logged, from its end (ours, T16)."""

ROOM_REASON: Final = 200
"""Characters of a reason given by a sandbox that are believed to be one (ours, T16)."""
