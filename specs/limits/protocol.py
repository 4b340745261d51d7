"""Times, sizes and rates of the protocol that all components share, with unit and source.

The source `ours` marks a choice of this project.
"""

from typing import Final

REPLY_TIMEOUT: Final = 15.0
"""Seconds a request waits for its answer (`T_resp`; upstream `Bus.js`, MSG-06)."""

ANSWER_WITHIN_MOST: Final = 600.0
"""Maximum seconds that the handler of a request may be given (ours)."""

PROGRESS_PERIOD: Final = REPLY_TIMEOUT / 3
"""Seconds between the provisional answers that prolong the wait for such a handler (ours)."""

P2P_TIMEOUT: Final = 10.0
"""Seconds a P2P connection may take to become live (`T_p2p`; ours, C-16)."""

OPEN_TIMEOUT: Final = 3.0
"""Seconds a session open may take (`T_open`; upstream `VertxProtoStub`)."""

DEPLOY_TIMEOUT: Final = 10.0
"""Seconds a stub deployment may take (`T_deploy`; ours)."""

P2P_ENTRY_TIMEOUT: Final = REPLY_TIMEOUT + DEPLOY_TIMEOUT + P2P_TIMEOUT
"""Seconds a registry waits for a P2P link: for subscription, stub and set-up (ours, C-16)."""

SESSION_IDLE: Final = 600.0
"""Seconds a detached session is kept (`T_gc`; ours, MN-08)."""

LEASE: Final = 600
"""Seconds for which a subscription of a data object is granted, unless it is renewed (ours, SYN-20:
`T_gc`, so that an observer whose session can still come back is not forgotten before)."""

STUB_QUEUE: Final = 1000
"""Messages queued for a stub that is not live (`Q_max`; ours, STB-17)."""

EARLY_CHANGES: Final = 1000
"""Changes kept until an observer has the whole object; beyond it the oldest go (ours, SYN-17)."""

READ_PAUSE: Final = 1.0
"""Seconds between a failed read of a data object and the next one (ours, SYN-17)."""

SESSION_QUEUE: Final = 1000
"""Messages queued for a detached session (`Q_max`; ours, MN-27)."""

REGISTRATION_EXPIRES: Final = 3600.0
"""Seconds a registration lives without keep-alive (upstream `Registry.js`)."""

KEEP_ALIVE_SHARE: Final = 2.2
"""The keep-alive period is `expires` divided by this (upstream `DomainRegistration.js`)."""

REGISTRATION_GRAVE: Final = 86400.0
"""Seconds a disconnected registration is kept before it is dead (ours)."""

RECONNECT_TRIES: Final = 5
"""Attempts to restore a lost link before the stub fails (ours, STB-09, P2P-16)."""

LOGIN_PATIENCE: Final = 60.0
"""Seconds for which a runtime repeats a refused login before it stops: the node's clock or keys may
be corrected (ours)."""

IN_PLACE_TRIES: Final = 2
"""Attempts to restore a lost link by the known candidates, before a new offer and answer (ours,
P2P-16)."""

RECONNECT_BASE: Final = 0.5
"""Seconds before the second attempt to restore a link; the pause doubles each time (ours)."""

DIAL_TIMEOUT: Final = 3.0
"""Seconds one attempt to open a transport may take (ours)."""

RENEW_TIMEOUT: Final = 5.0
"""Seconds that messages wait until a session's lost state is restored at the node (STB-09)."""

RETRY_COOL_DOWN: Final = 5.0
"""Seconds between a failed set-up of a stub and the next; for P2P links they double (RES-10)."""

STUB_IDLE: Final = 300.0
"""Seconds without use after which a stub of another domain is released (ours, PFY-03)."""

STUB_IDLE_LEAST: Final = 1.0
"""Smallest value that may be configured instead of STUB_IDLE, in seconds (ours, PFY-03)."""

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

ENVELOPE_BYTES: Final = 4096
"""Bytes of a message for its ends, its id and what routers add to its body (ours)."""

IDENTITY_BYTES: Final = 4352
"""Bytes that a node adds to a message for the identity of its sender: two addresses (ours)."""

BODY_BYTES: Final = MAX_MESSAGE_BYTES - ENVELOPE_BYTES
"""Bytes of JSON in a body of an application: with its envelope it is a message (ours)."""

MAX_JSON_DEPTH: Final = 32
"""Nesting of JSON in a message (RELIABILITY L4)."""

MAX_LIST: Final = 256
"""Addresses in one list of a body (RELIABILITY L4)."""

SEARCH_PAGE: Final = MAX_LIST
"""Records in one page of a search of a domain registry, unless fewer are asked for (ours)."""

