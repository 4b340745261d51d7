"""Limits on memory, rate and work that one peer causes at a node (RELIABILITY L1..L7, S12)."""

import math
from typing import Final, final

import attrs

from fsm.limits.rates import Rate
from specs.limits import protocol

_MESSAGES: Final = Rate(protocol.MESSAGE_RATE, protocol.MESSAGE_BURST)
_IDENTITY: Final = Rate(protocol.IDENTITY_RATE, protocol.IDENTITY_BURST)
_NODES: Final = Rate(protocol.NODE_RATE, protocol.NODE_BURST)
_HANDSHAKES: Final = Rate(protocol.HANDSHAKE_RATE, protocol.HANDSHAKE_BURST)
_ANY: Final = Rate(math.inf, 1)


@final
@attrs.frozen(kw_only=True)
class NodeLimits:
    """The limits of one node; infinity means no limit. Each text is the help of an option.

    Attributes:
        messages: Messages per second accepted from one session; more is read later.
        identity: Messages per second accepted from all sessions of one user; more is read later.
        nodes: Messages per second accepted from another domain's node.
        handshakes: Connections per second accepted from one host; others are refused.
        max_failed_opens: Wrong tokens of a host per minute; each further one costs it the
            connection.
        unauthenticated: Connections without a session; beyond it the oldest makes room.
        unauthenticated_per_host: Connections without a session from one host.
        outbox_messages: Messages that wait for one link.
        outbox_bytes: Bytes that wait for one link.
        outbox_budget: Bytes of memory of all waiting messages, also of detached sessions.
        write_timeout: Seconds that a peer may take to read 64 KiB.
        max_malformed: Malformed messages of a link per minute.
        fan_out: Sessions that may receive one message.
    """

    messages: Rate = _MESSAGES
    identity: Rate = _IDENTITY
    nodes: Rate = _NODES
    handshakes: Rate = _HANDSHAKES
    max_failed_opens: float = protocol.MAX_FAILED_OPENS
    unauthenticated: float = protocol.UNAUTHENTICATED_LINKS
    unauthenticated_per_host: float = protocol.UNAUTHENTICATED_PER_HOST
    outbox_messages: float = protocol.OUTBOX_MESSAGES
    outbox_bytes: float = protocol.OUTBOX_BYTES
    outbox_budget: float = protocol.OUTBOX_BUDGET
    write_timeout: float = protocol.WRITE_TIMEOUT
    max_malformed: float = protocol.MAX_MALFORMED
    fan_out: float = protocol.FAN_OUT


DEFAULT_LIMITS: Final = NodeLimits()
"""The limits of a node without options."""

UNLIMITED: Final = NodeLimits(messages=_ANY, identity=_ANY, nodes=_ANY, handshakes=_ANY)
"""No rate limits, for peers that trust each other, such as in a benchmark."""
