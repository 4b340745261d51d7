"""Limits of the message buses of a runtime, each with unit and source (`ours`: of this project)."""

from typing import Final

CONCURRENT: Final = 128
"""Requests that one hyperty handles at a time; at most half of them from one runtime (ours)."""

WAITING: Final = 1024
"""Requests that wait for one hyperty (ours)."""

PEER_WAITING: Final = 512
"""Requests from one runtime that wait for one hyperty (ours): as many as two senders may have
open."""

TRACEBACKS: Final = 1.0
"""Exceptions of one hyperty, per second, that are logged with their tracebacks (ours); further ones
are logged with one line each."""

TRACEBACKS_AT_ONCE: Final = 10
"""Exceptions of one hyperty that are logged with their tracebacks at once, after a rest (ours)."""

LOGGED_FAILURES: Final = 20.0
"""Exceptions of one hyperty, per second, that are logged with one line each (ours); the next line
states the number of the exceptions that were not logged."""

LOGGED_AT_ONCE: Final = 100
"""Exceptions of one hyperty that are logged with one line each at once, after a rest (ours)."""

LOGGED_ERROR: Final = 200
"""Characters of an exception that is logged with one line (ours)."""

REFUSALS_KEPT: Final = 1024
"""Refused messages that a node remembers, to report the reasons (ours; each takes about 1 KiB)."""

REFUSAL_CHARS: Final = 512
"""Characters of an address, a reason or a rule in a remembered refusal (ours)."""

FINDINGS_KEPT: Final = 64
"""Violations of the protocol's claims that a process remembers with their details (ours)."""

DROPS_KEPT: Final = 256
"""Dropped messages that a process remembers with their details (ours, OBS-06)."""

SUBMITTED: Final = 64
"""Messages of one hyperty that the Message BUS accepts at a time; further ones wait (ours, R11)."""

SUBMIT_RATE: Final = 1000.0
"""Requests and events a second of one hyperty while others submit, too (ours, R11)."""

SUBMIT_BURST: Final = 8
"""Requests and events of one hyperty at once, after a rest, while others submit, too (ours,
R11)."""

CONTENTION: Final = 0.5
"""Seconds for which SUBMIT_RATE applies to a hyperty after another one has sent (ours, R11)."""

OPEN_REQUESTS: Final = 256
"""Requests of one sender open at one receiver of a runtime; `request` waits for room (ours, R11).

A quarter of the receiver's mailbox, so that one sender alone cannot fill it."""

ANSWERS_KEPT: Final = 256
"""Sent answers that a bus keeps, to send them again when a request is repeated (ours, MSG-07)."""

MAX_ATTEMPTS: Final = 10
"""Maximum attempts of one request of a hyperty (ours, MSG-07)."""

FORWARD_RULES: Final = 256
"""Forward rules and aliases of one runtime; more are refused (ours, BUS-08, BUS-10)."""

REMEMBERED: Final = 4096
"""Combinations of type, sender and receiver that a cache contains; when full it is emptied (ours).
"""

REMEMBERED_BYTES: Final = 2 * 1_048_576
"""Bytes of addresses in the cache of REMEMBERED combinations (ours): half a KiB for each, which is
more than most need."""
