"""Every number of the domain registry's store and of back ends of a node, with unit and source."""

from typing import Final

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

MAX_RECORD_BYTES: Final = 16_384
"""Bytes of one record as JSON (ours; four fit into one message)."""

STORE_RETRY: Final = 1.0
"""Seconds between attempts to write to a registry file that could not be written (ours, R13)."""

MAX_RESERVATIONS: Final = 16
"""Network resources one session may hold at the quality broker (ours, T10)."""

DEBT_TRIES: Final = 20
"""Attempts to do at a back end what a session left behind, a quarter of an hour (ours)."""

DEBT_PAUSE: Final = 60.0
"""Longest pause in seconds between two of these attempts (ours)."""

REGISTRY_POLL: Final = 5.0
"""Seconds between looks at what changed in a registry behind the node (upstream's connector)."""

WATCHED_RECORDS: Final = 100_000
"""Records of a registry behind the node whose last status the node remembers (ours)."""
