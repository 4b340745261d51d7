"""Limits of a group: the nodes of one domain that share an engine."""

from typing import Final

GROUP_LEASE: Final = 10.0
"""Seconds after which the row of a node goes by itself, unless it is renewed (RELIABILITY 4.1)."""

GROUP_RENEWAL: Final = 3.0
"""Seconds from one renewal of a node's row to the next (RELIABILITY 4.1)."""

GROUP_LEASES: Final = 8
"""Answers to renewals that wait for the bus (ours: one renewal is under way at a time, and the
answers to earlier ones, which the node has given up, count for nothing)."""

GROUP_MARGIN: Final = 1.0
"""Seconds before the end of its lease at which a node takes it to be over (ours: its links are
closed by then; clocks of machines differ by less than a millisecond in a lease)."""

GROUP_TERM: Final = GROUP_LEASE - GROUP_MARGIN
"""Seconds for which a node is a member after it has sent its last renewal that was made (ours)."""

GROUP_RETRY: Final = 0.5
"""Seconds after which a write of unknown outcome is made again (ours)."""

GROUP_HANDOVER: Final = 1.5
"""Seconds for which a node that goes down waits until other nodes have its sessions (ours: it has
half of `DRAIN_TIMEOUT` for everything)."""

GROUP_READ_OUT: Final = 0.1
"""Seconds for which it reads the link of a runtime that is at another node already (ours: well
below `HAND_OVER_TIMEOUT`, for which the other node waits)."""

GROUP_LINGER: Final = 0.2
"""Seconds after that for which it passes on what other nodes still send to it (ours)."""

GROUP_PATIENCE: Final = 600.0
"""Seconds for which the session of a node that is gone is kept (as `SESSION_IDLE`)."""

GROUP_BATCH: Final = 256
"""Rows that a node writes in one crossing to the engine (ours)."""

GROUP_WRITES: Final = 8192
"""Rows of one node that wait to be written (ours): a request that needs another is refused, 503."""

GROUP_ROWS: Final = 2_000_000
"""Rows of other nodes that a node knows at most (ours: some 300 bytes each; what is more is
counted and not applied; the one row of the policies is always applied)."""

GROUP_ROW_BYTES: Final = 65_536
"""Bytes in the value of one row (ours; a session with 64 roles has 3000)."""

GROUP_POLICY_BYTES: Final = 262_144
"""Bytes of all policies of a domain, in one row (ours: as one policy file; every node reads them in
a tenth of a second)."""

GROUP_FILE_BYTES: Final = 491_520
"""Bytes of a descriptor and its package together, in one row of the catalogue (ours: a row has
`ROW_VALUE`, and the descriptor is text in JSON; sources in Python pack to some 20 KB)."""

GROUP_CATALOGUE_BYTES: Final = 16_777_216
"""Bytes of all files of the catalogue of a domain, which each of its nodes has in memory (ours)."""

GROUP_CATALOGUE_FILES: Final = 1024
"""Files of the catalogue of a domain, without withdrawn ones (ours: a listing of `LISTING_BYTES`
names about as many)."""

GROUP_CATALOGUE_NAMES: Final = 16_384
"""Names of files that the catalogue of a domain has or had (ours: some 8 MB in each node). A
withdrawn file leaves its name and version, by which a node knows old copies of it."""

GROUP_CATALOGUE_WRITES: Final = 4
"""Files of the catalogue that a node writes at a time (ours: 2 MiB, beside the renewals of its
lease)."""

GROUP_CATALOGUE_LOOK: Final = 2.0
"""Seconds from one look at the directory of a catalogue to the next (ours)."""

GROUP_LOOKUPS: Final = 2048
"""Messages that wait at a node until their receivers are looked up in the engine (ours). The
sessions of one user have an eighth of them, and a quarter of the bytes. More are refused (503)."""

GROUP_LOOKUP_BYTES: Final = 4_194_304
"""Bytes of the messages that wait until their receivers are looked up in the engine (ours: 16
frames)."""

GROUP_PAIRS: Final = 32_768
"""Pairs of a sender and a receiver whose order a node keeps when one moves from node to node
(ours: some 10 MB; a busy node has fewer in the seconds for which a message can be late)."""

GROUP_NODES: Final = 64
"""Nodes of one group (ours)."""

GROUP_ADDRESS: Final = 900
"""Bytes of an address that is written into the key of a row as it is, and of the address of a
runtime (ours: with the kind and the id of a node it is below `ROW_KEY`)."""

GROUP_FIGURES: Final = 64
"""Figures in what a node says of itself (ours: 6 KB at most with each renewal of its lease)."""

GROUP_GONE: Final = 8
"""Nodes that are gone, of which a node still knows for `GROUP_PATIENCE` that they were there
(ours)."""

DURABLE_WAITING: Final = 4096
"""Durable messages that wait at a node until the engine has them (ours). Further messages are
refused with 503."""

DURABLE_WAITING_BYTES: Final = 16_777_216
"""Bytes of the durable messages that wait at a node until the engine has them (ours: 64 frames)."""

DURABLE_LIFE: Final = 86_400.0
"""Seconds after which a durable message is given up that was not answered (RELIABILITY 4.1: a
day)."""

DURABLE_BATCH: Final = 256
"""Durable messages that a node gives to the engine in one crossing (ours)."""

PROCESS_START: Final = 120.0
"""Seconds that one of several processes has until it is ready (ours: the most of them, started at
the same time on two cores, take half of it)."""

DURABLE_WINDOW: Final = 64
"""Entries of the log of one runtime that its node holds (ours)."""

DURABLE_FETCHES: Final = 64
"""Logs that a node reads at the same time (ours: many runtimes may come back at once)."""

DURABLE_LOGS: Final = 65_536
"""Logs that a node knows to have entries (ours). If it hears of more, it reads the log of each
runtime that connects, until it has them listed anew."""

DURABLE_LISTING: Final = 3600.0
"""Seconds after which a node has the logs listed anew that have entries (ours: until then it may
read logs for nothing that other nodes have trimmed)."""

DURABLE_ANSWER: Final = 20.0
"""Seconds after which a durable message without an answer is delivered again (ours: 5 s more than
the receiver's bus waits for its hyperty, `REPLY_TIMEOUT`)."""

DURABLE_PAUSE: Final = 1.0
"""Seconds before a durable message that its receiver did not take is delivered again (ours); the
pause doubles each time."""

DURABLE_PAUSE_MOST: Final = 60.0
"""Longest pause in seconds between deliveries of a durable message that its receiver did not take
(ours)."""

DURABLE_PATIENCE: Final = 600.0
"""Seconds after which a durable message is given up that a runtime with a link does not take (as
`SESSION_IDLE`)."""
