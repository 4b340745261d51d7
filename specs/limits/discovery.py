"""Limits of searches in registries and of questions to the user (source `ours`: this project)."""

from typing import Final

WATCHED_ENTRIES: Final = 1024
"""Search results that one repeated search tracks: four pages (ours)."""

WATCH_PERIOD: Final = 5.0
"""Seconds after which a repeated search asks the registry again, to find new records (ours; M-30
reports the status of known records at once)."""

VERIFIED_AT_ONCE: Final = 16
"""Known records that a repeated search reads by address because one search lacks them (ours)."""

FOUND_AT_ONCE: Final = 1024
"""Maximum results of a search that returns a list; iteration over results has no limit (ours)."""

EMPTY_PAGES: Final = 8
"""Consecutive pages without results that a search reads (ours): a hostile registry could name a
next page for ever."""

PART_REQUESTS: Final = 64
"""Reads that one component of a runtime handles at a time; more wait in its mailbox (ours)."""

SUBSCRIPTIONS_SHOWN: Final = 128
"""Addresses of each list in an answer of `R/subscriptions` (ours: all fit into a message)."""

MESSAGE_SCHEMA_BYTES: Final = 8_192
"""Bytes of JSON of the message schema in a record (ours: half a record)."""

GUI_TIMEOUT: Final = 120.0
"""Seconds that a user has for a login page or a choice (ours): less than a runtime waits for its
session, which is `MAX_ATTEMPTS` times `REPLY_TIMEOUT`."""

GUI_PROGRESS: Final = 2.0
"""Seconds between two signs that the user is still asked: below the time for a response (ours)."""

GUI_WAITING: Final = 8
"""Questions to the user of a runtime that wait for their turn (ours)."""

GUI_URL: Final = 2048
"""Characters of the address of a login page (ours): what browsers and proxies surely take."""
