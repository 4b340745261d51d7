"""The sessions and names of an earlier process of a node, brought back from its state file."""

import attrs
import trio

from actors.node.policy_hook import Asker
from actors.node.session.exchange import Exchange
from actors.node.state.file import Stored
from fsm.session.node_session_io import Credentials, PeerForm, Resumed

__all__ = ["resume"]


def resume(exchange: Exchange, stored: Stored) -> None:
    """Bring back stored sessions, detached, and the names that belong to users.

    Args:
        exchange: The sessions of the node, none so far.
        stored: What was stored.
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
        exchange.feed(session, Resumed(kept))
        exchange.tables.came(row.runtime, PeerForm.OWN)
