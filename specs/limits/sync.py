"""Limits of data objects and their observers, with unit and source (`ours`: of this project)."""

from typing import Final

from specs.limits import protocol as limits

REPEAT_FIRST: Final = 2.0
"""Seconds after which the last change of an object is published again (ours, I-D4: observers that
have lost this change cannot notice it otherwise)."""

REPEAT_LAST: Final = 60.0
"""Longest pause in seconds between repeats of an object's last change; the pauses double (ours,
I-D4)."""

REPEAT_SPACING: Final = 0.05
"""Seconds between two repeats of one runtime: 20 a second, whatever else it sends (ours, L5)."""

PART_REPEATS: Final = 3
"""Repeats of a change of a runtime's own object, such as the offer of a P2P link: they last longer
than `P2P_TIMEOUT`, after which the link's state machine starts again (ours, P2P-16)."""

QUIET: Final = 3 * REPEAT_LAST
"""Seconds without a message of the reporter after which an observer reads the object (ours, I-D4).
"""

GONE_READS: Final = 5
"""Consecutive reads without result after which an object counts as deleted: over 15 seconds, in
which a runtime reconnects to a restarted node (ours, STB-09)."""

CHANGES_KEPT: Final = 256
"""Unread changes of an observed object that a reader can get one by one; beyond it, the reader gets
the difference in one change (ours)."""

MAX_ALLOWED_OBSERVERS: Final = 10_000
"""Observers that one object may have, that its reporter may have allowed, or expelled from a
public one (ours: ten times as many as are expected)."""

MAX_UNDECIDED: Final = 256
"""Observers of one object that wait for its reporter to decide; more are refused
(ours: four times as many as a hyperty works on at a time)."""

MAX_REPEATED_ASKS: Final = 16
"""Requests of one observer that wait for the same decision; more are refused (ours)."""

OBSERVER_CHANGES_KEPT: Final = 256
"""Unread joins and leaves of observers that a reader can get one by one; beyond it, the reader gets
the difference (ours)."""

BUSY_PAUSE: Final = 1.0
"""Seconds between two attempts of a request that an object has answered 503 (ours)."""

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

WINDOW_CHILDREN: Final = 1000
"""Children that a window keeps at most (ours, SYN-24: a set is compared and searched in memory)."""

WINDOW_BYTES: Final = 262_144
"""Bytes that a window keeps at most, with the names: memory of the reporter's runtime and of each
observer (ours, SYN-24)."""

WINDOW_LEAST_BYTES: Final = 16_384
"""Bytes that each window has: any child fits, beside others (ours, SYN-24)."""

WINDOW_PAUSE: Final = 1.0
"""Seconds for which children that have left a window are collected, before observers are told
(ours, SYN-24)."""

ENDED_AT_ONCE: Final = 100
"""Names of children that have left, in one message (ours, SYN-24: with long names it is still one
message)."""

PAGE_BYTES: Final = 49_152
"""Bytes of children in one answer, if an observer reads them in pages (ours, SYN-24)."""

WINDOW_PAGES: Final = 16
"""Answers that an observer reads for a window at most: the largest one needs ten (ours, SYN-24)."""

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
"""Attempts of a creator to send its last operation on a child again, if the reporter lacks this
operation; then the reporter's version counts (ours, SYN-24)."""

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
"""Characters of the reason why a value does not match its schema, in an error (ours)."""

WITNESS_TIMEOUT: Final = 5.0
"""Seconds for the check whether a link's other end may act for an observer: a third of the time for
a request, so that the route by the node can still be used (ours)."""

MAX_WITNESSED: Final = 256
"""Such checks of observers at a time (ours)."""

COPY_PAUSE: Final = 0.2
"""Seconds for which changed copies of observed objects are collected before they are stored (ours,
SYN-25: lost changes are read again)."""

STORE_PAUSE: Final = 1.0
"""Seconds between attempts to write to a store that could not be written (ours, SYN-25)."""

COPIES_STORED: Final = 10_000
"""Copies of observed objects that one runtime stores (ours, SYN-25)."""

RESTORES_AT_ONCE: Final = 16
"""Sync managers that are notified at a time of a restored object (ours, SYN-25)."""

RENEWED_AT_ONCE: Final = 16
"""Objects whose address and subscriptions a runtime restores at a node at a time (ours, STB-09: so
that thousands of answers come in time)."""

RESTORE_TRIES: Final = 5
"""Attempts to notify an observer of a restored object (ours, SYN-25)."""

LEASE_SLACK: Final = 5.0
"""Seconds that the end of a lease may be noticed late by a process that was awake all the time
(ours: far more than a busy one takes for what waits in a mailbox)."""
