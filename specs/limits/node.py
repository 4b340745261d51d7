"""Limits of a message node: logins, sessions over HTTP, policies, back ends.

The source `ours` marks a choice of this project.
"""

from typing import Final

SESSION_LIFE: Final = 43_200.0
"""Seconds for which a login is valid, unless configured otherwise (ours, MN-05: 12 hours)."""

STATEMENT_LIFE: Final = 86_400.0
"""Longest time in seconds for which a domain's signed statement about a runtime is valid (ours; it
ends with the login, if that ends earlier)."""

RETURN_TIME: Final = 15.0
"""Seconds after a restart of a node within which its runtimes should reconnect (ours)."""

STATEMENT_RETRY: Final = 60.0
"""Shortest pause in seconds between requests for a newer statement of the domain (ours)."""

DOMAINS_KEPT: Final = 256
"""Other domains whose public keys a runtime remembers (ours)."""

CHALLENGE_BYTES: Final = 32
"""Random bytes in a challenge to a runtime's key (ours)."""

READ_OUT: Final = 0.3
"""Seconds for which a node that shuts down reads its links after its close message, if no other
node can take over their sessions (ours: peers answer at once; the node has half of `DRAIN_TIMEOUT`
for everything)."""

LOGIN_TIMEOUT: Final = 2.0
"""Seconds an identity provider has to answer (ours; below OPEN_TIMEOUT, for the refusal)."""

KEYS_TIMEOUT: Final = 1.5
"""Seconds within which an identity provider must return its signing keys (ours; below
LOGIN_TIMEOUT)."""

LOGINS_PENDING: Final = 256
"""Logins of one node under way at once (ours)."""

TOKEN_LIFE: Final = 86_400.0
"""Longest accepted lifetime of a login token in seconds, unless configured otherwise (ours: tokens
of identity providers live for an hour to a day)."""

TOKEN_TIMEOUT: Final = 10.0
"""Seconds in which a runtime must get a login token from its source (ours)."""

TOKEN_ANSWER_BYTES: Final = 65_536
"""Bytes in one answer of a token endpoint (ours; it holds an access, a refresh and an ID token)."""

CLOCK_SKEW: Final = 60.0
"""Seconds by which the clocks of an issuer and a node may differ (RELIABILITY R12)."""

TOKEN_CHARS: Final = 8192
"""Characters in one login token (ours; a token with 64 roles has 2000)."""

TOKEN_ROLES: Final = 64
"""Roles in one login token (ours)."""

SPENT_TOKENS: Final = 65_536
"""Login tokens remembered as used: a hundred logins a second by tokens that live ten minutes,
or as many logins a day by tokens that live a day (ours, S4)."""

JWKS_BYTES: Final = 65_536
"""Bytes in one set of signing keys (ours)."""

JWKS_KEYS: Final = 64
"""Keys in one set of signing keys (ours)."""

RSA_BITS_MIN: Final = 2048
"""Bits in the modulus of the smallest RSA key that is accepted (RFC 7518, 3.3)."""

RSA_BITS_MAX: Final = 8192
"""Bits in the modulus of the largest RSA key that is accepted (ours; it verifies in half a
millisecond)."""

KEYS_FRESH: Final = 300.0
"""Seconds for which the signing keys of a server are used without asking for them again (ours)."""

KEYS_PAUSE: Final = 5.0
"""Shortest pause in seconds between two requests for the signing keys of a server (ours)."""

KEYS_STALE: Final = 3600.0
"""Seconds for which signing keys are still used when their server cannot be reached (ours)."""

KEY_FILE_FRESH: Final = 1.0
"""Seconds for which a file of signing keys is used without reading it again (ours)."""

KEY_FILE_PAUSE: Final = 0.1
"""Shortest pause in seconds between two reads of a file of signing keys (ours)."""

MAX_POLICY_BYTES: Final = 262_144
"""Bytes in one policy file (ours, T7)."""

MAX_POLICY_SETS: Final = 64
"""Policy sets of a node (ours, T7)."""

MAX_POLICY_RULES: Final = 1000
"""Rules in one policy set, of all its policies together (ours, T7)."""

MAX_POLICY_DEPTH: Final = 8
"""Nesting of not, anyOf, allOf and lists in one condition (ours, T7)."""

