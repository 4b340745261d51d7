"""Limits of transfers of large bodies in chunks, with unit and source (`ours`: of this project)."""

from typing import Final

from specs.limits import protocol as limits

TRANSFER_BYTES: Final = 16 * 1_048_576
"""Bytes of JSON in a body that travels in chunks, unless a runtime is configured otherwise
(ours, P2P-21)."""

TRANSFER_MOST: Final = 64 * 1_048_576
"""Largest value that can be configured for TRANSFER_BYTES (ours): the process parses such a body at
once, and does nothing else meanwhile."""

SANDBOX_TRANSFER_BYTES: Final = 4 * 1_048_576
"""Largest body in chunks of a hyperty in a sandbox process, in bytes of JSON (ours: as objects,
JSON takes up to twenty times its size, and the process has SANDBOX_MEMORY)."""

TRANSFER_PARTS: Final = 1_048_576
"""Opening brackets of JSON in a body that travels in chunks (ours): each object and list takes
about 60 bytes."""

CHUNK_TEXT: Final = 12_288
"""Bytes of a chunk in one text: in base64 as long as a text of a message may be (ours, L4)."""

CHUNK_BYTES: Final = 45_000
"""Bytes of a body in each of its chunks but the last (ours: in base64, with a little around it,
they are a body of a message)."""

CHUNK_WINDOW: Final = 2
"""Chunks of a transfer without an answer (ours)."""

ARRIVING: Final = 5
"""Transfers to a runtime at once; others ask again after TRANSFER_RETRY (ours). With the chunks of
READING they fit into the outbox of a link (L2), so that no node takes it for a slow consumer."""

PEER_ARRIVING: Final = 2
"""Transfers to a runtime at once from one peer, and from a runtime to one receiver (ours)."""

READING: Final = 6
"""Chunks of answers that a runtime has requested and not received yet (ours)."""

PEER_READING: Final = 2
"""Chunks of answers that one hyperty has requested and not received yet (ours)."""

SENDING: Final = 16
"""Transfers from a runtime at once; more wait for their turn (ours)."""

PEER_TRANSFERS: Final = 32
"""Bodies of one peer that a runtime has in memory at once; more are refused with 503 (ours)."""

PEER_BODIES: Final = 4
"""Bodies of the greatest size that a runtime has in memory for one peer (ours)."""

ALL_BODIES: Final = 16
"""Bodies of the greatest size that a runtime has in memory for all peers (ours)."""

TRANSFER_SILENCE: Final = limits.REPLY_TIMEOUT
"""Seconds without a chunk after which both ends abandon a transfer (ours)."""

HELD_SILENCE: Final = 2 * limits.REPLY_TIMEOUT
"""Seconds after which the body of an answer that nobody reads is forgotten (ours)."""

TRANSFER_TIMEOUT: Final = 300.0
"""Seconds a transfer may take: 16 MiB at 56 KiB a second (ours)."""

CHUNK_SECONDS: Final = TRANSFER_TIMEOUT / (TRANSFER_BYTES // CHUNK_BYTES)
"""Seconds that a transfer gains by each of its chunks (ours): one that is slower for longer than
its peer may be silent is given up."""

TRANSFER_RETRY: Final = 0.5
"""Seconds until a transfer that was refused for lack of memory is offered again (ours)."""

ARRIVING_TURN: Final = 4 * TRANSFER_RETRY
"""Seconds for which a refused peer that does not ask again keeps its position in the queue (ours).
"""

ARRIVING_TURNS: Final = 1024
"""Peers in the queue for transfers (ours)."""

BESIDE_TEXT: Final = 512
"""Characters of the `resource` of a body in chunks, which stands beside each of them (ours)."""

TRANSFER_PATIENCE: Final = 4 * limits.REPLY_TIMEOUT
"""Seconds for which a refused transfer is offered again; then its message is refused (ours)."""