SEARCH_BYTES: Final = MAX_MESSAGE_BYTES - 8192
"""Bytes of a message that the records of a page may take (ours; the rest is for its addresses)."""

SEARCH_WAITING: Final = 16
"""Sessions whose records may wait for the next page of a search at once (ours)."""

SEARCH_CURSOR_CHARS: Final = 1024
"""Characters of the cursor of a search (ours; it has a place for each of SEARCH_WAITING)."""

MAX_SPELLINGS: Final = 32
"""Addresses of one peer whose spelling is remembered; of more, the latest (ours)."""

OUTBOX_MESSAGES: Final = 1000
"""Messages waiting to be written to one link (RELIABILITY L2)."""

OUTBOX_BYTES: Final = 1_048_576
"""Bytes waiting to be written to one link (RELIABILITY L2)."""

PING_PERIOD: Final = 20.0
"""Seconds of silence before a session is pinged (RELIABILITY R8)."""

PONG_TIMEOUT: Final = 10.0
"""Seconds a ping may stay unanswered (RELIABILITY R8)."""

LATE: Final = 1.0
"""Delay of this process in seconds above which a peer's silence may be its own fault (ours, R8)."""

HANDSHAKE_TIMEOUT: Final = 5.0
"""Seconds a peer has to finish its handshake (RELIABILITY L6, L7)."""

DRAIN_TIMEOUT: Final = 5.0
"""Seconds a process has to drain after SIGTERM (DESIGN section 9)."""

GOODBYE_TIMEOUT: Final = 1.0
"""Seconds a close frame may take before a link is closed by force (ours)."""

MAILBOX: Final = 1024
"""Messages in one actor's mailbox (MEASURED C: no gain above 1024)."""

IDLE_WORKERS: Final = 16
"""Tasks of one actor that wait for further work; each takes some 3 KiB (ours)."""

EVENTS_WAITING: Final = 512
"""Messages in the mailbox of a hyperty at which further events for it are dropped (ours: half)."""

MODELS_FOLLOWING: Final = 4096
"""Typed objects that a watcher of an application keeps for data objects that may have ended (ours).
"""

TRACE_BUFFER: Final = 65_536
"""Trace records waiting to be written before some are dropped (ours)."""

TRACE_PAGE: Final = 256
"""Trace records encoded at a time (ours): as text they fit into the cache of a core."""

SPAN_SAMPLE: Final = 100
"""One message in so many has a span where spans are exported (ours)."""

SPANS_OPEN: Final = 1024
"""Sampled messages of a process whose span is not done (ours); the oldest one is ended early."""

SPANS_WAITING: Final = 2048
"""Spans of a process that wait for the collector (ours): further ones are dropped."""

SPANS_SENT: Final = 512
"""Spans in one request to the collector (ours), as many as the batches of OpenTelemetry."""

SPAN_EVENTS: Final = 64
"""Events of a span that are kept (ours): a message may reach thousands of subscribers."""

SPAN_INTERVAL: Final = 5.0
"""Seconds between two requests to the collector, unless `SPANS_SENT` wait before (ours)."""

SPAN_EVENT: Final = 1.0
"""Seconds after which the span of a message without an answer ends (ours)."""

SPAN_REQUEST: Final = 60.0
"""Seconds without any event after which the span of an open request ends (ours)."""

SPAN_TIMEOUT: Final = 5.0
"""Seconds within which the collector takes a request, with all attempts (ours)."""

SPAN_GOODBYE: Final = 1.0
"""Seconds for the last spans at the end of a process (ours), within `DRAIN_TIMEOUT`."""

TRACE_PLACES: Final = 1024
"""Cached texts about the position of message hops, for one component of the trace (ours)."""

TRACE_PLACES_BYTES: Final = 1_048_576
"""Bytes of these cached texts (ours): most take about 200."""

TRACE_TICK: Final = 50e-6
"""Seconds for which records have the time of the first of them (ours)."""

TRACE_DUE: Final = 4096
"""Waiting trace records from which on they are written at once (ours): fewer would wake the writer
too often, more would not fit into the cache of a core."""

TRACE_FLUSH: Final = 0.2
"""Seconds between flushes of the trace (DESIGN section 7)."""

TRACE_FILE_BYTES: Final = 64 * 1_048_576
"""Bytes in one trace file before the next is begun (ours)."""

DEDUP_WINDOW: Final = 1024
"""Message instances remembered per sender (RELIABILITY class A)."""

DEDUP_BYTES: Final = 524_288
"""Bytes of memory of the message instances remembered per sender (ours: half a KiB each)."""

DEDUP_ALL_BYTES: Final = 67_108_864
"""Bytes of memory of the message instances of all senders (ours: those of 128 busy senders)."""

