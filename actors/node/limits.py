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
    """The limits of one node; infinity: there is none.

    Attributes:
        messages: What one session may send; more is read later.
        identity: What all sessions of one identity may send together; likewise.
        nodes: What the node of another domain may send: a whole domain, not one runtime.
        handshakes: How often one host may connect; more frequent connections are refused.
        max_failed_opens: How often a minute one host may ask for sessions with wrong tokens;
            each request beyond that costs it the connection.
        unauthenticated: Connections without a session; beyond it the oldest makes room.
        outbox_bytes: Bytes that may wait for one link.
        outbox_budget: Bytes of memory for what waits for all links and all detached sessions.
        write_timeout: Seconds a peer has to take in what is handed to its link at once.
        max_malformed: Malformed messages of one link that are borne in a minute.
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
"""Without limits: for peers that belong together, such as in a bench."""
