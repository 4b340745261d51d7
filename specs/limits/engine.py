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
"""Bytes of the payloads that wait in the inbox of a node (ours: 64 frames)."""

LOG_UNITS: Final = 1000
"""Units in a log; each entry takes at least one, so this is its most entries (RELIABILITY 4.1)."""

LOG_UNIT: Final = 1049
"""Bytes of an entry in one unit (RELIABILITY 4.1: a log has 1 MiB)."""

LOG_ENTRY: Final = 262_144
"""Bytes of one entry (ours: a frame)."""

LOG_LIFE: Final = 259_200.0
"""Seconds for which an entry is kept (ours: three days, so that a message which is older than a day
is counted if its receiver comes back by then)."""

# --- NATS -----------------------------------------------------------------------------------------

NATS_PORT: Final = 4222
"""Port of a URL that names none (NATS)."""

NATS_LINE: Final = 65_536
"""Bytes of one line of a server (ours: its greeting names all servers of its cluster)."""

NATS_MESSAGE: Final = 1_114_112
"""Bytes of one message with its headers (NATS: 1 MiB as it is installed; ours: and 64 KiB)."""

NATS_PAYLOAD: Final = PUBLISHED_BYTES + 4096
"""Bytes of a message, its headers included, that a server must take (ours)."""

NATS_PING: Final = 1.0
"""Seconds from one question whether the server is alive to the next (ours: thrice in
ENGINE_TIMEOUT, after which its connection is given up)."""

NATS_RETRY: Final = 0.1
"""Seconds before the first further attempt to connect (ours)."""

NATS_RETRY_MOST: Final = 2.0
"""Seconds between attempts to connect, in the end (ours: below ENGINE_TIMEOUT)."""

NATS_UNSENT: Final = 4_194_304
"""Bytes that wait to be written before a call waits, too (ours: 16 frames)."""

NATS_PIPELINE: Final = 1024
"""Requests of one call that have no answer yet (ours)."""

NATS_PIPELINE_BYTES: Final = 4_194_304
"""Bytes of the requests of one call that have no answer yet, unless it is one request (ours)."""

NATS_CLAIMS: Final = 3
"""Attempts to create a row over the mark of one that was deleted, when others do the same
(ours)."""

NATS_PATIENCE: Final = 1.0
"""Seconds that JetStream has for an answer about streams and consumers, before it is asked again
(ours: while a cluster has no leader, it does not answer)."""

NATS_MARK_LIFE: Final = 3600.0
"""Seconds for which the mark of a deleted row stays (ours: a handle that comes back within half of
it need not read all rows again)."""

NATS_PULL_BYTES: Final = 4_194_304
"""Bytes that a watch asks for at a time (ours)."""

NATS_PULL_LIFE: Final = 30.0
"""Seconds after which a watch asks again if nothing changes (ours)."""

NATS_HEARTBEAT: Final = 5.0
"""Seconds after which the server says that nothing changes (ours)."""

NATS_REPLICAS: Final = 3
"""Servers of a cluster that keep each row (NATS: one may be lost)."""

NATS_START: Final = 30.0
"""Seconds that a server of one's own has to start (ours)."""

NATS_VERSION: Final = 10.0
"""Seconds that the program of a server has to state its version (ours)."""

NATS_LOOK: Final = 0.02
"""Seconds from one look whether it has started to the next (ours)."""

NATS_LOG_BYTES: Final = 1_048_576
"""Bytes of the log of a server of one's own, before it begins another (ours)."""

NATS_LOGS: Final = 2
"""Older logs of a server of one's own that are kept (ours)."""