DEDUP_COST: Final = 256
"""Bytes of memory for a remembered message or sender, in addition to its texts (ours)."""

DEDUP_SECONDS: Final = 600.0
"""Seconds a message instance is remembered (RELIABILITY class A)."""

LINK_WINDOW: Final = 1000
"""Messages sent on a P2P link and not yet acknowledged (ours)."""

MAX_ALLOCATION: Final = 256
"""Addresses in one allocation request (RELIABILITY L4)."""

MAX_ID: Final = 2**53 - 1
"""The greatest message id: what every JSON reader keeps exactly (RFC 8259 section 6)."""

MAX_ADDRESSES: Final = 10_000
"""Addresses one session may hold (RELIABILITY L5)."""

MAX_DOMAIN_ADDRESSES: Final = 1_000_000
"""Addresses that all sessions of a node hold together (ours, T3)."""

MAX_TOMBSTONES: Final = 1_000_000
"""Released addresses of peers' choice that a node remembers, so none is reused (ours, I-A1)."""

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

ACCEPT_BATCH: Final = 32
"""Connections that a listener accepts before other tasks may run (ours)."""

ACCEPT_REST: Final = 0.01
"""Seconds a listener rests while no further connection can be served (ours)."""

ACCEPT_GRACE: Final = 0.3
"""Seconds that a connection has before it may be closed in favour of a new one; so long new ones
wait in the queue of the system (ours: 2,000 in that time are more than a node can answer, so that
neither a mass of runtimes that come back nor a flood of silent connections keeps others out)."""

ACCEPT_PAUSE: Final = 0.1
"""Seconds a listener rests when the system has no socket left to give (Trio's figure)."""

HTTP_HEAD_BYTES: Final = 8192
"""Bytes in the head of one HTTP request to a node (ours)."""

HTTP_REQUEST_TIMEOUT: Final = 5.0
"""Seconds one HTTP request may take to arrive, and its answer to be read (RELIABILITY L6)."""

HTTP_CONNECTIONS: Final = 64
"""HTTP connections at once; more are hung up (ours)."""

HTTP_PER_HOST: Final = 16
"""HTTP connections at once from one host; more are closed (ours: a quarter of all)."""

HTTP_REQUESTS: Final = 100
"""HTTP requests over one connection before it is closed (ours)."""

HTTP_TOKEN_CHARS: Final = 16
"""Characters that the token for metrics has at least (ours: 80 bits in base 32)."""

READY_TIMEOUT: Final = 1.0
"""Seconds a part of a node has to show that it works (ours)."""

SANDBOX_BEAT: Final = 2.0
"""Seconds between two signs of life asked of a sandbox process (ours, R11)."""

SANDBOX_SILENCE: Final = 5.0
"""Seconds a sandbox process may owe a sign of life before it is ended (ours, R11)."""

SANDBOX_RESTARTS: Final = 3
"""Crashes of a sandbox process within `SANDBOX_SECONDS` after which it is started again (R11)."""

SANDBOX_SECONDS: Final = 60.0
"""Seconds over which crashes of a sandbox process are counted (R11)."""

SANDBOX_COOL_DOWN: Final = 60.0
"""Seconds nothing is started after too many crashes (ours, R11)."""

SANDBOX_OUTSTANDING: Final = 10_000
"""Unanswered requests to a sandbox; beyond it the oldest are forgotten (ours)."""

SANDBOX_RATE: Final = 5000.0
"""Messages a second a sandbox may post; more wait in its pipe (ours, T16)."""

SANDBOX_BURST: Final = 64
"""Messages a sandbox may post at once before its rate counts (ours, T16)."""

SANDBOX_LINKS: Final = 2
"""Links that a sandbox may have open at once to each permitted address: one in use, one to replace
it (ours, T16)."""

SANDBOX_WINDOW: Final = 16
"""Frames of one link on their way through a sandbox's pipe in one direction (ours)."""

SANDBOX_LOG_LINES: Final = 100
"""Lines of a sandbox's stderr that are logged; what is more is counted (ours, T16)."""

SANDBOX_LOG_CHARACTERS: Final = 500
"""Characters of a line of a sandbox's stderr that are logged (ours, T16)."""

SANDBOX_MEMORY: Final = 268_435_456
"""Bytes of address space a sandbox process may have (T16 says 128 MiB, without Python's own)."""

SANDBOX_FILES: Final = 32
"""Descriptors a sandbox process may have open (T16)."""

SANDBOX_CPU: Final = 3600
"""Seconds of processor time in the life of a sandbox process: a backstop, whoever spins and
answers nothing is ended after `SANDBOX_SILENCE` (ours, T16)."""

