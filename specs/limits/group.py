"""Limits of a group: the nodes of one domain that share an engine.

The engine stores rows (keys with values) and logs of durable messages. `ours`: of this project.
"""

from typing import Final

GROUP_LEASE: Final = 10.0
"""Seconds after which the row that makes a node a member expires, unless the node renews the row
(RELIABILITY 4.1)."""

GROUP_RENEWAL: Final = 3.0
"""Seconds from one renewal of a node's row to the next (RELIABILITY 4.1)."""

GROUP_LEASES: Final = 8
"""Outcomes of renewals that wait to be processed (ours: one renewal is sent at a time, and late
outcomes of earlier renewals are ignored)."""

GROUP_MARGIN: Final = 1.0
"""Seconds before the expiry of its lease at which a node stops being a member (ours: so its links
are closed in time; clocks drift by less than a millisecond during a lease)."""

GROUP_TERM: Final = GROUP_LEASE - GROUP_MARGIN
"""Seconds for which a node is a member after it has sent its last successful renewal (ours)."""

GROUP_RETRY: Final = 0.5
"""Seconds after which a write to the engine with unknown outcome is repeated (ours)."""

GROUP_HANDOVER: Final = 1.5
"""Seconds for which a node that shuts down waits until other nodes have taken over its sessions
(ours: it has half of `DRAIN_TIMEOUT` for everything)."""

GROUP_READ_OUT: Final = 0.1
"""Seconds for which a node that shuts down still reads the link of a runtime that has moved to
another node (ours: well below `HAND_OVER_TIMEOUT`, for which the other node waits)."""

GROUP_LINGER: Final = 0.2
"""Seconds for which a node that shuts down then forwards late messages of other nodes (ours)."""

GROUP_PATIENCE: Final = 600.0
"""Seconds for which the sessions of a node that has failed are kept (as `SESSION_IDLE`)."""

GROUP_BATCH: Final = 256
"""Rows that a node writes to the engine in one batch (ours)."""

GROUP_WRITES: Final = 8192
"""Rows of one node that may wait to be written (ours): requests that need more are refused (503).
"""

GROUP_ROWS: Final = 2_000_000
"""Maximum rows of other nodes that a node keeps in memory (ours: some 300 bytes each; further rows
are counted and ignored, except the row with the policies)."""

GROUP_ROW_BYTES: Final = 65_536
"""Bytes in the value of one row (ours; a session with 64 roles has 3000)."""

GROUP_POLICY_BYTES: Final = 262_144
"""Bytes of all policies of a domain, which are stored in one row (ours: as one policy file; every
node reads them in a tenth of a second)."""

GROUP_FILE_BYTES: Final = 491_520
"""Bytes of a descriptor and its package together, in one row of the catalogue (ours: a row has
`ROW_VALUE`, and the descriptor is text in JSON; sources in Python pack to some 20 KB)."""

GROUP_CATALOGUE_BYTES: Final = 16_777_216
"""Bytes of all files of the catalogue of a domain, which each of its nodes has in memory (ours)."""

GROUP_CATALOGUE_FILES: Final = 1024
"""Files of the catalogue of a domain, without withdrawn ones (ours: a listing of `LISTING_BYTES`
names about as many)."""

GROUP_CATALOGUE_NAMES: Final = 16_384
"""Names of present and withdrawn files of the catalogue of a domain (ours: some 8 MB in each node).
The name and version of a withdrawn file are kept, so that nodes recognise its old copies."""

GROUP_CATALOGUE_WRITES: Final = 4
"""Files of the catalogue that a node writes to the engine at a time (ours: 2 MiB, so that renewals
of its lease are not delayed)."""

GROUP_CATALOGUE_LOOK: Final = 2.0
"""Seconds between two checks of the directory of a catalogue for changes (ours)."""

GROUP_LOOKUPS: Final = 2048
"""Messages that wait at a node until their receivers are looked up in the engine (ours). The
sessions of one user have an eighth of them, and a quarter of the bytes. More are refused (503)."""

GROUP_LOOKUP_BYTES: Final = 4_194_304
"""Bytes of the messages that wait until their receivers are looked up in the engine (ours: 16
frames)."""

GROUP_PAIRS: Final = 32_768
"""Pairs of sender and receiver for which a node keeps the order of messages while one of them moves
to another node (ours: some 10 MB; a busy node needs fewer)."""

GROUP_NODES: Final = 64
"""Nodes of one group (ours)."""

GROUP_ADDRESS: Final = 900
"""Bytes of an address that is written into the key of a row as it is, and of the address of a
runtime (ours: with the kind and the id of a node it is below `ROW_KEY`)."""

GROUP_FIGURES: Final = 64
"""Figures that a node publishes about itself with each renewal of its lease (ours: 6 KB)."""

GROUP_GONE: Final = 8
"""Former members of the group that a node remembers for `GROUP_PATIENCE` (ours)."""

DURABLE_WAITING: Final = 4096
"""Durable messages that wait at a node until the engine has them (ours). Further messages are
refused with 503."""

DURABLE_WAITING_BYTES: Final = 16_777_216
"""Bytes of the durable messages that wait at a node until the engine has them (ours: 64 frames)."""

DURABLE_LIFE: Final = 86_400.0
"""Seconds after which a durable message without an answer is discarded (RELIABILITY 4.1: a day)."""

DURABLE_BATCH: Final = 256
"""Durable messages that a node writes to the engine in one batch (ours)."""

PROCESS_START: Final = 120.0
"""Seconds within which each of several node processes must be ready (ours: the largest number of
them, started together on two cores, takes half of this time)."""

DURABLE_WINDOW: Final = 64
"""Entries of a runtime's log of durable messages that its node has in memory (ours)."""

DURABLE_FETCHES: Final = 64
"""Logs that a node reads at the same time (ours: many runtimes may reconnect at once)."""

DURABLE_LOGS: Final = 65_536
"""Non-empty logs that a node remembers (ours). If there are more, the node reads the log of each
runtime that connects, until it has listed the non-empty logs again."""

DURABLE_LISTING: Final = 3600.0
"""Seconds between two listings of the non-empty logs (ours: until the next one, a node may read
logs that other nodes have emptied)."""

DURABLE_ANSWER: Final = 20.0
"""Seconds after which a durable message without an answer is delivered again (ours: 5 s more than
the receiver's bus waits for its hyperty, `REPLY_TIMEOUT`)."""

DURABLE_PAUSE: Final = 1.0
"""Seconds before a durable message that its receiver did not accept is delivered again (ours); the
pause doubles each time."""

DURABLE_PAUSE_MOST: Final = 60.0
"""Longest pause in seconds between deliveries of a durable message that its receiver does not
accept (ours)."""

DURABLE_PATIENCE: Final = 600.0
"""Seconds after which a durable message that a connected runtime does not accept is discarded (as
`SESSION_IDLE`)."""
