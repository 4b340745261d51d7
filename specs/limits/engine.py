"""Limits of the engine, the store that the nodes of one domain share, with unit and source.

An engine has rows (keys with values) and logs (queues of entries). `ours`: chosen by this project.
"""

from typing import Final

ENGINE_TIMEOUT: Final = 3.0
"""Seconds that the engine has for an answer (ours: the interval of renewals of a 10 s lease)."""

ROW_KEY: Final = 1024
"""Maximum bytes of the key of a row (ours: escaped three times as many, below a NATS line)."""

ROW_VALUE: Final = 524_288
"""Maximum bytes of the value of a row (ours: half the default limit of NATS)."""

LEASE_SHORTEST: Final = 1.0
"""Shortest time in seconds after which a row may expire (NATS: only whole seconds)."""

PUBLISHED_BYTES: Final = 786_432
"""Maximum bytes of one payload from node to node (ours: three frames; NATS accepts 1 MiB)."""

WATCH_BATCH: Final = 256
"""Maximum rows in one batch that reports changes of rows (ours)."""

INBOX_MESSAGES: Final = 8192
"""Payloads that wait in the inbox of a node for the node to take them (ours)."""

INBOX_BYTES: Final = 16_777_216
"""Bytes of the payloads that wait in the inbox of a node (ours: 64 frames)."""

LOG_UNITS: Final = 1000
"""Units of space in a log; each entry takes one or more (RELIABILITY 4.1)."""

LOG_UNIT: Final = 1049
"""Bytes of an entry that one unit of a log holds (RELIABILITY 4.1: a log has 1 MiB)."""

LOG_ENTRY: Final = 262_144
"""Maximum bytes of one entry of a log (ours: a frame)."""

LOG_LIFE: Final = 259_200.0
"""Seconds for which an entry of a log is kept (ours: three days, so that the expiry of a message
after one day is still counted if its receiver returns by then)."""

# --- NATS -----------------------------------------------------------------------------------------

NATS_PORT: Final = 4222
"""Port of a NATS server whose URL names no port (NATS)."""

NATS_LINE: Final = 65_536
"""Maximum bytes of one line from a server (ours: its greeting names all servers of its cluster)."""

NATS_MESSAGE: Final = 1_114_112
"""Maximum bytes of a received message with headers (NATS: 1 MiB by default; ours: 64 KiB more)."""

NATS_PAYLOAD: Final = PUBLISHED_BYTES + 4096
"""Size in bytes, headers included, of messages that a server must accept (ours)."""

NATS_PING: Final = 1.0
"""Seconds between two pings to the server (ours: three within ENGINE_TIMEOUT, after which the
connection is closed)."""

NATS_RETRY: Final = 0.1
"""Seconds before the first further attempt to connect (ours)."""

NATS_RETRY_MOST: Final = 2.0
"""Longest pause in seconds between attempts to connect (ours: below ENGINE_TIMEOUT)."""

NATS_UNSENT: Final = 4_194_304
"""Bytes that may wait to be written before further calls have to wait (ours: 16 frames)."""

NATS_PIPELINE: Final = 1024
"""Requests of one call that have no answer yet (ours)."""

NATS_PIPELINE_BYTES: Final = 4_194_304
"""Bytes of the requests of one call that have no answer yet, unless it is one request (ours)."""

NATS_CLAIMS: Final = 3
"""Attempts to create a row after its deletion, while other nodes try to create the same row
(ours)."""

NATS_PATIENCE: Final = 1.0
"""Seconds that JetStream has for an answer about streams and consumers, before it is asked again
(ours: while a cluster has no leader, it does not answer)."""

NATS_MARK_LIFE: Final = 3600.0
"""Seconds for which NATS keeps the marker of a deleted row (ours: a node that reconnects within
half of this time need not read all rows again)."""

NATS_PULL_BYTES: Final = 4_194_304
"""Bytes of changed rows that a node requests from NATS at a time (ours)."""

NATS_PULL_LIFE: Final = 30.0
"""Seconds after which a node repeats its request for changed rows (ours)."""

NATS_HEARTBEAT: Final = 5.0
"""Seconds without changes after which the server sends a heartbeat (ours)."""

NATS_REPLICAS: Final = 3
"""Number of servers of a cluster that store each row (NATS: one may be lost)."""

NATS_START: Final = 30.0
"""Seconds within which a local NATS server must have started (ours)."""

NATS_VERSION: Final = 10.0
"""Seconds within which the program `nats-server` must print its version (ours)."""

NATS_LOOK: Final = 0.02
"""Seconds between two checks whether a local NATS server has started (ours)."""

NATS_LOG_BYTES: Final = 1_048_576
"""Bytes of the log file of a local NATS server, before the next file is begun (ours)."""

NATS_LOGS: Final = 2
"""Number of older log files of a local NATS server that are kept (ours)."""
