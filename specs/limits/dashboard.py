"""Limits of the dashboard of a node, which streams its state to web pages (`ours`: our choice)."""

from typing import Final

VIEWERS: Final = 8
"""Web pages that show the dashboard at once; half the HTTP connections of a host stay free (ours).
"""

FRAME_INTERVAL: Final = 0.5
"""Seconds from one update of a page to the next; changes in between are sent together (ours)."""

FRAMES_KEPT: Final = 8
"""Updates that may wait for one page; a slower page is disconnected, and may reconnect (ours)."""

FRAME_EVENTS: Final = 50
"""Maximum events in one update of a page; older ones are omitted (ours)."""

FLEET_ROWS: Final = 5_000
"""Maximum runtimes that a page lists; further ones are only counted (ours)."""

STORY_EVENTS: Final = 16_384
"""Events of connections that a node remembers; each takes about 400 bytes (ours)."""

STORY_PAGE: Final = 1_000
"""Maximum events of one connection in one answer to a page (ours)."""

STORIES: Final = 4
"""Connections whose messages are recorded for pages at once (ours)."""

STORY_MESSAGES: Final = 2_048
"""Message hops that are recorded for one connection (ours)."""

STORY_LEASE: Final = 10.0
"""Seconds for which a connection's messages are recorded after a page has read them (ours)."""

TABLE_ROWS: Final = 200
"""Maximum rows of a table in one answer to a page; a search finds the others (ours)."""

SLOW_ROWS: Final = 10
"""Slowest runtimes, by waiting messages, that an update of a page names (ours)."""

TEXT_CHARS: Final = 512
"""Maximum characters of a text from a peer in an event (ours)."""

COLLEAGUE_PATIENCE: Final = 2.0
"""Seconds for which a request of a page waits for the answers of other nodes (ours)."""

COLLEAGUE_ROWS: Final = 25
"""Maximum refusals, and maximum drops, in the answer of one node to another (ours: even with the
longest texts they take less than `PUBLISHED_BYTES`)."""
