"""Sessions and subscribers at other nodes of a group, as one node knows them.

The rows of the engine, the shared store, each name a holder: a process of a node. A row whose
holder is no member of the group is void: its session waits for its runtime to return, for
`GROUP_PATIENCE` seconds from when this node learned of it, and its subscribers get nothing.

Messages of one pair of sender and receiver keep their order (I-B7), even if one of the two moves
between nodes. Each message carries the home of its sender: the revision of the row that gave the
session to the node that accepted the message. The engine gives rows rising revisions, so of two
homes the one with the higher revision is the later one. A node may be slow to pass a message on, so
that the sender's next message, accepted by another node, arrives first.

If the receiver moves, a message may reach the node that it has left, which passes the message on.
The sender's next message may arrive first, from the same home but directly. It has the higher id,
since the ids of one sender rise (MSG-03). A response has the id of its request, so its id says
nothing about the order.

A node does not deliver a late message. Its host answers a late request with 503, and only counts
other late messages.
"""

import math
from collections.abc import Callable, Iterator
from typing import Final

import attrs

from fsm.group.kinds import Holder, PathRow, SessionRow, session_key
from fsm.group.moves import MovesCore
from fsm.group.rows import RowsCore
from fsm.session.node_session_io import Credentials, KeptSession
from specs.limits.group import GROUP_PAIRS, GROUP_PATIENCE
from specs.message import Message, MessageType

_NONE: Final = (0, 0)


