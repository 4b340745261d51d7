"""Limits of the store that the nodes of one domain share, each with unit and source."""

from typing import Final

ENGINE_TIMEOUT: Final = 3.0
"""Seconds that the engine has for an answer (ours: as often as a lease of 10 s is renewed)."""

ROW_KEY: Final = 1024
"""Bytes of a key (ours: escaped three times as many, below the 4,096 bytes of a NATS line)."""

ROW_VALUE: Final = 524_288
"""Bytes of the value of a row (ours: half of what NATS takes as it is installed)."""

LEASE_SHORTEST: Final = 1.0
"""Seconds that a row with an end lasts at least (NATS: ends of messages are whole seconds)."""

PUBLISHED_BYTES: Final = 786_432
"""Bytes of one payload from node to node (ours: three frames; NATS takes 1 MiB)."""

WATCH_BATCH: Final = 256
"""Rows in one batch of a watch (ours)."""

INBOX_MESSAGES: Final = 8192
"""Payloads that wait in the inbox of a node for the node to take them (ours)."""

INBOX_BYTES: Final = 16_777_216
"""Bytes of these (ours: 64 frames)."""
