"""Limits of code from catalogues: descriptors, packages, sandbox processes (`ours`: our choice).

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
"""Items that a sandbox may write to its pipe for each message that it may post (ours)."""

SANDBOX_FLOOD: Final = 2.0
"""Seconds for which a sandbox may exceed its rate before it is killed (RELIABILITY S17)."""

SANDBOX_UNREAD: Final = 4000
"""Unread items in one direction of a sandbox's pipe, from which on nothing more is written (ours,
R11): four times the limit of a link (RELIABILITY L2), for items whose writer cannot wait."""

SANDBOX_UNREAD_BYTES: Final = 4_194_304
"""Bytes of unread items in one direction of a sandbox's pipe, from which on nothing more is written
(ours, R11)."""

SANDBOX_LOG_RATE: Final = 16.0
"""Reads of a sandbox's stderr per second, of at most 4096 bytes each: a sandbox that writes more
waits (ours, R11)."""

SANDBOX_LOG_BURST: Final = 32
"""Reads of a sandbox's stderr without a pause, after a time without output (ours, R11)."""

SANDBOX_NICE: Final = 10
"""The niceness of a sandbox process above its host's: it gets about a tenth of the host's share of
a busy processor (ours, R11)."""

SANDBOX_TURN: Final = 0.25
"""Seconds of processor time that a silent sandbox process must have used before its silence counts
as its own fault, not that of a busy processor (ours, R11)."""

SANDBOX_STARVED: Final = 12.0
"""Seconds for which a sandbox process that waits for a processor may stay silent; less than
`REPLY_TIMEOUT`, so that its callers are notified (ours, R11)."""

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
"""Seconds over which SANDBOXES_CPU is enforced where the kernel can limit the processor time of
single processes only: by the number of processes with SANDBOX_CPU each (ours, T16)."""

SANDBOXES_PERIOD: Final = 100_000
"""Microseconds in which a cgroup of sandboxes gets its share of processors (the kernel's own)."""

SANDBOXES_WEIGHT: Final = 10
"""Share of a busy processor that a cgroup of sandboxes has, where others have 100 (ours, R11)."""

SANDBOX_EASY_RATE: Final = 10.0
"""Messages a second that a sandbox may post while its runtime is busy with others (ours, R11)."""

SANDBOX_EASY_BURST: Final = 16
"""Messages that a sandbox may post at once, after a rest, while its runtime is busy with others
(ours, R11)."""

SANDBOX_YIELD: Final = 0.002
"""Longest delay in seconds of a message above SANDBOX_EASY_RATE, until the runtime is idle: a
runtime that is never idle still accepts HYPERTY_RATE messages a second (ours, R11)."""

FOREIGN_YIELD: Final = 0.0005
"""Longest delay in seconds of a message above SANDBOX_EASY_RATE from the stub of another domain,
until the node is idle: a node that is never idle accepts some 1500 messages a second of such a
stub, which serves many runtimes (ours, R11)."""

SANDBOX_FAULT: Final = 8192
"""Bytes of a traceback of a sandbox that are logged, from its end (ours, T16)."""

SANDBOX_REASON: Final = 200
"""Characters of an error text from a sandbox that are kept (ours, T16)."""

DESCRIPTOR_BYTES: Final = 65_536
"""Bytes in one signed descriptor (ours; one with a schema has 3000)."""

PACKAGE_BYTES: Final = 2_097_152
"""Bytes in one package of code (RELIABILITY S16)."""

CODE_BYTES: Final = PACKAGE_BYTES + 262_144
"""Bytes of code and readable data that a sandbox process gets when it starts (ours)."""

PACKAGE_FILES: Final = 256
"""Files in one package of code (ours)."""

PACKAGE_UNPACKED_BYTES: Final = 8_388_608
"""Bytes in all files of a package once unpacked (ours; four times what may be packed)."""

PACKAGE_RATIO: Final = 100
"""Maximum of a file's size over its packed size (ours; source code packs to a fifth)."""

DESCRIPTOR_LIFE: Final = 7_776_000
"""Longest time in seconds for which a descriptor may still be valid (ours, T14: 90 days)."""

DESCRIPTOR_FRESH: Final = 60.0
"""Seconds for which a fetched descriptor is used without asking for it again (ours, CAT-11)."""

REVOCATIONS: Final = 256
"""Revocations in one list of revocations (ours; as many as any list may have)."""

REVOCATIONS_BYTES: Final = 262_144
"""Bytes of one signed list of revocations (ours; REVOCATIONS of them fit)."""

LISTING_BYTES: Final = 65_536
"""Bytes in the listing of one catalogue (ours)."""

FETCH_TIMEOUT: Final = 2.0
"""Seconds one file of a catalogue may take (ours; four fit into DEPLOY_TIMEOUT)."""

CATALOGUE_DOMAIN_BYTES: Final = 1_048_576
"""Bytes of cached descriptors of one domain (ours): no domain can fill the cache alone."""

CATALOGUE_MEMORY_BYTES: Final = 16_777_216
"""Bytes of the file in which a runtime caches descriptors of catalogues (ours)."""

FOREIGN_DOMAINS: Final = 10_000
"""Other domains that a node tries to reach until it is started again (ours, MN-19): it remembers
each, so that no stub's name is used twice."""
