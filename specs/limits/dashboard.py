"""Limits of the dashboard of a node: viewers, frames and what is remembered."""

from typing import Final

VIEWERS: Final = 8
"""Pages that watch at once; half the HTTP connections of one host are left for others (ours)."""

FRAME_INTERVAL: Final = 0.5
"""Seconds from one frame to the next: changes in between are shown together (ours)."""

FRAMES_KEPT: Final = 8
"""Frames that a viewer may be behind; one that is slower is dropped, and may come back (ours)."""

FRAME_EVENTS: Final = 50
"""Events in a frame at most, the last ones (ours)."""

FLEET_ROWS: Final = 5_000
"""Runtimes in a snapshot at most; more are only counted (ours)."""

STORY_EVENTS: Final = 16_384
"""Events of all connections that are remembered; each is some 400 bytes (ours)."""

STORY_PAGE: Final = 1_000
"""Events of one connection in one answer at most (ours)."""

STORIES: Final = 4
"""Connections whose messages are watched at once (ours)."""

STORY_MESSAGES: Final = 2_048
"""Hops of messages that are remembered of one watched connection (ours)."""

STORY_LEASE: Final = 10.0
"""Seconds for which the messages of a connection are watched after its story was read (ours)."""

TABLE_ROWS: Final = 200
"""Rows of a table in one answer at most; a search finds the others (ours)."""

SLOW_ROWS: Final = 10
"""Consumers with the most waiting messages that a frame names (ours)."""

TEXT_CHARS: Final = 512
"""Characters of a text of a peer in an event (ours)."""

COLLEAGUE_PATIENCE: Final = 2.0
"""Seconds for which a page waits for what other nodes answer (ours)."""

COLLEAGUE_ROWS: Final = 25
"""Refusals, and drops, in the answer of one node to another at most (ours: whatever peers wrote,
they are below `PUBLISHED_BYTES`)."""
