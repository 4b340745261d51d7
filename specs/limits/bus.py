"""The numbers of a runtime's buses, each with its unit and source."""

from typing import Final

CONCURRENT: Final = 128
"""Requests one hyperty works on at a time; of one runtime at most half (ours)."""

WAITING: Final = 1024
"""Requests that wait for one hyperty (ours)."""

PEER_WAITING: Final = 512
"""Requests from one runtime that wait for one hyperty (ours): what two of its hyperties may have
open."""

TRACEBACKS: Final = 1.0
"""Exceptions of one hyperty that are logged with their tracebacks, in a second (ours); of others
the log has one line each."""

TRACEBACKS_AT_ONCE: Final = 10
"""Exceptions of one hyperty that are logged with their tracebacks at once, after a rest (ours)."""

LOGGED_FAILURES: Final = 20.0
"""Exceptions of one hyperty that are logged with one line each, in a second (ours); the next line
has the number of the others."""

LOGGED_AT_ONCE: Final = 100
"""Exceptions of one hyperty that are logged with one line each at once, after a rest (ours)."""

LOGGED_ERROR: Final = 200
"""Characters of an exception that is logged with one line (ours)."""

REFUSALS_KEPT: Final = 1024
"""Refusals that a node remembers, to say why a message was refused (ours; each is some 1 KiB)."""

REFUSAL_CHARS: Final = 512
"""Characters of an address, a reason or a rule in a remembered refusal (ours)."""

FINDINGS_KEPT: Final = 64
"""Broken claims that a process remembers with what they are about (ours)."""

DROPS_KEPT: Final = 256
"""Messages not delivered that a process remembers one by one (ours, OBS-06)."""

SUBMITTED: Final = 64
"""Places of one hyperty at the Message BUS; who has none waits (ours, R11)."""

SUBMIT_RATE: Final = 1000.0
"""Requests and events a second of one hyperty while others submit, too (ours, R11)."""

SUBMIT_BURST: Final = 8
"""Requests and events of one hyperty at once, after a rest, while others submit, too (ours,
R11)."""

CONTENTION: Final = 0.5
"""Seconds for which a submission of another makes a hyperty keep to its rate (ours, R11)."""

OPEN_REQUESTS: Final = 256
"""Requests of one sender open at one receiver of a runtime; `request` waits for room (ours, R11).

A quarter of the receiver's mailbox, so that one sender alone cannot fill it."""

ANSWERS_KEPT: Final = 256
"""Answers to others that a bus keeps, for requests that come once more (ours, MSG-07)."""

MAX_ATTEMPTS: Final = 10
"""Maximum attempts of one request of a hyperty (ours, MSG-07)."""

FORWARD_RULES: Final = 256
"""Forward rules and aliases of one runtime; more are refused (ours, BUS-08, BUS-10)."""

REMEMBERED: Final = 4096
"""Types and ends of messages that are remembered; with one more the memory begins anew (ours)."""

REMEMBERED_BYTES: Final = 2 * 1_048_576
"""Bytes of the remembered ends of messages (ours): half a KiB each, which is more than most
have."""
