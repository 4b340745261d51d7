"""The sessions and names of an earlier process of a node, brought back from its state file."""

from collections.abc import Sequence
from typing import Final

import attrs
import trio

from actors.node.policy_hook import Asker
from actors.node.session.exchange import Exchange
from actors.node.state.file import Stored
from fsm.machines.registration import State
from fsm.registry.records import Row
from fsm.session.node_session_io import Credentials, PeerForm

_IN_USE: Final = frozenset({State.LIVE, State.LASTING})


def resume(exchange: Exchange, stored: Stored, records: Sequence[Row]) -> None:
    """Bring back stored sessions, detached, and the names that belong to users.

    What their runtimes have registered belongs to them again: requests for it wait for them.

    Args:
        exchange: The sessions of the node, none so far.
        stored: What was stored.
        records: The stored records of hyperties and data objects.
    """
    now, wall = trio.current_time(), exchange.names.wall()
    in_use = {row.runtime for row in stored.sessions if row.identity is not None}
    exchange.names.restore(stored.names, in_use)
    for row in stored.sessions:
        identity, kept = row.identity, row.session
        if identity is not None:
            until = now + identity.until - wall
            kept = attrs.evolve(
                kept, credentials=Credentials(identity.user, identity.issuer, until)
            )
        session = exchange.begin(row.stub, Asker(row.runtime, identity), row.runtime)
        session.restore(kept)
        exchange.tables.came(row.runtime, PeerForm.OWN)
        exchange.returning.miss()
    for record in records:
        if record.runtime in exchange.sessions and record.status in _IN_USE:
            tables = exchange.tables
            tables.allocation.claim(record.runtime, (record.url,))
