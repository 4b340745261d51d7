"""Numbers of data objects beyond their reads, with unit and source."""

from typing import Final

from specs.limits import protocol as limits

REPEAT_FIRST: Final = 2.0
"""Seconds after which the last change of an object is published again (ours, I-D4: who lost it
cannot see otherwise that something is missing)."""

REPEAT_LAST: Final = 60.0
"""Longest pause in seconds between repeats of an object's last change; the pauses double (ours,
I-D4)."""

REPEAT_SPACING: Final = 0.05
"""Seconds between two repeats of one runtime: 20 a second, whatever else it sends (ours, L5)."""

PART_REPEATS: Final = 3
"""Repeats of a change that a part of a runtime made, such as the offer of a link: they outlast
`P2P_TIMEOUT`, after which the link's own machine asks anew (ours, P2P-16)."""

QUIET: Final = 3 * REPEAT_LAST
"""Seconds without a word of its reporter after which a live copy reads the object (ours, I-D4)."""

GONE_READS: Final = 5
"""Reads in a row that find no such object until it counts as gone: over 15 seconds, in which a
runtime comes back to a node that has forgotten it (ours, STB-09)."""

CHANGES_KEPT: Final = 256
"""Changes of a copy that a reader may be behind and still see each one; then it is given the
difference (ours)."""

MAX_ALLOWED_OBSERVERS: Final = 10_000
"""Observers that one object may have, that its reporter may have allowed, or expelled from a
public one (ours: ten times as many as are expected)."""

MAX_UNDECIDED: Final = 256
"""Observers of one object that wait for its reporter to decide; more are refused
(ours: four times as many as a hyperty works on at a time)."""

MAX_REPEATED_ASKS: Final = 16
"""Requests of one observer that wait for the same decision; more are refused (ours)."""

OBSERVER_CHANGES_KEPT: Final = 256
"""Joins and leaves that a reader may be behind and still see each one; then it is given the
difference (ours)."""

BUSY_PAUSE: Final = 1.0
"""Seconds between two attempts of a request that an object cannot do now (ours)."""

LEAVE_TRIES: Final = 5
"""Attempts of an observer to leave an object that answers 503, at pauses of `BUSY_PAUSE` (ours)."""

CHILDREN_OF_OBJECT: Final = 200
"""Children of one object; they are keys of one JSON object, of which `MAX_JSON_KEYS` may be (ours,
SYN-24)."""

CHILDREN_OF_CREATOR: Final = 100
"""Children of one creator in one object: one creator alone cannot fill the object (ours,
SYN-24)."""

CHILD_BYTES: Final = 8192
"""Bytes of one child's value, as compact JSON (ours, SYN-24)."""

CHILDREN_BYTES: Final = 32_768
"""Bytes of all children of one object, with their names: half of the message that shows the whole
object (ours, SYN-24)."""

CREATOR_BYTES: Final = 16_384
"""Bytes of all children of one creator in one object (ours, SYN-24)."""

CHILD_DEPTH: Final = 16
"""Nesting of a child's value: it is shown deep in a message of `MAX_JSON_DEPTH` (ours, SYN-24)."""

CREATORS_KEPT: Final = 1000
"""Creators without a child whose last message is remembered; then the oldest go (ours, SYN-24)."""

CHILD_WAIT: Final = limits.REPLY_TIMEOUT
"""Seconds that a change of a child waits for another path when its direct link is lost (ours,
P2P-30: the path at the node is set in less, or the node does not answer)."""

CHILD_ATTEMPTS: Final = 2
"""Maximum sendings of a new child without an answer (ours, SYN-24)."""

CHILD_TRIES: Final = 5
"""Attempts to create a child of an object that answers 503, at pauses of `BUSY_PAUSE` (ours)."""

REASSERTIONS: Final = 3
"""Repeats of an operation of a creator that the reporter's end does not have, of one child; then
that end counts (ours, SYN-24)."""

WRITES_WAITING: Final = 256
"""Writes of one object that wait to be published; more are refused (ours)."""

VALUE_BYTES: Final = limits.BODY_BYTES
"""Bytes of JSON in the value of an object: with all that goes around it, it is still a message
(ours)."""

ABOUT_BYTES: Final = limits.ENVELOPE_BYTES // 2
"""Bytes of JSON in name and resources of an object, which stand beside its value (ours)."""

VALUE_DEPTH: Final = 24
"""Nesting in the value of an object: what goes around it leads to `MAX_JSON_DEPTH` (ours)."""

DEFINITION_BYTES: Final = 49_152
"""Bytes of JSON in the definition of a value: those of a descriptor, without what is signed
around it (ours)."""

DEFINITION_DEPTH: Final = 64
"""Nesting in the definition of a value (ours; half of what the validator takes)."""

SCHEMA_WORDS: Final = 200
"""Characters that an error says of what is wrong with a value (ours)."""

WITNESS_TIMEOUT: Final = 5.0
"""Seconds in which it must be found out that a link's other end speaks for an observer: a third
of what its request may take, so that there is time for the other route (ours)."""

MAX_WITNESSED: Final = 256
"""Observers that are being checked at a time (ours)."""

COPY_PAUSE: Final = 0.2
"""Seconds that the newest copy of an observed object waits to be stored with others (ours, SYN-25:
as long as a trace; what is lost of it is read again)."""

STORE_PAUSE: Final = 1.0
"""Seconds between attempts to write to a store that could not be written (ours, SYN-25)."""

COPIES_STORED: Final = 10_000
"""Copies of observed objects that one runtime stores (ours, SYN-25)."""

RESTORES_AT_ONCE: Final = 16
"""Sync managers that are notified at a time of a restored object (ours, SYN-25)."""

RENEWED_AT_ONCE: Final = 16
"""Objects whose address and paths a runtime sets anew at a time (ours, STB-09: so that the answers
for thousands of them come in time)."""

RESTORE_TRIES: Final = 5
"""Attempts to notify an observer of a restored object (ours, SYN-25)."""

LEASE_SLACK: Final = 5.0
"""Seconds that the end of a lease may be noticed late by a process that was awake all the time
(ours: far more than a busy one takes for what waits in a mailbox)."""