class Homes:
    """Table of the nodes that have the sessions of remote runtimes, and check of message order.

    Args:
        is_live: Returns whether a process of a node is a member of the group.
        elsewhere: Dictionary to fill: for each address, the other nodes with subscribers.
        rows: The rows of the domain.
        moves: The sessions of this node.

    Attributes:
        sessions: The rows of runtimes that have a session at another node, or had a session at a
            node that is gone.
    """

    def __init__(
        self,
        is_live: Callable[[Holder], bool],
        elsewhere: dict[str, dict[str, None]],
        rows: RowsCore,
        moves: MovesCore,
    ) -> None:
        self._rows: Final = rows
        self._moves: Final = moves
        self._is_live: Final = is_live
        self._elsewhere: Final = elsewhere
        self.sessions: Final = dict[str, SessionRow]()
        self._left: dict[str, float] = {}
        self._paths: dict[str, dict[str, PathRow]] = {}
        # The latest home and id of each sender and receiver whose messages this node has
        # delivered, of the last `GROUP_PAIRS` pairs: a message is late by seconds, or its node has
        # lost its lease.
        self._latest: dict[tuple[str, str, str], tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self.sessions)

    def row(self, runtime: str) -> SessionRow | None:
        """Return the row of a runtime's session at another node, or None if it has none."""
        return self.sessions.get(runtime)

    def node_of(self, runtime: str) -> str | None:
        """Return the other node that has the session of a runtime, or None if no member has it."""
        row = self.sessions.get(runtime)
        return row.holder.node if row is not None and runtime not in self._left else None

    def is_for_its_node_only(self, runtime: str) -> bool:
        """Return whether a runtime's session is at another live node that cannot hand it over."""
        row = self.sessions.get(runtime)
        return row is not None and row.kept is None and self.node_of(runtime) is not None

    def kept_session(self, runtime: str, offset: float) -> KeptSession | None:
        """Return the data with which this node can take over a session, or None if no node can.

        Args:
            runtime: Address of the runtime.
            offset: Difference between the host's clock and seconds since the epoch.
        """
        row = self.sessions.get(runtime)
        if row is None or row.kept is None:
            return None
        # Whether the session is linked to a live node is unknown, so no node may take it over.
        is_known = row.kept.is_taken_up or self.node_of(runtime) is not None
        taken_up = attrs.evolve(row.kept, is_taken_up=is_known)
        if row.identity is None:
            return taken_up
        user, issuer, until = row.identity.user, row.identity.issuer, row.identity.until
        return attrs.evolve(taken_up, credentials=Credentials(user, issuer, until + offset))

    # ---- changes

    def session(self, row: SessionRow, now: float) -> None:
        """Store the row of a session at another node, and whether that node is a member.

        Args:
            row: The session.
            now: Seconds on the host's clock.
        """
        self.sessions[row.runtime] = row
        if self._is_live(row.holder):
            self._left.pop(row.runtime, None)
        else:
            self._left.setdefault(row.runtime, now)

    def session_over(self, runtime: str) -> None:
        """Remove the row of a session that is over, or has moved to this node."""
        self.sessions.pop(runtime, None)
        self._left.pop(runtime, None)

    def path(self, row: PathRow) -> None:
        """Store that another node has subscribers of a resource."""
        self._paths.setdefault(row.holder.node, {})[row.resource] = row
        if self._is_live(row.holder):
            self._elsewhere.setdefault(row.resource, {})[row.holder.node] = None
        else:
            self._drop(row)

    def path_over(self, row: PathRow) -> None:
        """Remove the row of another node that no longer has subscribers of a resource."""
        self._paths.get(row.holder.node, {}).pop(row.resource, None)
        self._drop(row)

    def node_moved(self, node: str, now: float) -> None:
        """Update all rows of a node that has joined, left, or restarted.

        Args:
            node: Id of the node.
            now: Seconds on the host's clock.
        """
        for row in [session for session in self.sessions.values() if session.holder.node == node]:
            self.session(row, now)
        for path in list(self._paths.get(node, {}).values()):
            self.path(path)

    def _drop(self, row: PathRow) -> None:
        nodes = self._elsewhere.get(row.resource)
        if nodes is not None:
            nodes.pop(row.holder.node, None)
            if not nodes:
                del self._elsewhere[row.resource]

    # ---- rows without a live holder

    def unheld_paths(self) -> Iterator[PathRow]:
        """Yield the rows about subscribers whose holder is no member of the group."""
        for rows in self._paths.values():
            for row in rows.values():
                if not self._is_live(row.holder):
                    yield row

    def deadline(self) -> float:
        """Return the time at which `overdue` should be called next."""
        return next(iter(self._left.values()), math.inf) + GROUP_PATIENCE

    def overdue(self, now: float) -> list[str]:
        """Return the runtimes whose session has had no live node for too long.

        A runtime that is still absent is returned again after the same time.

        Args:
            now: Seconds on the host's clock.
        """
        late = [each for each, since in self._left.items() if since + GROUP_PATIENCE <= now]
        for runtime in late:
            # Added again at the end, since the dictionary is sorted by time.
            del self._left[runtime]
            self._left[runtime] = now
        return late

    # ---- the order of messages

    def home_of(self, runtime: str) -> int:
        """Return the home of a runtime: the revision that this node's messages from it carry.

        Args:
            runtime: Its address; it has its session here, or its link is still being read.

        Returns:
            The revision; 0 for a runtime whose session has no row.
        """
        revision = self._rows.revision(session_key(runtime))
        return revision if runtime in self._moves.own else max(revision - 1, 0)

    def is_late(
        self, runtime: str, message: Message, home: int, *, is_passed_on: bool = False
    ) -> bool:
        """Return whether a message was overtaken by a later one; if not, record its home and id.

        Args:
            runtime: The runtime that sent it.
            message: The message.
            home: The home of the sending runtime.
            is_passed_on: Whether it was passed on by a node that its receiver had left.
        """
        pair = (runtime, message.from_, message.to)
        latest, number = self._latest.get(pair, _NONE)
        if home < latest:
            return True
        if home > latest:
            number = 0
        if message.type is not MessageType.RESPONSE:
            if is_passed_on and message.id < number:
                return True
            number = max(number, message.id)
        self._latest[pair] = home, number
        if len(self._latest) > GROUP_PAIRS:
            del self._latest[next(iter(self._latest))]
        return False

    def forget_order(self) -> None:
        """Forget the homes of all senders: an emptied engine starts again with low revisions."""
        self._latest.clear()