MAX_POLICY_CONDITIONS: Final = 5000
"""Comparisons in one policy set (ours, T7)."""

MAX_POLICY_TASKS: Final = 16
"""Obligations, or advice, of one rule, policy or set (ours, POL-13)."""

MAX_POLICY_TEXT: Final = 2048
"""Characters in one text of a policy: no address is longer (ours, T7)."""

MAX_POLICY_COUNTERS: Final = 256
"""Counters that obligations of one node may begin; more fail (as many as MAX_JSON_KEYS, T7)."""

REST_CONNECTIONS: Final = 4096
"""HTTP connections at once to a node that has sessions over HTTP: two for each of them, one to
post and one to read (ours: as many sessions as UNAUTHENTICATED_LINKS)."""

REST_PER_HOST: Final = 1024
"""HTTP connections at once from one host to a node that has sessions over HTTP (ours: a quarter of
all)."""

REST_CURSOR_WAIT: Final = 1.0
"""Seconds for which an event stream waits for the acknowledgement of its messages; then the stream
ends, and the client acknowledges them when it opens the next stream (ours)."""

REST_RETRY: Final = 100
"""Milliseconds after which a browser opens an event stream again that has ended (ours)."""

REST_POSTS: Final = 4
"""HTTP posts of one session that wait to be processed (ours: one, and some that timed out)."""

BACKEND_CONNECTIONS: Final = 8
"""Connections of a node to one back end, and so requests that are under way there (ours)."""

BACKEND_QUEUE: Final = 256
"""Requests of a node that wait for one back end; more are refused (ours)."""

BACKEND_TIMEOUT: Final = 10.0
"""Seconds a request to a back end may take, waiting included (ours; less than `T_resp`)."""

BACKEND_ANSWER_BYTES: Final = 1_048_576
"""Bytes in one answer of a back end (ours, T19)."""

MAX_RECORDS: Final = 10_000
"""Records one runtime may have in a domain registry (as many as it may have addresses)."""

MAX_DOMAIN_RECORDS: Final = 1_000_000
"""Records that a node knows of its domain (ours: some 3 KB each; as many as there may be
addresses). A further registration is refused with 503. A further record of another node is
counted, and not applied."""

MAX_RECORD_BYTES: Final = 16_384
"""Bytes of one record as JSON (ours; four fit into one message)."""

USER_RECORDS: Final = 20_000
"""Records that all runtimes of one user may have in a domain registry (ours: those of two)."""

USER_RECORD_BYTES: Final = 33_554_432
"""Bytes of memory of the records of all runtimes of one user (ours: 3 KB each, or 500 of the
largest)."""

DOMAIN_RECORD_BYTES: Final = 3_221_225_472
"""Bytes of memory of all records that a node knows of its domain (ours: 3 KB each)."""

RECORD_COST: Final = 2048
"""Bytes of memory that a record takes beside its JSON and its keys in the index (ours)."""

RECORD_KEY_COST: Final = 768
"""Bytes of memory of one key of a record in the index, beside its text (ours)."""

USER_ADDRESSES: Final = 50_000
"""Addresses that all sessions of one user hold together (ours: those of five sessions)."""

USER_ADDRESS_BYTES: Final = 41_943_040
"""Bytes of memory of the addresses that all sessions of one user hold (ours: some 650 each)."""

DOMAIN_ADDRESS_BYTES: Final = 1_073_741_824
"""Bytes of memory of the addresses that all sessions of a domain hold together (ours)."""

ADDRESS_COST: Final = 640
"""Bytes of memory that an address takes beside its text (ours)."""

USER_PATHS: Final = 20_000
"""Paths that all sessions of one user have together (ours: those of twenty sessions)."""

USER_PATH_BYTES: Final = 33_554_432
"""Bytes of memory of the paths of all sessions of one user (ours: some 1,700 each)."""

DOMAIN_PATHS: Final = 2_000_000
"""Paths that all sessions of a domain have together (ours)."""

DOMAIN_PATH_BYTES: Final = 2_147_483_648
"""Bytes of memory of the paths of all sessions of a domain (ours: some 1 KB each)."""

PATH_COST: Final = 896
"""Bytes of memory that a path takes beside its text (ours)."""

USER_WAITING: Final = 16_384
"""Messages that wait for all detached sessions of one user (ours: those of sixteen)."""

