"""The sessions of an earlier process of a node, brought back from its state file."""

from collections.abc import Iterable

import attrs
import trio

from actors.node.policy_hook import Asker
from actors.node.session.exchange import Exchange
from actors.node.state.file import SessionRow
from fsm.session.node_session_io import Credentials, PeerForm, Resumed

__all__ = ["resume"]


def resume(exchange: Exchange, rows: Iterable[SessionRow], wall: float) -> None:
    """Bring back stored sessions, detached.

    Args:
        exchange: The sessions of the node, none so far.
        rows: The stored sessions.
        wall: Seconds since the epoch, as ends of logins are counted.
    """
    now = trio.current_time()
    for row in rows:
        identity, kept = row.identity, row.session
        if identity is not None:
            until = now + identity.until - wall
            kept = attrs.evolve(
                kept, credentials=Credentials(identity.user, identity.issuer, until)
            )
        session = exchange.begin(row.stub, Asker(row.runtime, identity), row.runtime)
        exchange.feed(session, Resumed(kept))
        exchange.tables.came(row.runtime, PeerForm.OWN)
