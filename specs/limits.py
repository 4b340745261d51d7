"""Every number of the protocol, once, with unit and source."""

from typing import Final

REPLY_TIMEOUT: Final = 15.0
"""Seconds a request waits for its answer (`T_resp`; upstream `Bus.js`, MSG-06)."""

P2P_TIMEOUT: Final = 10.0
"""Seconds a P2P connection may take to become live (`T_p2p`; ours, C-16)."""

OPEN_TIMEOUT: Final = 3.0
"""Seconds a session open may take (`T_open`; upstream `VertxProtoStub`)."""

DEPLOY_TIMEOUT: Final = 10.0
"""Seconds a stub deployment may take (`T_deploy`; ours)."""

SESSION_IDLE: Final = 600.0
"""Seconds a detached session is kept (`T_gc`; ours, MN-08)."""

SWITCH_TIMEOUT: Final = 0.25
"""Seconds a pair's queue is held while its path is switched (`T_switch`; ours)."""

STUB_QUEUE: Final = 1000
"""Messages queued for a stub that is not live (`Q_max`; ours, STB-17)."""

EARLY_CHANGES: Final = 1000
"""Changes kept while a copy waits for the whole object; then the oldest go (ours, SYN-17)."""

READ_PAUSE: Final = 1.0
"""Seconds between a failed read of a data object and the next one (ours, SYN-17)."""

SESSION_QUEUE: Final = 1000
"""Messages queued for a detached session (`Q_max`; ours, MN-27)."""

REGISTRATION_EXPIRES: Final = 3600.0
"""Seconds a registration lives without keep-alive (upstream `Registry.js`)."""

KEEP_ALIVE_SHARE: Final = 2.2
"""`expires` over this is the keep-alive period (upstream `DomainRegistration.js`)."""

REGISTRATION_GRAVE: Final = 86400.0
"""Seconds a disconnected registration is kept before it is dead (ours)."""

RECONNECT_TRIES: Final = 5
"""Attempts to get a lost link back before giving up (ours, STB-09, P2P-16)."""

IN_PLACE_TRIES: Final = 2
"""Of these, attempts by what both ends know, before a new offer and answer (ours, P2P-16)."""

RECONNECT_BASE: Final = 0.5
"""Seconds before the second attempt; doubles each time (ours)."""

DIAL_TIMEOUT: Final = 3.0
"""Seconds one attempt to open a transport may take (ours)."""

RETRY_COOL_DOWN: Final = 5.0
"""Seconds after a failed set-up before the next one (ours, RES-10, STB-14)."""

NEGATIVE_CACHE: Final = 1.0
"""Seconds a failed record query is remembered (RES-03)."""

HOP_LIMIT: Final = 8
"""Stubs a message may cross (`H_max`; ours, I-L4)."""

MAX_FRAME_BYTES: Final = 262_144
"""Bytes in one frame of any transport (DESIGN: 256 KiB)."""

MAX_MESSAGE_BYTES: Final = 65_536
"""Bytes in one message (RELIABILITY L4: 64 KiB)."""

FRAME_MESSAGES: Final = 64
"""Messages put into one frame (DESIGN: `protofly.v1`)."""

MAX_JSON_DEPTH: Final = 32
"""Nesting of JSON in a message (RELIABILITY L4)."""

MAX_LIST: Final = 256
"""Addresses in one list of a body (RELIABILITY L4)."""

OUTBOX_MESSAGES: Final = 1000
"""Messages waiting to be written to one link (RELIABILITY L2)."""

OUTBOX_BYTES: Final = 1_048_576
"""Bytes waiting to be written to one link (RELIABILITY L2)."""

PING_PERIOD: Final = 20.0
"""Seconds of silence before a session is pinged (RELIABILITY R8)."""

PONG_TIMEOUT: Final = 10.0
"""Seconds a ping may stay unanswered (RELIABILITY R8)."""

HANDSHAKE_TIMEOUT: Final = 5.0
"""Seconds a peer has to finish its handshake (RELIABILITY L6, L7)."""

DRAIN_TIMEOUT: Final = 5.0
"""Seconds a process has to drain after SIGTERM (DESIGN section 9)."""

GOODBYE_TIMEOUT: Final = 1.0
"""Seconds a farewell may take before a link is closed by force (ours)."""

MAILBOX: Final = 1024
"""Messages in one actor's mailbox (MEASURED C: no gain above 1024)."""

TRACE_BUFFER: Final = 65_536
"""Trace records waiting to be written before some are dropped (ours)."""

TRACE_FLUSH: Final = 0.2
"""Seconds between flushes of the trace (DESIGN section 7)."""

TRACE_FILE_BYTES: Final = 64 * 1_048_576
"""Bytes in one trace file before the next is begun (ours)."""

DEDUP_WINDOW: Final = 1024
"""Message instances remembered per sender (RELIABILITY class A)."""

DEDUP_SECONDS: Final = 600.0
"""Seconds a message instance is remembered (RELIABILITY class A)."""

LINK_WINDOW: Final = 1000
"""Messages sent on a P2P link and not yet acknowledged (ours)."""

ACK_DELAY: Final = 0.01
"""Seconds an acknowledgement on a P2P link waits for a message to go with it (ours).

An answer takes less; and whoever waits for the end of a link waits as long."""

PENDING_PROOFS: Final = 8
"""Dialled P2P links that may prove themselves at once; more are hung up (ours, T11)."""

MAX_ALLOCATION: Final = 256
"""Addresses in one allocation request (RELIABILITY L4)."""

MAX_ID: Final = 2**53 - 1
"""The greatest message id: what every JSON reader keeps exactly (RFC 8259 section 6)."""

MAX_ADDRESSES: Final = 10_000
"""Addresses one session may hold (RELIABILITY L5)."""

MAX_SUBSCRIPTIONS: Final = 1000
"""Paths one session may have (RELIABILITY L5)."""

MAX_JSON_KEYS: Final = 256
"""Keys in one JSON object of a message (RELIABILITY L4)."""

MAX_JSON_TEXT: Final = 16_384
"""Characters in one JSON string of a message (RELIABILITY L4)."""

PENDING_HANDSHAKES: Final = 2000
"""Connections to one listener that have not finished their handshake (RELIABILITY L5)."""

READ_BYTES: Final = 65_536
"""Bytes read from a socket at once (MEASURED A4: 2x cheaper than 4 KiB)."""

READ_AHEAD: Final = 16
"""Frames a WebSocket client reads before the actor above has taken them (ours)."""

LINK_BACKLOG: Final = 64
"""Links of one listener that are ready and wait to be accepted (ours)."""

ACCEPT_PAUSE: Final = 0.1
"""Seconds a listener rests when the system has no socket left to give (Trio's figure)."""

BACKEND_CONNECTIONS: Final = 8
"""Connections of a node to one back end, and so requests that are under way there (ours)."""

BACKEND_ANSWER_BYTES: Final = 1_048_576
"""Bytes in one answer of a back end (ours, T19)."""