USER_WAITING_BYTES: Final = 33_554_432
"""Bytes of memory of the messages that wait for all detached sessions of one user (ours: an eighth
of OUTBOX_BUDGET)."""

USER_NAME_BYTES: Final = 524_288
"""Bytes of the names of runtimes that one user may have at a node (ours: 500 each)."""

INDEXED_NAMES: Final = 32
"""Resources, and data schemes, by which one record is found; criteria see all of them (ours)."""

STORE_RETRY: Final = 1.0
"""Seconds between attempts to write to a registry file that could not be written (ours, R13)."""

NAME_LIFE: Final = 2_592_000.0
"""Seconds for which the name of a runtime stays its user's after its last session (ours, S6: 30
days)."""

USER_NAMES: Final = 1000
"""Names of runtimes that one user may have at a node (ours, S6)."""

NODE_NAMES: Final = 100_000
"""Names of runtimes that a node reserves for their users (ours, S6: some 50 MB)."""

MAX_RESERVATIONS: Final = 16
"""Network resources one session may hold at the quality broker (ours, T10)."""

RETRY_QUEUE_TRIES: Final = 20
"""Attempts to release the resources of an ended session at a back end: a quarter of an hour (ours).
"""

RETRY_QUEUE_PAUSE: Final = 60.0
"""Longest pause in seconds between two attempts to release an ended session's resources (ours)."""

REGISTRY_POLL: Final = 5.0
"""Seconds between two checks of an external registry for changes (upstream's connector)."""

WATCHED_RECORDS: Final = 100_000
"""Records of an external registry whose last status the node remembers (ours)."""

PUSH_DEVICES: Final = 16
"""Devices of one user that a node can wake; a further one replaces the oldest (ours)."""

PUSH_RUNTIMES: Final = 100_000
"""Devices of all users that a node can wake (ours: some 100 MB)."""

PUSH_LIFE: Final = 2_592_000.0
"""Seconds for which the registration of a device for push messages lasts (ours: 30 days)."""

PUSH_TTL: Final = 86_400
"""Seconds for which a push service keeps a message for an unreachable device (RFC 8030, ours)."""

PUSH_BYTES: Final = 3_000
"""Bytes of the content of a push message, which is at most 4096 bytes encrypted (RFC 8291, 4)."""

PUSH_PARALLEL: Final = 32
"""Push messages that a node sends at once (ours)."""

PUSH_EACH: Final = 4
"""Push messages that a node sends at once for one runtime or one other domain (ours: an eighth of
all, as the push services of their choice may be slow)."""

PUSH_PATIENCE: Final = 5.0
"""Seconds within which a push service must accept a message for a device (ours: half the time for a
request that wakes several devices)."""

PUSH_ENDPOINT_CHARS: Final = 2_048
"""Characters in the URL of a device at its push service (ours)."""

CARRIED_BYTES: Final = 262_144
"""Bytes of one payload from node to node, unless one message is longer (ours: as a frame)."""

CARRIED_PAIRS: Final = 16_384
"""Messages that are read from one payload from node to node (ours: 16 bytes each at least)."""

CARRIED_MESSAGES: Final = 8192
"""Messages for one other node that wait for the engine to take them (ours)."""

CARRIED_WAITING: Final = 16_777_216
"""Bytes of the messages for one other node that wait for the engine (ours: as the inbox of a
node)."""

HEADS_KEPT: Final = 4096
"""Message headers from node to node that a process caches for reading, and as many for writing
(ours: one for each pair of communicating runtimes)."""

HEAD_KEPT: Final = 512
"""Bytes of the longest cached header of a message from node to node (ours: three times the usual
size)."""

CARRIED_HOPS: Final = 2
"""Nodes that may forward a message within a domain (ours: the second one if the receiver has just
moved)."""

RECORD_RETRY: Final = 60.0
"""Seconds after which a node checks again a record that another node should let expire (ours)."""

NODE_CHANCE: Final = 6
"""Random bytes in the id of a node, which is unique in its domain (ours)."""

HAND_OVER_TIMEOUT: Final = 0.5
"""Seconds for which a node waits for the session of a runtime that has moved from another node of
the domain (ours; a node that has crashed hands nothing over)."""

MAILBOX_RETRY: Final = 0.05
"""Seconds until a message to a node's component with a full mailbox is tried again (ours)."""
