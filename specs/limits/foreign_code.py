"""Limits of code from elsewhere: catalogues, packages, sandbox processes.

See also the `SANDBOX_` limits in `specs.limits.protocol`.
"""

from typing import Final

HYPERTY_RATE: Final = 500.0
"""Messages a second a sandbox of a runtime may post (ours, RELIABILITY L5)."""

HYPERTY_BURST: Final = 200
"""Messages that a sandbox of a runtime may post at once after a rest (ours, RELIABILITY L5)."""

HYPERTY_REQUESTS: Final = 1000
"""Requests of a sandbox of a runtime that wait for their answers; more are refused (ours, T16)."""

SANDBOX_WORDS: Final = 8
"""Words of a sandbox's pipe for each message it may post: its frames, steps and evidence (ours)."""

SANDBOX_FLOOD: Final = 2.0
"""Seconds a sandbox may go on saying more than it may, until it is ended (RELIABILITY S17)."""

SANDBOX_UNREAD: Final = 4000
"""Words that may wait for one end of a pipe to read them, until nothing more is written to it:
four times what waits for a link (RELIABILITY L2), for what cannot wait for space (ours, R11)."""

SANDBOX_UNREAD_BYTES: Final = 4_194_304
"""Bytes of words that may wait for one end of a pipe to read them, until nothing more is written to
it (ours, R11)."""

SANDBOX_LOG_RATE: Final = 16.0
"""Pieces of a sandbox's stderr that are read in a second, 4096 bytes at most each: whoever says
more waits (ours, R11)."""

SANDBOX_LOG_BURST: Final = 32
"""Pieces of a sandbox's stderr that are read at once after a rest (ours, R11)."""

SANDBOX_NICE: Final = 10
"""The niceness of a sandbox process above its host's: it gets about a tenth of the host's share of
a busy processor (ours, R11)."""

SANDBOX_TURN: Final = 0.25
"""Seconds of processor time after which a silent sandbox process is no longer excused by a
busy processor (ours, R11)."""

SANDBOX_STARVED: Final = 12.0
"""Seconds a sandbox process may owe a sign of life if it has waited for a processor; less than
`REPLY_TIMEOUT`, so that its callers are told (ours, R11)."""

SANDBOXES: Final = 64
"""Sandbox processes of one host at once (ours, T16)."""

SANDBOXES_MEMORY: Final = 8_589_934_592
"""Bytes of memory that all sandbox processes of one host may have together (ours, T16: half of
what SANDBOXES times SANDBOX_MEMORY would be)."""

SANDBOXES_CPU: Final = 2.0
"""Processors that all sandbox processes of one host may use together (ours, T16)."""

SANDBOXES_CPU_LEAST: Final = 0.05
"""The least value of SANDBOXES_CPU: from there on the SANDBOX_CPU of one process fits into
SANDBOXES_SPAN (ours)."""

SANDBOXES_SPAN: Final = 86_400
"""Seconds over which SANDBOXES_CPU is promised where the kernel bounds processor time of one
process only: the SANDBOX_CPU of all fit into it (ours, T16)."""

SANDBOXES_PERIOD: Final = 100_000
"""Microseconds in which a cgroup of sandboxes gets its share of processors (the kernel's own)."""

SANDBOXES_WEIGHT: Final = 10
"""Share of a busy processor that a cgroup of sandboxes has, where others have 100 (ours, R11)."""

SANDBOX_EASY_RATE: Final = 10.0
"""Messages a second that a sandbox may post while its runtime works on others (ours, R11)."""

SANDBOX_EASY_BURST: Final = 16
"""Messages that a sandbox may post at once, after a rest, while its runtime works on others (ours,
R11)."""

SANDBOX_YIELD: Final = 0.002
"""Seconds that each further message waits at most until its runtime has nothing else to do: a
runtime that always has takes HYPERTY_RATE of them all the same (ours, R11)."""

FOREIGN_YIELD: Final = 0.0005
"""Seconds that each further message of a foreign domain's stub at a node waits at most until the
node has nothing else to do: a node that is never at rest takes some 1500 messages a second of the
stub, which speaks for many (ours, R11)."""

SANDBOX_FAULT: Final = 8192
"""Bytes of a traceback of a sandbox that are logged, from its end (ours, T16)."""

SANDBOX_REASON: Final = 200
"""Characters of a reason given by a sandbox that are believed to be one (ours, T16)."""

DESCRIPTOR_BYTES: Final = 65_536
"""Bytes in one signed descriptor (ours; one with a schema has 3000)."""

PACKAGE_BYTES: Final = 2_097_152
"""Bytes in one package of code (RELIABILITY S16)."""

CODE_BYTES: Final = PACKAGE_BYTES + 262_144
"""Bytes of code that a sandbox process gets before its plan: sources as of a package, and what it
may read (ours)."""

PACKAGE_FILES: Final = 256
"""Files in one package of code (ours)."""

PACKAGE_UNPACKED_BYTES: Final = 8_388_608
"""Bytes in all files of a package once unpacked (ours; four times what may be packed)."""

PACKAGE_RATIO: Final = 100
"""Maximum of a file's size over its packed size (ours; source code packs to a fifth)."""

DESCRIPTOR_LIFE: Final = 7_776_000
"""Seconds until which a descriptor may be good at most, from now (ours, T14: 90 days)."""

DESCRIPTOR_FRESH: Final = 60.0
"""Seconds for which a descriptor that was fetched is not asked for again (ours, CAT-11)."""

REVOCATIONS: Final = 256
"""Entries in one list of what is revoked (ours; as many as any list may have)."""

REVOCATIONS_BYTES: Final = 262_144
"""Bytes in one signed list of what is revoked (ours; REVOCATIONS entries fit)."""

LISTING_BYTES: Final = 65_536
"""Bytes in the listing of one catalogue (ours)."""

FETCH_TIMEOUT: Final = 2.0
"""Seconds one file of a catalogue may take (ours; four fit into DEPLOY_TIMEOUT)."""

CATALOGUE_DOMAIN_BYTES: Final = 1_048_576
"""Bytes of descriptors of one domain that are remembered (ours): none has all the memory."""

CATALOGUE_MEMORY_BYTES: Final = 16_777_216
"""Bytes in the file of what a runtime remembers of catalogues (ours)."""

FOREIGN_DOMAINS: Final = 10_000
"""Other domains that a node tries to reach until it is started again (ours, MN-19): it remembers
each, so that no stub's name is used twice."""