PEER_OFFENCES: Final = 10
"""Forbidden messages of another domain's node after which the node is quarantined (S14)."""

QUARANTINE: Final = 300.0
"""Seconds a quarantined node gets no session and no sandbox (ours, S14)."""

MESSAGE_RATE: Final = 2000.0
"""Messages a second that one session may send (ours, L5: what an application that waits for each
answer before its next request does not meet)."""

MESSAGE_BURST: Final = 4000
"""Messages one session may send at once after a rest (ours: twice MESSAGE_RATE)."""

IDENTITY_RATE: Final = 10_000.0
"""Messages a second that all sessions of one identity may send (ours: those of five sessions)."""

IDENTITY_BURST: Final = 20_000
"""Messages all sessions of one identity may send at once after a rest (ours: as MESSAGE_BURST)."""

NODE_RATE: Final = 5000.0
"""Messages a second that the node of another domain may send, over all its sessions (ours, T18:
as `SANDBOX_RATE`, which holds for what this node sends it)."""

NODE_BURST: Final = 10_000
"""Messages that the node of another domain may send at once after a rest (ours: as
MESSAGE_BURST)."""

PACE_SHARE: Final = 0.95
"""Share of the rate of a session that its runtime uses for messages (ours: the rest is for session
controls, and for clocks that differ)."""

LEAST_PACE: Final = 1.0
"""Messages a second that a stub sends at least, however few its node says it accepts (ours)."""

PACE_SLICE: Final = 0.01
"""Seconds for which messages above a rate wait at least, so that they leave together (ours)."""

STUB_WINDOW: Final = 64
"""Messages that a Message BUS has given to the stub of a node, and that are not written to its link
yet; more wait in the bus, and their senders with them (ours, R11: one frame; it leaves within the
time of a request at 10 messages a second)."""

WINDOW_TIMEOUT: Final = 12.0
"""Seconds that a message may wait for room in STUB_WINDOW until it is refused (ours: less than a
request has, so that its answer says why)."""

RETRY_AFTER: Final = 1.0
"""Seconds after which a request that was answered 503 may be made again, where nothing says when
it can be granted (ours)."""

WARNING_PAUSE: Final = 60.0
"""Seconds from one warning about a limit to the next one about the same (ours)."""

MAX_FAILED_OPENS: Final = 5
"""Wrong tokens of one host in a minute that cost it no connection (ours, S2)."""

HANDSHAKE_RATE: Final = 20.0
"""Connections a second from one host (RELIABILITY L5)."""

HANDSHAKE_BURST: Final = 100
"""Connections from one host at once after a rest (ours: as UNAUTHENTICATED_PER_HOST)."""

UNAUTHENTICATED_LINKS: Final = 2000
"""Connections to a node that have no session yet (RELIABILITY L5)."""

UNAUTHENTICATED_PER_HOST: Final = 100
"""Connections from one host to a node that have no session yet (RELIABILITY L5)."""

OUTBOX_BUDGET: Final = 256 * 1_048_576
"""Bytes of memory for what waits for all links and detached sessions of a node (RELIABILITY L2)."""

WRITE_BYTES: Final = 65_536
"""Bytes a node hands to a link at once (MEASURED A4: larger frames do not pay)."""

WRITE_SLICE: Final = 0.002
"""Seconds for which a node writes to links before other tasks may run (ours)."""

READ_SLICE: Final = 0.002
"""Seconds for which a node reads links before it writes the resulting messages (ours)."""

WRITE_TIMEOUT: Final = 10.0
"""Seconds a peer has to take in what was handed to its link at once (RELIABILITY L1)."""

SOCKET_BYTES: Final = 131_072
"""Bytes the system takes in of one peer before a node reads them (ours; doubled by Linux)."""

FRAME_TIMEOUT: Final = 30.0
"""Seconds from the first to the last byte of one message (RELIABILITY L7)."""

MAX_MALFORMED: Final = 10
"""Malformed messages from one link that are tolerated within ERROR_WINDOW (RELIABILITY L4)."""

ERROR_WINDOW: Final = 60.0
"""Seconds in which MAX_MALFORMED are counted (RELIABILITY L4)."""

FAN_OUT: Final = 10_000
"""Sessions that one message may be given to (ours, S12; P1 has as many)."""

FAN_OUT_AT_ONCE: Final = 16
"""Sessions to which a message is delivered at once; for more the delivery is split (ours)."""

FAN_OUT_PUTS: Final = 1000
"""Busy links after which a delivery to many sessions pauses (ours)."""

FAN_OUTS: Final = 8
"""Deliveries to many sessions that are in progress at a time (ours)."""
