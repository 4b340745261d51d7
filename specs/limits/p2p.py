"""Limits of direct links between runtimes, with unit and source (`ours`: of this project)."""

from typing import Final

LINK_LOOK: Final = 2.0
"""Seconds between two checks whether a P2P link has failed while messages are unacknowledged (ours,
R10)."""

MAX_LINK_ENTITIES: Final = 4096
"""Addresses known to be at the other end of one P2P link; more are reached by the node (ours)."""

CLAIM_RATE: Final = 20.0
"""Registration records, per second, that are read because a peer has listed their addresses (ours,
T18)."""

CLAIM_BURST: Final = 20
"""Registration records that are read at once, after a rest, because a peer has listed their
addresses (ours: those of a second)."""

MAX_LIST_BYTES: Final = 32_768
"""Characters of the addresses that one message lists: half of what it holds (ours, P2P-24)."""

HANDLED_LINKS: Final = 256
"""Runtimes that may have a link to one handler, those being set up included (ours, T11)."""

HANDLED_OF_DOMAIN: Final = 128
"""Runtimes of one domain that may have a link to one handler (ours, T11)."""

INVITATION_RATE: Final = 0.5
"""Links per second that one runtime may ask a handler for (ours, T11)."""

INVITATION_BURST: Final = 10
"""Links that one runtime may ask for at once (ours, T11)."""

PENDING_PROOFS: Final = 8
"""Accepted P2P links that are not authenticated yet; a further one replaces the oldest (ours, T11).
"""

FORGERIES: Final = 10
"""Messages with senders that do not belong to the peer, within `ERROR_WINDOW`, after which a link
is closed (ours, S1, as S14)."""

PROOF_TIMEOUT: Final = 5.0
"""Seconds for which a message from a link waits until the owner of its sender's address is known: a
third of the time for a request (ours, I-B10)."""

HELD_MESSAGES: Final = 1000
"""Messages from one link that wait until the owner of their sender's address is known: as many as
may be unacknowledged (ours, I-B10)."""

LINK_HINTS: Final = 16
"""Offers of direct links in messages that a registration record has not confirmed yet; further ones
are ignored (ours, RES-16)."""

HELD_IN_ALL: Final = 4000
"""Messages from all links of a runtime that wait until the owner of their sender's address is known
(ours, I-B10)."""

OWNERS_KEPT: Final = 8192
"""Addresses whose owner is cached; beyond it the oldest is forgotten (ours, I-B10)."""

CONTROL_BYTES: Final = 16_384
"""Bytes of one control line of a direct link (ours: the longest has three addresses of 2048
characters and `ORDER_SENT` numbers); a peer that writes a longer one loses the link."""

CONTROL_RATE: Final = 2000.0
"""Control lines a second of one direct link that acknowledge nothing new (ours: as `MESSAGE_RATE`).
A peer that writes more loses the link."""

CONTROL_BURST: Final = 4000
"""Control lines of one direct link, at once after a rest, that acknowledge nothing new (ours: as
`MESSAGE_BURST`)."""

HELD_BYTES: Final = 8_388_608
"""Bytes of memory of the messages and announcements of one link that wait for the proof of their
sender, and as many that wait for their turn (ours: 1 MiB of text, as JSON that is read)."""

HELD_BYTES_IN_ALL: Final = 67_108_864
"""Bytes of memory of the messages of all links that wait for a proof or for their turn (ours: of
eight links)."""

LINK_ENTITY_BYTES: Final = 1_048_576
"""Characters of the entities that are known to live at the other end of one link (ours: 4096 of 256
characters), and of a peer's changes of its list that wait for the list."""

ACK_DELAY: Final = 0.01
"""Seconds an acknowledgement on a P2P link waits for a message to go with it (ours).

An answer takes less; a task that waits for the end of a link waits as long."""

ORDER_PAIRS: Final = 16_384
"""Pairs of sender and receiver whose order across paths is kept track of (ours)."""

ORDER_BYTES: Final = 67_108_864
"""Bytes of memory of the pairs whose order across paths is tracked, in each direction (ours: 4 KiB
each). Beyond it, the oldest pair is forgotten of the link, or the node, that brought most pairs."""

ORDER_WAITS: Final = 256
"""Pairs whose messages from one link wait for earlier messages by the node; messages of further
pairs do not wait, and earlier ones that come too late are refused (ours)."""

ORDER_SENT: Final = 64
"""Requests, and as many answers, of a pair that were sent by the node and are remembered. An
announcement on a link names at most as many answers (ours)."""

STUB_DELAY: Final = 0.25
"""Seconds that a message may wait in the stub of a lost link until it is routed again (ours)."""

ORDER_HELD: Final = 1000
"""Messages from one link that wait for earlier ones: as many as may be unacknowledged (ours)."""

LISTED_SERVERS: Final = 8
"""STUN and TURN servers that a node or a runtime lists (ours): each of them makes the set-up of a
link longer."""

ICE_FILE_BYTES: Final = 65_536
"""Bytes of the file that lists STUN and TURN servers (ours)."""

ICE_TTL: Final = 3600
"""Seconds for which a credential of a TURN server is valid (ours): each request returns a new one,
and a relay in use stays open (draft-uberti-behave-turn-rest-00 proposes a day)."""

ICE_TTL_LEAST: Final = 60
"""Shortest validity of a TURN credential in seconds: longer than the set-up of a link and than the
difference of clocks (ours)."""

ICE_TTL_MOST: Final = 604_800
"""Longest validity of a TURN credential in seconds: a week (ours)."""
